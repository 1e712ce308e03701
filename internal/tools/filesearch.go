package tools

import (
	"bytes"
	"context"
	words "encoding/binary"
	"fmt"
	"io"

	"holdfast/internal/secret"
)

const (
	maxScan   = 1 << 20   // bytes of a line that are searched
	firstRead = 64 << 10  // most files are not longer
	keepMost  = 128 << 10 // bytes of lines that are kept for the context of the next match
)

// fileSearch searches files one after the other, block by block.
type fileSearch struct {
	match *match
	mask  *secret.Masker
	args  grepArgs
	most  int // lines that are shown of one file
	out   *hits

	dfa        *lineDFA // of a match without a text that must be there
	buf, lower []byte
	size       int  // bytes in buf
	start      int  // where the lines begin that were not looked at
	line       int  // the number of the first of them
	shown      int  // the number of the last line that was shown
	after      int  // lines of context that are due
	last       bool // the file holds no more than buf does
	skip       bool // buf begins inside a line that is too long
	matched    int
	label      string
	name       func() string
}

func (o Options) newFileSearch(m *match, a grepArgs, most int) *fileSearch {
	s := &fileSearch{match: m, mask: o.Mask, args: a, most: most, buf: make([]byte, firstRead)}
	if len(m.must) == 0 {
		s.dfa = newLineDFA(m.pattern)
	}
	return s
}

// run searches one file and tells whether it is binary, which is not searched. What cannot be read ends it like the end of the file. A file with
// a match is searched again without its secrets: what is matched is what is shown, so a pattern cannot ask for a secret letter by letter.
func (s *fileSearch) run(ctx context.Context, f io.ReadSeeker, name func() string) (binary bool) {
	was := *s.out
	if binary = s.scan(ctx, f, name); binary || s.out.files == was.files {
		return binary
	}
	*s.out = was
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return false
	}
	return s.scan(ctx, s.mask.Reader(f), name)
}

func (s *fileSearch) scan(ctx context.Context, r io.Reader, name func() string) (binary bool) {
	s.size, s.start, s.line, s.shown, s.after, s.last, s.skip, s.matched, s.label, s.name = 0, 0, 1, 0, 0, false, false, 0, "", name
	s.more(r)
	if bytes.IndexByte(s.buf[:min(s.size, firstRead)], 0) >= 0 {
		return true
	}
	if bytes.HasPrefix(s.buf[:s.size], []byte("\ufeff")) { // no part of the first line
		s.start = len("\ufeff")
	}
	for ctx.Err() == nil && s.block() && !s.last {
		s.more(r)
	}
	if s.matched > 0 {
		s.out.total, s.out.files = s.out.total+s.matched, s.out.files+1
		s.finish()
	}
	return false
}

// finish shows what is said of the file as a whole.
func (s *fileSearch) finish() {
	switch s.args.Output {
	case outFiles:
		s.out.add(rowMatch, s.label+"\n")
	case outCount:
		s.out.add(rowMatch, fmt.Sprintf("%s: %d\n", s.label, s.matched))
	default:
		if n := s.matched - s.most; n > 0 && s.most < maxMatches {
			s.out.add(rowAfter, fmt.Sprintf("[%d more matching line(s) in %s; name it as path to see them]\n", n, s.label))
		} else if n > 0 {
			s.out.full = true
		}
	}
}

// more reads on behind what is kept: the lines that were not looked at, and those before them that a match may show.
func (s *fileSearch) more(r io.Reader) {
	keep := s.start
	for i := 0; i < s.args.Context && keep > 0 && s.start-keep < keepMost; i++ {
		keep = bytes.LastIndexByte(s.buf[:keep-1], '\n') + 1
	}
	if s.start-keep >= keepMost {
		keep = s.start
	}
	s.size = copy(s.buf, s.buf[keep:s.size])
	s.start -= keep
	for !s.last && s.size-s.start < maxScan {
		if s.size == len(s.buf) {
			if bytes.IndexByte(s.buf[s.start:s.size], '\n') >= 0 {
				return
			}
			s.buf = append(s.buf, make([]byte, len(s.buf))...)
		}
		n, err := r.Read(s.buf[s.size:])
		s.size += n
		s.last = err != nil
	}
}

