package secret

// Stream masks a text that arrives in pieces. What may be the beginning of a secret is held back until it is decided.
type Stream struct {
	m    *Masker
	buf  []byte // context that was given already, then what is held back
	from int    // where the held part begins
}

// Stream returns a stream of this masker.
func (m *Masker) Stream() *Stream { return &Stream{m: m} }

// Write takes a piece and returns what is decided.
func (s *Stream) Write(piece string) string {
	s.buf = append(s.buf, piece...)
	return s.take(false)
}

// Close returns the rest; nothing follows.
func (s *Stream) Close() string { return s.take(true) }

func (s *Stream) take(last bool) string {
	t := s.m.current()
	var out []byte
	at := s.from
	for at < len(s.buf) {
		from, to, ok := t.next(s.buf, at, last, true)
		out = append(out, s.buf[at:from]...)
		if !ok {
			at = from
			break
		}
		out = append(out, maskOf(string(s.buf[from:to]))...)
		blank(s.buf[from:to])
		at = to
	}
	drop := max(0, at-LookBack)
	s.buf = append(s.buf[:0], s.buf[drop:]...)
	s.from = at - drop
	return string(out)
}
