package secret

import (
	"io"
	"strings"
)

// pieceSize is how much of a text is read and masked at once.
const pieceSize = 64 << 10

// Reader is a text without its secrets. It holds as many lines as the text.
func (m *Masker) Reader(r io.Reader) io.Reader { return &reader{r: r, s: m.Stream()} }

type reader struct {
	r   io.Reader
	s   *Stream
	buf []byte // what is read into
	out string // what is given next
	err error

	blanked bool   // the text may hold fillers
	tail    string // fillers at the end of what was given, which may go on
}

// Shown is the output of a command without its secrets: those that were blanked already are masks again.
func (m *Masker) Shown(r io.Reader) io.Reader {
	out := m.Reader(r).(*reader)
	out.blanked = true
	return out
}

// Read implements io.Reader.
func (r *reader) Read(b []byte) (int, error) {
	for r.out == "" && r.err == nil {
		if r.buf == nil {
			r.buf = make([]byte, pieceSize)
		}
		var n int
		n, r.err = r.r.Read(r.buf)
		r.out = r.s.Write(string(r.buf[:n]))
		if r.err != nil {
			r.out += r.s.Close()
		}
		if r.blanked {
			all := r.tail + r.out
			r.out = strings.TrimRight(all, string(rune(Filler)))
			if r.tail = all[len(r.out):]; r.err != nil {
				r.out, r.tail = all, ""
			}
			r.out = Shown(r.out)
		}
	}
	n := copy(b, r.out)
	if r.out = r.out[n:]; r.out != "" || r.err == nil {
		return n, nil
	}
	return n, r.err
}
