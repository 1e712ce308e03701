package worktree

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

const forgetLimit = 2 * time.Minute

// Forget removes recorded trees that belonged to a deleted session, and what only they held. kept are the trees that records still name. A tree
// that was recorded again since, or a moment ago while spare says that somebody works, stays for now: then left is not 0.
func (t *Tree) Forget(ctx context.Context, trees []string, since time.Time, spare bool, kept func() (map[string]bool, error)) (left int, err error) {
	all, err := os.ReadDir(filepath.Join(t.StateDir, "trees"))
	if errors.Is(err, fs.ErrNotExist) || len(trees) == 0 {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	ctx, cancel := context.WithTimeout(ctx, forgetLimit)
	defer cancel()
	gone := map[string]bool{}
	for _, name := range trees {
		gone[name] = true
	}
	for _, d := range all {
		if !d.IsDir() || !strings.HasSuffix(d.Name(), ".git") {
			continue
		}
		n, err := t.forgetIn(ctx, filepath.Join(t.StateDir, "trees", d.Name()), gone, since, spare, kept)
		if err != nil {
			return left, fmt.Errorf("forget recorded work trees: %w", err)
		}
		left += n
	}
	return left, nil
}

// forgetIn forgets in one private repository. The lock keeps whoever records a tree away from it.
func (t *Tree) forgetIn(ctx context.Context, dir string, gone map[string]bool, since time.Time, spare bool, kept func() (map[string]bool, error)) (int, error) {
	if names, err := refsOf(dir); err != nil || !anyOf(names, gone) {
		return 0, err
	}
	r := repo{dir: dir, top: dir, cwd: dir}
	lock, err := t.lock(ctx, r)
	if err != nil {
		return 0, err
	}
	defer lock.release()
	named, err := kept() // under the lock: what others recorded before is named by now, or young
	if err != nil {
		return 0, err
	}
	refs, err := refsOf(dir)
	if err != nil {
		return 0, err
	}
	removed, stay, left := 0, 0, 0
	for path, ref := range refs {
		switch {
		case !gone[ref.tree] || named[ref.tree]:
			stay++
		case spare && time.Since(ref.at) < young || ref.at.After(since):
			stay, left = stay+1, left+1
		default:
			if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return left, err
			}
			removed++
		}
	}
	if removed == 0 && stay > 0 {
		return left, nil
	}
	if stay == 0 && !spare {
		return 0, os.RemoveAll(dir)
	}
	// The index names what was recorded last, whoever's it was; without it the next record begins anew.
	if err := os.Remove(filepath.Join(dir, "index")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return left, err
	}
	for _, args := range [][]string{{"repack", "-a", "-d", "-q"}, {"prune", "--expire=now"}} {
		if _, err := r.git(ctx, lock.file, nil, nil, args...); err != nil {
			return left, err
		}
	}
	return left, nil
}

// named is a recorded tree as a private repository names it.
type named struct {
	tree string
	at   time.Time
}

// refsOf lists the names in a private repository by their files.
func refsOf(dir string) (map[string]named, error) {
	out := map[string]named{}
	err := filepath.WalkDir(filepath.Join(dir, "refs", "holdfast"), func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil || d.IsDir() {
			return err
		}
		st, err := d.Info()
		if err != nil {
			return err
		}
		b, err := os.ReadFile(path)
		out[path] = named{strings.TrimSpace(string(b)), st.ModTime()}
		return err
	})
	return out, err
}

func anyOf(refs map[string]named, gone map[string]bool) bool {
	for _, r := range refs {
		if gone[r.tree] {
			return true
		}
	}
	return false
}
