package tools

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	order "encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"net/http"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"holdfast/internal/secret"
	"holdfast/session"
)

// page is what a reader shows of a text: a range of its lines. Nothing but them is kept in memory.
type page struct {
	from, limit int // the first line, and how many
	mask        *secret.Masker
	b           strings.Builder
	last        int // the last line shown
	lines       int // that were seen
	escaped     bool
	wrong       bool // it holds bytes that are no UTF-8
}

func (o Options) newPage(in readArgs) *page {
	p := &page{mask: o.Mask, from: max(in.Offset, 1), limit: in.Limit}
	if p.limit == 0 {
		p.limit = defaultLines
	}
	p.last = p.from - 1
	return p
}

// full: nothing more of the text is shown.
func (p *page) full() bool { return p.lines >= p.from+p.limit-1 || p.b.Len() >= maxResult }

// line takes the next line, without its end.
func (p *page) line(text []byte, long bool) {
	full := p.full()
	if p.lines++; full || p.lines < p.from {
		return
	}
	if p.lines == 1 {
		text = bytes.TrimPrefix(text, []byte("\ufeff"))
	}
	s := clipLine(string(bytes.TrimSuffix(text, []byte("\r"))))
	if long && !strings.HasSuffix(s, "]") {
		s += " [line cut]"
	}
	p.wrong = p.wrong || !utf8.ValidString(s)
	v := visible(s)
	p.escaped = p.escaped || v != s
	fmt.Fprintf(&p.b, "%d\t%s\n", p.lines, v)
	p.last = p.lines
}

// scan reads a text line by line, without its secrets. To the end, or as far as it is shown.
func (p *page) scan(r io.Reader, toEnd bool) error {
	in := bufio.NewReaderSize(p.mask.Reader(r), firstRead)
	var keep []byte // the beginning of a line that is longer than the buffer
	for more := false; ; {
		part, err := in.ReadSlice('\n')
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			if keep = append(keep, part...); len(keep) > 2*maxLine {
				keep = keep[:2*maxLine]
			}
			more = true
			continue
		case err != nil && !errors.Is(err, io.EOF):
			return err
		}
		if len(part) > 0 || more {
			text := part
			if more {
				text = append(keep, part[:min(len(part), 2*maxLine)]...)
			}
			p.line(bytes.TrimSuffix(text, newline), more)
			keep, more = keep[:0], false
		}
		if err != nil || !toEnd && p.full() {
			return nil
		}
	}
}

// text shows lines of a text: of the editor's, when that is another than the file's.
func (r *reading) text(ctx context.Context, head []byte) (session.Output, error) {
	sum, all := sha256.New(), r.info.Size() <= maxFile
	src := untilDone(ctx, r.all)
	if all {
		src = io.TeeReader(src, sum)
	}
	note := ""
	if in := utf16Order(head); in != nil {
		note = ", UTF-16"
		src = &utf16Reader{r: bufio.NewReader(src), bytes: in}
	}
	var copied *comparison
	if r.asked {
		copied = &comparison{want: normal(r.editor)}
		src = io.TeeReader(src, copied)
	}
	p := r.o.newPage(r.in)
	if err := p.scan(src, all); err != nil {
		return session.Output{}, r.failed(ctx, err)
	}
	if copied != nil && !copied.same() {
		return r.unlike(p), nil
	}
	out := session.Output{}
	switch {
	case r.asked:
		note += "; the same in the editor"
	case r.silent:
		note += "; as it is on disk, the editor did not say what it has"
	}
	if !all {
		out.Text = p.told(fmt.Sprintf("a file of %d bytes, too large to be edited here%s", r.info.Size(), note), false)
		return out, nil
	}
	out.Digest = hexDigest(sum)
	out.Text = p.told("version "+versionOf(out.Digest)+note, true)
	return out, nil
}

// told is the page and, in brackets, what it is of.
func (p *page) told(what string, whole bool) string {
	if p.wrong {
		what += "; not UTF-8, it cannot be edited here"
	}
	if p.escaped {
		what += "; characters that are not printed are shown as \\x.."
	}
	switch {
	case p.lines == 0:
		return "[empty file, " + what + "]"
	case p.last < p.from:
		return fmt.Sprintf("[the file has %d lines, %s]", p.lines, what)
	case !whole:
		return fmt.Sprintf("%s[lines %d-%d of %s]", p.b.String(), p.from, p.last, what)
	}
	return fmt.Sprintf("%s[lines %d-%d of %d, %s]", p.b.String(), p.from, p.last, p.lines, what)
}

func hexDigest(sum hash.Hash) string { return "sha256:" + hex.EncodeToString(sum.Sum(nil)) }

// utf16Order is the byte order of a text that begins with a mark for it.
func utf16Order(head []byte) order.ByteOrder {
	switch {
	case bytes.HasPrefix(head, []byte{0xff, 0xfe}):
		return order.LittleEndian
	case bytes.HasPrefix(head, []byte{0xfe, 0xff}):
		return order.BigEndian
	}
	return nil
}

// utf16Reader turns UTF-16 into UTF-8.
type utf16Reader struct {
	r     *bufio.Reader
	bytes order.ByteOrder
	left  []byte
	held  rune // the first half of a pair, 0 for none
}

func (u *utf16Reader) Read(b []byte) (int, error) {
	for len(u.left) == 0 {
		var unit [2]byte
		if _, err := io.ReadFull(u.r, unit[:]); err != nil {
			if u.held != 0 {
				u.left, u.held = utf8.AppendRune(u.left[:0], utf8.RuneError), 0
				continue
			}
			if errors.Is(err, io.ErrUnexpectedEOF) {
				err = io.EOF
			}
			return 0, err
		}
		c := rune(u.bytes.Uint16(unit[:]))
		switch {
		case u.held != 0:
			c, u.held = utf16.DecodeRune(u.held, c), 0
		case c >= 0xd800 && c < 0xdc00:
			u.held = c
			continue
		}
		u.left = utf8.AppendRune(u.left[:0], c)
	}
	n := copy(b, u.left)
	u.left = u.left[n:]
	return n, nil
}

// binaryKind names what the beginning of a file says it is, with a comma behind, or nothing.
func binaryKind(head []byte) string {
	for _, k := range []struct{ begins, kind string }{
		{"\x7fELF", "ELF program or library"}, {"MZ", "Windows program or library"}, {"\xfe\xed\xfa", "Mach-O program"}, {"\xcf\xfa\xed\xfe", "Mach-O program"},
		{"SQLite format 3\x00", "SQLite database"}, {"\x00asm", "WebAssembly"}, {"\xca\xfe\xba\xbe", "Java class or Mach-O program"}, {"7z\xbc\xaf", "7z archive"},
		{"\xfd7zXZ", "xz archive"}, {"(\xb5/\xfd", "Zstandard archive"}, {"BZh", "bzip2 archive"},
	} {
		if bytes.HasPrefix(head, []byte(k.begins)) {
			return k.kind + ", "
		}
	}
	if t, _, _ := strings.Cut(http.DetectContentType(head), ";"); t != "application/octet-stream" && !strings.HasPrefix(t, "text/") {
		return t + ", "
	}
	return ""
}
