package catalogue

import (
	"cmp"
	"strings"
	"time"
)

// pattern says for which names something holds.
type pattern struct {
	provider string // "*" for every one
	name     string // in small letters
	dated    bool   // also the name with a date behind it
}

// How exact a match is.
const (
	no = iota
	byStar
	byDate
	byName
)

// match compares a name in small letters. Patterns for every provider are about what a server may have from elsewhere: they look at what is
// behind the names of makers that gateways put in front.
func (p pattern) match(provider, name string) int {
	switch p.provider {
	case provider:
	case "*":
		name = name[strings.LastIndexByte(name, '/')+1:]
	default:
		return no
	}
	return p.matchName(name)
}

func (p pattern) matchName(name string) int {
	switch {
	case name == p.name:
		return byName
	case strings.Contains(p.name, "*"):
		if glob(p.name, name) {
			return byStar
		}
	case p.dated && strings.HasPrefix(name, p.name) && isDate(name[len(p.name):]):
		return byDate
	}
	return no
}

// isDate knows the endings by which providers name the state of a model: a day in one of their spellings, or the latest.
func isDate(end string) bool {
	if end == "-latest" {
		return true
	}
	for _, layout := range []string{"-2006-01-02", "-20060102", "@20060102"} {
		if len(end) != len(layout) || end[0] != layout[0] {
			continue
		}
		if _, err := time.Parse(layout[1:], end[1:]); err == nil {
			return true
		}
	}
	return false
}

// glob compares with a pattern in which * stands for any characters, none too.
func glob(pattern, name string) bool {
	head, rest, star := strings.Cut(pattern, "*")
	if !star {
		return pattern == name
	}
	name, ok := strings.CutPrefix(name, head)
	if !ok {
		return false
	}
	for {
		part, more, star := strings.Cut(rest, "*")
		if !star {
			return strings.HasSuffix(name, part)
		}
		at := strings.Index(name, part) // the first place leaves the most for what follows
		if at < 0 {
			return false
		}
		name, rest = name[at+len(part):], more
	}
}

// rank compares two patterns that match the same name: positive when a is the more exact one.
func rank(a, b pattern, provider, name string) int {
	letters := func(p pattern) int { return len(strings.ReplaceAll(p.name, "*", "")) }
	own := func(p pattern) int {
		if p.provider == "*" {
			return 0
		}
		return 1
	}
	return cmp.Or(cmp.Compare(a.match(provider, name), b.match(provider, name)), cmp.Compare(letters(a), letters(b)), cmp.Compare(own(a), own(b)))
}
