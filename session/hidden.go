package session

import (
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// readsAlike tells whether the parser takes a line for the same one command of plain words: two readers that know nothing of each other agree.
func readsAlike(line string, c CommandLine) bool {
	f := ReadFacts(line)
	if f.Unread || len(f.Parts) == 0 || len(f.Writes)+len(f.Inputs) > 0 {
		return false
	}
	direct := 0
	for _, p := range f.Parts {
		if !p.Inner {
			direct++
		}
	}
	first := f.Parts[0]
	if direct != 1 || len(first.Words) != len(c.Parts[0]) || !first.Words[0].Static {
		return false
	}
	for i, w := range first.Words {
		if w.Text != c.Parts[0][i] {
			return false
		}
	}
	return true
}

// carriesMore tells whether a command runs programs that the words of a rule do not name: those of "find" do not name what stands behind
// its -exec, and those of "timeout 9 make" name make.
func carriesMore(line string, words []string) bool {
	var quoted []string
	for _, w := range words {
		quoted = append(quoted, "'"+strings.ReplaceAll(w, "'", `'\''`)+"'")
	}
	own, all := ReadFacts(strings.Join(quoted, " ")), ReadFacts(line)
	return all.Hidden != "" && all.Hidden != own.Hidden || !slices.Equal(own.inner(), all.inner())
}

// inner are the programs that other parts of a line run.
func (f CommandFacts) inner() (out []string) {
	for _, p := range f.Parts {
		if p.Inner && len(p.Words) > 0 {
			out = append(out, p.Words[0].Text)
		}
	}
	return out
}

// mayRun tells whether a line may run a command without naming it openly: behind a wrapper, in a text that another command runs, in words that
// are made only when it runs, or in a way that hides it.
func mayRun(f CommandFacts, words []string) bool {
	if f.Hidden != "" || f.Unread {
		return true
	}
	return slices.ContainsFunc(f.Parts, func(p CommandPart) bool { return mayBe(p.Words, words) })
}

// mayBe holds the words of a part against those of a rule; a word that is not static may be any, or any number of them.
func mayBe(have []CommandWord, want []string) bool {
	for i, w := range want {
		switch {
		case i >= len(have):
			return false
		case !have[i].Static:
			return true
		case i == 0 && !strings.Contains(w, "/") && path.Base(have[i].Text) == w:
		case have[i].Text != w:
			return false
		}
	}
	return true
}

// decides is what in a call a rule is about, for the explanation.
func (r Rule) decides(b Subject) string {
	var words []string
	switch r.Kind {
	case RulePrefix:
		words = r.words()
	case RuleCommand:
		if c := ReadCommand(r.Value); len(c.Parts) == 1 {
			words = c.Parts[0]
		}
	case RuleHost:
		return b.Host
	case RuleEdit, RuleGlob:
		for _, p := range append(slices.Clone(b.Paths), b.Writes...) {
			if r.Kind == RuleEdit && within(r.Value, p) || r.Kind == RuleGlob && matches(r.pattern(b.Cwd), p) {
				return p
			}
		}
		return ""
	}
	if len(words) == 0 || b.Command == "" {
		return ""
	}
	f := ReadFacts(b.Command)
	for _, p := range f.Parts {
		if static := p.Static(); begins(static, words) || begins(Program(static), words) {
			return p.String()
		}
	}
	for _, p := range f.Parts {
		if mayBe(p.Words, words) {
			return p.String()
		}
	}
	if f.Hidden != "" && !mentions(b.Command, words) {
		return f.Hidden
	}
	return strings.Join(words, " ")
}

// From says where a rule comes from.
func (r Rule) From() string {
	switch {
	case r.Origin != "":
		return r.Origin
	case r.Approval != "":
		return "an answer with always"
	}
	return "added by hand"
}

// pattern is an absolute one: what a rule says without a directory counts below that of the rule, or of the session.
func (r Rule) pattern(cwd string) string {
	if filepath.IsAbs(r.Value) {
		return r.Value
	}
	if r.Cwd != "" {
		cwd = r.Cwd
	}
	return filepath.Join(escaped(cwd), r.Value)
}

// escaped takes the meaning away from characters of a directory's name that would be a pattern.
func escaped(dir string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`, "{", `\{`).Replace(dir)
}

// matches holds a path against a pattern, in which ** stands for any directories.
func matches(pattern, name string) bool {
	ok, err := doublestar.Match(pattern, filepath.ToSlash(name))
	return err == nil && ok
}

// ValidPattern tells whether a pattern can be read.
func ValidPattern(pattern string) bool { return doublestar.ValidatePattern(pattern) }
