package secret

// Stream masks a text that arrives in pieces. What may be the beginning of a secret is held back until it is decided.
type Stream struct {
	m     *Masker
	buf   []byte // context that was given already, then what is held back
	from  int    // where the held part begins
	given int    // how much of it was given by a pause
}

// Stream returns a stream of this masker.
func (m *Masker) Stream() *Stream { return &Stream{m: m} }

// Write takes a piece and returns what is decided.
func (s *Stream) Write(piece string) string {
	s.buf = append(s.buf, piece...)
	return s.take(false)
}

// pauseMost is how much of what may be the beginning of a value is given before it is decided.
const pauseMost = 3

// Pause returns what is held back when something else is shown next, so that a word is not torn apart by it. Only a few bytes are given: they tell
// nothing of a value, and one that goes on behind the pause is masked all the same.
func (s *Stream) Pause() string {
	held := s.buf[s.from:]
	if len(held) > pauseMost || len(held) <= s.given {
		return ""
	}
	out := string(held[s.given:])
	s.given = len(held)
	return out
}

// Close returns the rest; nothing follows.
func (s *Stream) Close() string { return s.take(true) }

func (s *Stream) take(last bool) string {
	t := s.m.current()
	var out []byte
	at := s.from
	for at < len(s.buf) {
		from, to, ok := t.next(s.buf, at, last, true)
		out = append(out, s.buf[min(max(at, s.from+s.given), from):from]...)
		if !ok {
			at = from
			break
		}
		out = append(out, maskOf(string(s.buf[from:to]))...)
		blank(s.buf[from:to])
		at = to
	}
	s.given = max(0, s.given-(at-s.from))
	drop := max(0, at-LookBack)
	s.buf = append(s.buf[:0], s.buf[drop:]...)
	s.from = at - drop
	return string(out)
}
