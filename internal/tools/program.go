package tools

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"strings"

	"holdfast/session"
)

var _ session.Witness = shellTool{}

// interpreters run the files that their arguments name.
var interpreters = regexp.MustCompile(`^(sh|bash|dash|ash|zsh|ksh|fish|source|\.|python[0-9.]*|node|deno|bun|ruby|perl|php|lua|Rscript|osascript|awk|sed|make|gmake)$`)

// recipes are the files that a program reads its work from when nothing else is named.
var recipes = map[string][]string{
	"make": {"GNUmakefile", "makefile", "Makefile"}, "gmake": {"GNUmakefile", "makefile", "Makefile"},
	"just": {"justfile", "Justfile", ".justfile"},
	"npm":  {"package.json"}, "npx": {"package.json"}, "pnpm": {"package.json"}, "yarn": {"package.json"}, "bun": {"package.json"},
}

// maxProgram is how much of a file is read for its digest; a larger one goes by its size and time.
const maxProgram = 16 << 20

// Programs are the files inside the workspace that the command names as what it runs: its program, a script, a makefile. A question about
// the command is bound to them. What a script runs in turn is not looked for.
func (t shellTool) Programs(env session.ToolEnv, pl session.Plan) []session.FileState {
	var out []session.FileState
	seen := map[string]bool{}
	in := env // follows a change of folder on the line
	add := func(name string, absent bool) {
		p, err := t.o.locate(in, name)
		if err != nil || seen[p.abs] {
			return
		}
		if d := fileState(p); absent || d != "absent" {
			seen[p.abs] = true
			out = append(out, session.FileState{Path: p.abs, Digest: d})
		}
	}
	for _, part := range session.ReadCommand(pl.Command).Parts {
		words := session.Program(part)
		if len(words) == 0 {
			continue
		}
		name := filepath.Base(words[0])
		if name == "cd" && len(words) == 2 {
			cwd := in.Cwd
			if in.Cwd = words[1]; !filepath.IsAbs(words[1]) {
				in.Cwd = filepath.Join(cwd, words[1])
			}
			continue
		}
		if strings.Contains(words[0], "/") {
			add(words[0], true)
		}
		for _, r := range recipes[name] {
			add(r, true)
		}
		if !interpreters.MatchString(name) {
			continue
		}
		for i, w := range words[1:] {
			if name == "make" && words[i] == "-C" { // the word before
				for _, r := range recipes[name] {
					add(filepath.Join(w, r), true)
				}
			}
			add(strings.TrimPrefix(w, "--file="), false)
		}
	}
	return out
}

// fileState is a file's digest; what is no readable file is "absent".
func fileState(p place) string {
	f, info, err := p.openFile()
	if err != nil {
		return "absent" // for a command there is nothing to run
	}
	defer func() { _ = f.Close() }()
	if info.Size() > maxProgram {
		return fmt.Sprintf("large:%d:%d", info.Size(), info.ModTime().UnixNano())
	}
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "unreadable"
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil))
}
