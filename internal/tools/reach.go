package tools

import (
	"path/filepath"
	"slices"
	"strings"

	"holdfast/internal/sandbox"
	"holdfast/session"
)

// reach reads the command of a plan: how far it goes, what in it says so, and which files its redirections name.
func (o Options) commandReach(env session.ToolEnv, pl *session.Plan) {
	f := session.ReadFacts(pl.Command)
	scope := session.Scope{Cwd: env.Cwd, Inside: o.insideOf(env), Real: realPath, Secret: o.secretWord,
		Obeyed: func(name string) bool { return obeyed.MatchString(plainPath(name)) }, Expand: expand}
	pl.Reach, pl.Decides = f.Reach(scope)
	if pl.Reach == session.ReachNetwork && o.Sandbox != nil && o.Sandbox.Network {
		pl.Reach = session.ReachWorks
	}
	pl.Touches = f.Touched(scope)
	for _, w := range f.Writes {
		name := w.Text
		if !strings.HasPrefix(name, "/") {
			name = env.Cwd + "/" + name
		}
		if w.Static {
			pl.Writes = append(pl.Writes, realPath(name))
		}
	}
}

// expand lists what a pattern of the shell names. What it cannot read names nothing.
func expand(pattern string) []string {
	found, err := filepath.Glob(pattern)
	if err != nil {
		return nil
	}
	return found
}

// insideOf are the roots, and the folders for temporary files in which none of them lies.
func (o Options) insideOf(env session.ToolEnv) []string {
	dirs := realRoots(env)
	for _, tmp := range sandbox.Temporary(env.Env) {
		holds := func(dir string) bool { _, in := below(tmp, dir); return in }
		if !slices.ContainsFunc(dirs, holds) && !holds(realPath(o.StateDir)) {
			dirs = append(dirs, realPath(tmp))
		}
	}
	return dirs
}

// realPath is a path with its links resolved; one that cannot be looked at lies nowhere.
func realPath(path string) string {
	real, err := resolveLinks(path)
	if err != nil {
		return "/"
	}
	return real
}

// secretWord tells whether a word of a command names something that holds keys, or our own records.
func (o Options) secretWord(word string) bool {
	return secretFile(word) || strings.HasPrefix(word, "/") && o.ownRecord(realPath(word))
}
