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

const (
	maxWalk   = 200_000 // files a search looks at
	maxNested = 8       // repositories inside repositories
)

// walk finds the regular files below a place. Links are not followed, and the state directory is never entered (I2).
type walk struct {
	o     Options
	p     place
	root  *os.Root
	names []string // relative to the place
	cut   bool     // there are more than maxWalk
}

// files lists the files below a folder, sorted: what git does not ignore when the folder is part of a repository, everything outside .git
// folders otherwise. A folder that git ignores but that was named is listed whole.
func (o Options) files(ctx context.Context, p place) (*walk, error) {
	root, err := os.OpenRoot(p.root)
	if err != nil {
		return nil, failf("%s cannot be searched: %v.", p.rel, plainError(err))
	}
	defer func() { _ = root.Close() }()
	w := &walk{o: o, p: p, root: root}
	if ignored(ctx, p.abs) || !w.repository(ctx, ".", 0) {
		w.names = nil
		err = w.folders(ctx)
	}
	slices.Sort(w.names)
	w.names = slices.Compact(w.names)
	return w, err
}

// add takes one file when it is one.
func (w *walk) add(name string) {
	info, err := w.root.Lstat(filepath.Join(w.p.rel, name))
	if err != nil || !info.Mode().IsRegular() || w.o.ownRecord(filepath.Join(w.p.abs, name)) {
		return
	}
	if len(w.names) >= maxWalk {
		w.cut = true
		return
	}
	w.names = append(w.names, name)
}

// folders walks without git.
func (w *walk) folders(ctx context.Context) error {
	top := filepath.ToSlash(w.p.rel)
	return fs.WalkDir(w.root.FS(), top, func(path string, d fs.DirEntry, err error) error {
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil && path == top:
			return failf("%s cannot be searched: %v.", w.p.rel, plainError(err))
		case err != nil:
			return nil // an unreadable folder does not end the search
		case d.IsDir() && (d.Name() == ".git" || w.o.ownRecord(filepath.Join(w.p.root, filepath.FromSlash(path)))):
			return fs.SkipDir
		case w.cut:
			return fs.SkipAll
		case d.Type().IsRegular():
			if rel, in := below(w.p.rel, filepath.FromSlash(path)); in && rel != "." {
				w.add(rel)
			}
		}
		return nil
	})
}

// repository asks git, which knows the ignore rules best. Repositories inside are asked in turn: git names only their folder.
func (w *walk) repository(ctx context.Context, dir string, depth int) bool {
	b, err := gitCommand(ctx, filepath.Join(w.p.abs, dir), "ls-files", "-z", "-co", "--exclude-standard").Output()
	if err != nil {
		return false
	}
	for name := range bytes.SplitSeq(b, []byte{0}) {
		if len(name) == 0 {
			continue
		}
		inner := filepath.Join(dir, filepath.FromSlash(string(name)))
		if _, err := w.root.Lstat(filepath.Join(w.p.rel, inner, ".git")); err == nil && depth < maxNested {
			w.repository(ctx, inner, depth+1)
			continue
		}
		w.add(inner)
	}
	return true
}

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

// matchBase lets a pattern without a slash match in any folder.
func matchBase(pattern string) string {
	if !strings.Contains(pattern, "/") {
		return "**/" + pattern
	}
	return pattern
}

// cutMark says that a search did not see every file.
func (w *walk) cutMark() string {
	if !w.cut {
		return ""
	}
	return "\n[only the first files were looked at, there are too many; name a folder]"
}
