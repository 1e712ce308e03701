package tools

import (
	"bytes"
	"context"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// maxWalk bounds how many files a search looks at.
const maxWalk = 200_000

// files lists the files below a folder, relative to it and sorted: what git does not ignore when it lies in a repository, everything
// outside .git folders otherwise. Links are not followed.
func files(ctx context.Context, p place) ([]string, error) {
	if out, ok := gitFiles(ctx, p.abs); ok {
		return out, nil
	}
	root, err := os.OpenRoot(p.root)
	if err != nil {
		return nil, failf("%s cannot be searched: %v.", p.rel, plainError(err))
	}
	defer func() { _ = root.Close() }()
	var out []string
	err = fs.WalkDir(root.FS(), filepath.ToSlash(p.rel), func(path string, d fs.DirEntry, err error) error {
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil && path == filepath.ToSlash(p.rel):
			return failf("%s cannot be searched: %v.", p.rel, plainError(err))
		case err != nil:
			return nil // an unreadable folder does not end the search
		case d.IsDir() && d.Name() == ".git":
			return fs.SkipDir
		case len(out) >= maxWalk:
			return fs.SkipAll
		case d.Type().IsRegular():
			if rel, in := below(p.rel, filepath.FromSlash(path)); in {
				out = append(out, rel)
			}
		}
		return nil
	})
	slices.Sort(out)
	return out, err
}

// gitFiles asks git, which knows the ignore rules best.
func gitFiles(ctx context.Context, dir string) ([]string, bool) {
	cmd := exec.CommandContext(ctx, "git", "-c", "core.fsmonitor=false", "ls-files", "-z", "-co", "--exclude-standard")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_OPTIONAL_LOCKS=0")
	b, err := cmd.Output()
	if err != nil {
		return nil, false
	}
	var out []string
	for name := range bytes.SplitSeq(b, []byte{0}) {
		if len(name) > 0 && len(out) < maxWalk {
			out = append(out, filepath.FromSlash(string(name)))
		}
	}
	slices.Sort(out)
	return slices.Compact(out), true
}

// matchBase lets a pattern without a slash match in any folder.
func matchBase(pattern string) string {
	if !strings.Contains(pattern, "/") {
		return "**/" + pattern
	}
	return pattern
}
