package config

import (
	"fmt"
	"strconv"
	"strings"
)

// Error is one mistake: where it is, what is wrong and what to write instead.
type Error struct {
	Path    string `json:"path"`
	Line    int    `json:"line"` // 0 when it is about the whole file
	Key     string `json:"key"`  // "" when it is about no setting
	Message string `json:"message"`
	Write   string `json:"write"`
}

// Sentence is the mistake without the file and what follows from it.
func (e *Error) Sentence() string {
	s := e.Message
	if e.Key != "" {
		s = e.Key + " " + s
	}
	if e.Write != "" {
		s += "; " + e.Write
	}
	return s
}

func (e *Error) Error() string {
	where := e.Path
	if e.Line > 0 {
		where = fmt.Sprintf("%s, line %d", e.Path, e.Line)
	}
	return fmt.Sprintf("%s: %s; until it is corrected the file is not used", where, e.Sentence())
}

// Errors are all mistakes of a file, in the order of its lines.
type Errors []*Error

// Error names the first one and how many there are.
func (e Errors) Error() string {
	switch len(e) {
	case 0:
		return "no mistakes"
	case 1:
		return e[0].Error()
	case 2:
		return e[0].Error() + ", and there is one more mistake ('holdfast config check' lists both)"
	}
	return fmt.Sprintf("%s, and there are %d more mistakes ('holdfast config check' lists them)", e[0].Error(), len(e)-1)
}

// Unwrap gives errors.As the first mistake.
func (e Errors) Unwrap() []error {
	out := make([]error, len(e))
	for i := range e {
		out[i] = e[i]
	}
	return out
}

// clip shortens what a file says, for an error.
func clip(s string) string {
	const most = 60
	s = strings.ToValidUTF8(s, "\uFFFD")
	if r := []rune(s); len(r) > most {
		return string(r[:most-1]) + "…"
	}
	return s
}

// plain writes a number without an exponent.
func plain(n float64) string { return strconv.FormatFloat(n, 'f', -1, 64) }
