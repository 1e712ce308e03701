package session

import (
	"fmt"
	"strings"
	"unicode"
)

// longestName is how much is shown of the name of a tool that a model made up.
const longestName = 80

// shownLine is a text as one line in which nothing is hidden: what would move a cursor, turn the direction of writing, or not be seen at all
// is written as an escape. It is what a user approves, so it is never shortened.
func shownLine(s string) string {
	if !strings.ContainsFunc(s, unseen) {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		switch {
		case !unseen(r):
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\r':
			b.WriteString(`\r`)
		case r == '\t':
			b.WriteString(`\t`)
		case r < 0x100:
			fmt.Fprintf(&b, `\x%02x`, r)
		default:
			fmt.Fprintf(&b, `\u{%x}`, r)
		}
	}
	return b.String()
}

// unseen tells characters that are not shown as themselves. The two joiners stay: scripts and emoji need them, and between letters they make
// another word than the one they seem to be, not the same.
func unseen(r rune) bool {
	if r < 0x7f {
		return r < ' '
	}
	return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp) && r != '\u200c' && r != '\u200d'
}

// shownName is the name of a tool as a title, until its plan has a better one.
func shownName(name string) string {
	name = shownLine(name)
	if r := []rune(name); len(r) > longestName {
		return string(r[:longestName]) + "…"
	}
	return name
}