// block looks at the whole lines that are there. It is false when nothing more is wanted of the file.
func (s *fileSearch) block() bool {
	text := s.buf[s.start:s.size]
	if bytes.IndexByte(text, 0) >= 0 { // from here on it is no text
		return false
	}
	end := len(text)
	cut := false // the last line goes on
	if !s.last {
		if end = bytes.LastIndexByte(text, '\n') + 1; end == 0 {
			if len(text) < maxScan {
				return true
			}
			end, cut = len(text), true
		}
	}
	if s.skip { // the rest of a line whose beginning was searched
		i := bytes.IndexByte(text[:end], '\n')
		if i < 0 {
			s.start += end
			return true
		}
		s.start, s.skip, s.line = s.start+i+1, false, s.line+1
		return s.block()
	}
	ok := s.lines(text[:end])
	if s.start = s.start + end; cut {
		s.skip, s.line = true, s.line-1
		s.out.long++
	}
	return ok
}

// lines looks at lines, the last of which may have no end.
func (s *fileSearch) lines(text []byte) bool {
	var lower []byte
	if s.match.fold {
		s.lower = lowerASCII(s.lower[:0], text)
		lower = s.lower
	}
	for at := 0; at < len(text); {
		if s.after > 0 {
			end := lineEnd(text, at)
			s.one(text, at, end)
			at = end
			continue
		}
		i := s.match.candidate(text[at:], lower[min(at, len(lower)):], s.dfa)
		if i < 0 {
			s.line += bytes.Count(text[at:], newline)
			if text[len(text)-1] != '\n' {
				s.line++
			}
			return true
		}
		from := at + bytes.LastIndexByte(text[at:at+i], '\n') + 1
		s.line += bytes.Count(text[at:from], newline)
		at = lineEnd(text, from)
		if s.one(text, from, at); s.matched > 0 && s.args.Output == outFiles {
			return false
		}
	}
	return true
}

var newline = []byte("\n")

// lineEnd is where the line that begins at a place ends, with its line end.
func lineEnd(text []byte, from int) int {
	if i := bytes.IndexByte(text[from:], '\n'); i >= 0 {
		return from + i + 1
	}
	return len(text)
}

// one looks at one line, and shows it if that is due.
func (s *fileSearch) one(text []byte, from, to int) {
	line := bare(text[from:to])
	switch {
	case s.match.line(line):
		if s.matched++; s.label == "" {
			s.label = s.name()
		}
		if s.args.Output != "" && s.args.Output != outLines || s.matched > s.most {
			s.after = 0
			break
		}
		s.before(from)
		s.show(rowMatch, ":", s.line, line)
		s.after = s.args.Context
	case s.after > 0:
		s.show(rowAfter, "-", s.line, line)
		s.after--
	}
	s.line++
}

// before shows the context ahead of a match, after a mark for the gap to what was shown last. from is where the match begins in the block.
func (s *fileSearch) before(from int) {
	if s.args.Context == 0 {
		return
	}
	at, n := s.start+from, 0
	for n < s.args.Context && s.line-n-1 > s.shown && at > 0 {
		at = bytes.LastIndexByte(s.buf[:at-1], '\n') + 1
		n++
	}
	if s.shown == 0 || s.line-n > s.shown+1 {
		s.out.add(rowGap, "--\n")
	}
	for ; n > 0; n-- {
		end := lineEnd(s.buf[:s.start+from], at)
		s.show(rowBefore, "-", s.line-n, bare(s.buf[at:end]))
		at = end
	}
}

func (s *fileSearch) show(kind rowKind, mark string, number int, line []byte) {
	if s.shown = number; len(line) > maxLine+utf8Most {
		line = line[:maxLine+utf8Most] // the rest would be cut anyway
	}
	s.out.add(kind, fmt.Sprintf("%s%s%d%s %s\n", s.label, mark, number, mark, visible(clipLine(string(line)))))
}

const utf8Most = 4

// bare is a line without its end.
func bare(line []byte) []byte {
	line = bytes.TrimSuffix(line, newline)
	return bytes.TrimSuffix(line, []byte("\r"))
}

// lowerASCII appends a text with its letters in lower case, byte for byte, eight at a time.
func lowerASCII(to, text []byte) []byte {
	const ones = 0x0101010101010101
	at := len(to)
	to = append(to, text...)
	for ; at+8 <= len(to); at += 8 {
		x := words.LittleEndian.Uint64(to[at:])
		low := x &^ (0x80 * ones)
		upper := (low + (0x80-'A')*ones) ^ (low + (0x7f-'Z')*ones) // the high bit tells: from A on, but not behind Z
		words.LittleEndian.PutUint64(to[at:], x|upper&^x&(0x80*ones)>>2)
	}
	for ; at < len(to); at++ {
		if c := to[at]; c-'A' < 26 {
			to[at] = c + 'a' - 'A'
		}
	}
	return to
}
