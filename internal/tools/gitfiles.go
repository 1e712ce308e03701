package tools

import (
	"bytes"
	"context"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"slices"
	"strings"
)

// askGit asks git, which knows its rules best, what it ignores in a folder. prefix is that folder as the search names it. It is nil where
// git cannot tell.
func askGit(ctx context.Context, dir, prefix string) rules {
	b, err := gitCommand(ctx, dir, "ls-files", "-z", "-oi", "--directory", "--exclude-standard").Output()
	if err != nil {
		return nil
	}
	g := gitRules{}
	for name := range bytes.SplitSeq(b, []byte{0}) {
		switch string(name) {
		case "":
		case "./": // everything in the folder is ignored, or the folder itself, which somebody then named on purpose
			if prefix == "." && ignored(ctx, dir) {
				return gitRules{}
			}
			return allIgnored{}
		default:
			g.add(path.Join(prefix, string(name)))
		}
	}
	return g
}

// allIgnored leaves out everything.
type allIgnored struct{}

func (allIgnored) ignored(string, bool) bool { return true }

func (a allIgnored) enter(string, []fs.DirEntry, func(string) ([]byte, error)) rules { return a }

// ignored tells whether git ignores a folder as a whole.
func ignored(ctx context.Context, dir string) bool {
	return gitCommand(ctx, dir, "check-ignore", "-q", ".").Run() == nil
}

// gitCommand looks at a repository without running anything that it configures, and wherever our own environment points.
func gitCommand(ctx context.Context, dir string, arguments ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "git", append([]string{"-c", "core.fsmonitor=false"}, arguments...)...)
	cmd.Dir = dir
	cmd.Env = append(slices.DeleteFunc(os.Environ(), func(kv string) bool { return strings.HasPrefix(kv, "GIT_") }), "GIT_OPTIONAL_LOCKS=0")
	return cmd
}
