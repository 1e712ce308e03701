package tools

import (
	"bytes"
	"regexp"
	"regexp/syntax"
	"strings"
	"unicode"
	"unicode/utf8"
)

// match tells which lines a search is for. must is a text that every such line holds: only lines with it are held against the expression,
// which is slow. With fold, must is in lower case and stands for any case.
type match struct {
	pattern string
	re      *regexp.Regexp
	must    []byte
	fold    bool
	exact   bool // must says it all
}

// shortText is what is too short to pick lines by; the automaton does that better.
const shortText = 3

func newMatch(in grepArgs) (*match, error) {
	if in.Pattern == "" {
		return nil, failf("The pattern is empty. Say what to search for.")
	}
	if len(in.Pattern) > maxPattern {
		return nil, failf("The pattern is longer than %d bytes. Search for a part of it.", maxPattern)
	}
	if in.Literal && strings.ContainsAny(in.Pattern, "\n") {
		return nil, failf("The pattern holds a line end; the search goes line by line. Search for one line of it.")
	}
	pattern := in.Pattern
	if in.Literal {
		pattern = regexp.QuoteMeta(pattern)
	}
	if in.IgnoreCase {
		pattern = "(?i:" + pattern + ")"
	}
	re, err := regexp.Compile(pattern)
	if err != nil {
		return nil, failf("%q is not a regular expression (%v). Set literal to search for the text itself.", in.Pattern, err)
	}
	m := &match{pattern: pattern, re: re}
	tree, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return m, nil // the expression alone can say it
	}
	tree = tree.Simplify()
	must, fold := required(tree)
	if strings.ContainsRune(must, utf8.RuneError) { // it stands for broken bytes too
		must = ""
	}
	m.must, m.fold = []byte(must), fold
	m.exact = !fold && tree.Op == syntax.OpLiteral && string(tree.Rune) == must
	if !m.exact && len(must) < shortText && len(must) == utf8.RuneCountInString(must) {
		m.must, m.fold = nil, false // nearly every line holds it
	}
	return m, nil
}

// required is a text without which nothing matches, the longest that is seen easily, and whether its case is free.
func required(re *syntax.Regexp) (text string, fold bool) {
	switch re.Op {
	case syntax.OpLiteral:
		if re.Flags&syntax.FoldCase != 0 {
			return foldable(re.Rune), true
		}
		return string(re.Rune), false
	case syntax.OpCapture, syntax.OpPlus:
		return required(re.Sub[0])
	case syntax.OpRepeat:
		if re.Min > 0 {
			return required(re.Sub[0])
		}
	case syntax.OpConcat:
		for _, sub := range re.Sub {
			if t, f := required(sub); len(t) > len(text) {
				text, fold = t, f
			}
		}
	}
	return text, fold
}

// foldable is the longest part of a text that has no other forms than its own letters in either case.
func foldable(text []rune) string {
	best, at := "", 0
	for i := 0; i <= len(text); i++ {
		if i < len(text) && text[i] < utf8.RuneSelf && !strings.ContainsRune("kKsS", text[i]) { // K and S have a form beyond ASCII
			continue
		}
		if i-at > len(best) {
			best = string(text[at:i])
		}
		at = i + 1
	}
	return strings.Map(unicode.ToLower, best)
}

// line tells whether a line matches.
func (m *match) line(b []byte) bool {
	return m.exact && bytes.Contains(b, m.must) || !m.exact && m.re.Match(b)
}

// candidate is where in a text the next line may match, or -1. lower is the text in lower case, where that is needed, and d looks for lines
// without a text that must be there; it may be nil.
func (m *match) candidate(text, lower []byte, d *lineDFA) int {
	switch {
	case len(m.must) == 0 && d != nil && !d.broken:
		return d.find(text)
	case len(m.must) == 0:
		return 0
	case m.fold:
		return bytes.Index(lower, m.must)
	}
	return bytes.Index(text, m.must)
}
