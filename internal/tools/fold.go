package tools

import (
	"errors"
	"fmt"
	"sort"
	"strings"
)

// folded is a text with every CRLF made LF, which is how read shows it and models spell it, and the way back to the bytes.
type folded struct {
	text string
	crs  []int // where in text a line end was a CRLF
}

func fold(raw string) folded {
	var f folded
	var b strings.Builder
	for rest := raw; ; {
		line, after, found := strings.Cut(rest, "\r\n")
		b.WriteString(line)
		if !found {
			f.text = b.String()
			return f
		}
		f.crs = append(f.crs, b.Len())
		b.WriteByte('\n')
		rest = after
	}
}

// raw is the offset in the bytes of an offset in the folded text.
func (f folded) raw(at int) int { return at + sort.SearchInts(f.crs, at) }

// lineEnd is how a line added at an offset ends: like the line that offset is in, or like the one before at the start of a line.
func (f folded) lineEnd(at int) string {
	end := at - 1
	if at == 0 || f.text[at-1] != '\n' {
		if end = strings.IndexByte(f.text[at:], '\n'); end >= 0 {
			end += at
		} else {
			end = strings.LastIndexByte(f.text[:at], '\n')
		}
	}
	if i := sort.SearchInts(f.crs, end); end >= 0 && i < len(f.crs) && f.crs[i] == end {
		return "\r\n"
	}
	return "\n"
}

// apply makes one replacement in the bytes of a file and returns the line where it begins. Line ends match however they are spelt; only what
// differs between old and new is written, so that other line ends stay (I4).
func (e replacement) apply(raw string) (string, int, error) {
	old, f := fold(*e.Old).text, fold(raw)
	if old == "" {
		return "", 0, errors.New("old is empty; name the text to replace")
	}
	switch n := strings.Count(f.text, old); {
	case n == 0:
		return "", 0, fmt.Errorf("the old text does not occur; %s", nearest(e.mask.Text(f.text), old))
	case n > 1 && !e.ReplaceAll:
		return "", 0, fmt.Errorf("the old text occurs %d times; give more of what is around it, or set replace_all", n)
	}
	first := strings.Index(f.text, old)
	var b strings.Builder
	done := 0 // bytes of raw that are dealt with
	for at := first; ; {
		from, to, text := e.change(f, raw, at, old)
		b.WriteString(raw[done:from])
		b.WriteString(text)
		done = to
		at += len(old)
		next := strings.Index(f.text[at:], old)
		if next < 0 {
			break
		}
		at += next
	}
	b.WriteString(raw[done:])
	return b.String(), 1 + strings.Count(f.text[:first], "\n"), nil
}

// change is what one occurrence at a folded offset means for the bytes: the range to replace, and by what.
func (e replacement) change(f folded, raw string, at int, old string) (from, to int, text string) {
	from, to = f.raw(at), f.raw(at+len(old))
	if raw[from:to] == *e.Old && strings.Contains(*e.New, "\r\n") {
		return from, to, *e.New // CRLF was asked for in so many words
	}
	mid := fold(*e.New).text
	start, end := at, at+len(old)
	for len(mid) > 0 && start < end && mid[0] == f.text[start] {
		mid, start = mid[1:], start+1
	}
	for len(mid) > 0 && start < end && mid[len(mid)-1] == f.text[end-1] {
		mid, end = mid[:len(mid)-1], end-1
	}
	return f.raw(start), f.raw(end), strings.ReplaceAll(mid, "\n", f.lineEnd(start))
}
