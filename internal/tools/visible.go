package tools

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// visible is a text in which nothing commands a terminal or hides: control characters, bytes that are no UTF-8 and characters that turn the
// direction of a line are shown as escapes. Tabs stay.
func visible(s string) string {
	at := hiddenAt(s)
	if at < 0 {
		return s
	}
	var b strings.Builder
	for len(s) > 0 {
		if at < 0 {
			b.WriteString(s)
			break
		}
		b.WriteString(s[:at])
		r, n := utf8.DecodeRuneInString(s[at:])
		switch {
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\r':
			b.WriteString(`\r`)
		case r == utf8.RuneError && n == 1, r < utf8.RuneSelf:
			fmt.Fprintf(&b, `\x%02x`, s[at])
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
		s = s[at+n:]
		at = hiddenAt(s)
	}
	return b.String()
}

// hiddenAt is where the first character stands that is not shown as it is, or -1.
func hiddenAt(s string) int {
	for i := 0; i < len(s); {
		c := s[i]
		switch {
		case c >= ' ' && c < 0x7f || c == '\t':
			i++
			continue
		case c < utf8.RuneSelf:
			return i
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && n == 1 || r >= 0x80 && r < 0xa0 || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069 || r == 0x2028 || r == 0x2029 {
			return i
		}
		i += n
	}
	return -1
}

// visibleName is a file name for a result: one line, whatever it holds. A space at an end would not be seen.
func visibleName(s string) string {
	if s = visible(strings.ReplaceAll(s, "\t", "\x00")); strings.Contains(s, `\x00`) {
		s = strings.ReplaceAll(s, `\x00`, `\t`)
	}
	if strings.HasSuffix(s, " ") {
		s = s[:len(s)-1] + `\x20`
	}
	return s
}
