package tools

import (
	"path/filepath"
	"strings"
)

// secretNames answers what secretFile does, for many files of one folder after the other: an automaton tells of nearly every name at once that
// it is none, and only the rest is held against the expressions. One goroutine uses it.
type secretNames struct {
	dfa   *lineDFA
	dir   string
	plain string // the folder as patterns see it, with a slash behind
}

func newSecretNames() *secretNames { return &secretNames{dfa: newLineDFA(secretFiles.String())} }

func (s *secretNames) enter(dir string) {
	s.dir, s.plain = dir, ""
	if p := plainPath(dir); p != "" {
		s.plain = p + "/"
	}
}

func (s *secretNames) holds(base string) bool {
	path := s.plain + plainName(base)
	if s.dfa != nil && !s.dfa.broken && !strings.Contains(path, "\n") && s.dfa.find([]byte(path)) < 0 {
		return false
	}
	return secretFile(filepath.Join(s.dir, base))
}
