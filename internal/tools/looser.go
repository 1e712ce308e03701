package tools

import (
	"fmt"
	"regexp/syntax"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxLooser is how long an expression may get.
const maxLooser = 16_000

// looser is an expression for another program, which finds at least every line that matches; "" where there is none. What that program makes
// of expressions differs in too much, from \w to what a broken character is, so that it is told sets of characters and nothing else.
func (m *match) looser() string {
	tree, err := syntax.Parse(m.pattern, syntax.Perl)
	if err != nil {
		return ""
	}
	var l looser
	if empty := l.write(tree); l.failed || empty {
		return ""
	}
	return l.String()
}

// looser writes an expression that matches wherever another one does: without what asserts, and with characters as sets of their numbers.
type looser struct {
	strings.Builder
	failed bool
}

// brokenByte stands for a byte that is no part of a character, which expressions here take for U+FFFD.
const brokenByte = `(?-u:[\x80-\xff])`

// write tells whether the part may match nothing at all.
func (l *looser) write(re *syntax.Regexp) (empty bool) {
	if l.Len() > maxLooser {
		l.failed = true
	}
	if l.failed {
		return false
	}
	switch re.Op {
	case syntax.OpEmptyMatch, syntax.OpBeginLine, syntax.OpEndLine, syntax.OpBeginText, syntax.OpEndText, syntax.OpWordBoundary, syntax.OpNoWordBoundary:
		l.WriteString("(?:)")
		return true
	case syntax.OpLiteral:
		for _, r := range re.Rune {
			l.set(forms(r, re.Flags&syntax.FoldCase != 0))
		}
		return len(re.Rune) == 0
	case syntax.OpCharClass:
		l.set(re.Rune)
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		l.set([]rune{0, unicode.MaxRune})
	case syntax.OpCapture:
		return l.write(re.Sub[0])
	case syntax.OpStar, syntax.OpPlus, syntax.OpQuest, syntax.OpRepeat:
		l.WriteString("(?:")
		empty = l.write(re.Sub[0])
		l.WriteString(")" + times(re))
		return empty || re.Op == syntax.OpStar || re.Op == syntax.OpQuest || re.Op == syntax.OpRepeat && re.Min == 0
	case syntax.OpConcat:
		empty = true
		for _, sub := range re.Sub {
			empty = l.write(sub) && empty
		}
	case syntax.OpAlternate:
		l.WriteString("(?:")
		for i, sub := range re.Sub {
			if i > 0 {
				l.WriteByte('|')
			}
			empty = l.write(sub) || empty
		}
		l.WriteByte(')')
	default:
		l.failed = true
	}
	return empty
}

func times(re *syntax.Regexp) string {
	switch {
	case re.Op == syntax.OpStar:
		return "*"
	case re.Op == syntax.OpPlus:
		return "+"
	case re.Op == syntax.OpQuest:
		return "?"
	case re.Max < 0:
		return fmt.Sprintf("{%d,}", re.Min)
	}
	return fmt.Sprintf("{%d,%d}", re.Min, re.Max)
}

// forms are the ranges of a character and, where case does not matter, of its other forms.
func forms(r rune, fold bool) []rune {
	out := []rune{r, r}
	if fold {
		for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
			out = append(out, f, f)
		}
	}
	return out
}

// set writes ranges of characters without the line end, which no line holds.
func (l *looser) set(ranges []rune) {
	var b strings.Builder
	broken := false
	for i := 0; i+1 < len(ranges); i += 2 {
		lo, hi := ranges[i], ranges[i+1]
		broken = broken || lo <= utf8.RuneError && utf8.RuneError <= hi
		if lo <= '\n' && '\n' <= hi {
			l.span(&b, lo, '\n'-1)
			lo = '\n' + 1
		}
		l.span(&b, lo, hi)
	}
	if b.Len() == 0 { // only a line end would do
		l.failed = true
		return
	}
	if l.WriteString("(?:[" + b.String() + "]"); broken {
		l.WriteString("|" + brokenByte)
	}
	l.WriteByte(')')
}

func (l *looser) span(b *strings.Builder, lo, hi rune) {
	switch {
	case lo > hi:
		return
	case !utf8.ValidRune(lo) || !utf8.ValidRune(hi): // half of a pair, which the other program does not read
		l.failed = true
	}
	fmt.Fprintf(b, `\x{%x}-\x{%x}`, lo, hi)
}
