package worktree

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

const (
	pruneLimit = 20 * time.Second
	pruneEvery = 24 * time.Hour
	// young things may belong to work that has not stored yet what it recorded.
	young = time.Hour
)

// Prune removes what no record refers to any more, at most once a day and for a bounded time. kept are the trees that records name.
func (t *Tree) Prune(ctx context.Context, kept func() (map[string]bool, error)) error {
	mark := filepath.Join(t.StateDir, "trees", "pruned")
	if st, err := os.Stat(mark); err == nil && time.Since(st.ModTime()) < pruneEvery {
		return nil
	}
	all, err := os.ReadDir(filepath.Join(t.StateDir, "trees"))
	if errors.Is(err, fs.ErrNotExist) || !t.hasGit() {
		return nil
	}
	if err != nil {
		return err
	}
	if err := os.WriteFile(mark, nil, 0o600); err != nil { // first: what fails is not tried at each launch
		return err
	}
	names, err := kept()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, pruneLimit)
	defer cancel()
	var errs []error
	for _, d := range all {
		dir := filepath.Join(t.StateDir, "trees", d.Name())
		switch {
		case ctx.Err() != nil:
			return errors.Join(errs...)
		case !d.IsDir():
		case !strings.HasSuffix(d.Name(), ".git"):
			errs = append(errs, os.RemoveAll(dir)) // of an earlier version, which kept them by session
		default:
			errs = append(errs, t.pruneOne(ctx, dir, names))
		}
	}
	return errors.Join(errs...)
}

// pruneOne prunes one private repository, unless somebody uses it.
func (t *Tree) pruneOne(ctx context.Context, dir string, kept map[string]bool) error {
	quick, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
	defer cancel()
	r := repo{dir: dir, top: dir, cwd: dir}
	lock, err := t.lock(quick, r)
	if err != nil {
		return nil // it is in use; another day
	}
	defer lock.release()
	removed, left, err := dropRefs(dir, kept)
	switch {
	case err != nil || removed == 0 && left > 0:
		return err
	case left == 0:
		st, err := os.Stat(dir)
		if err != nil || time.Since(st.ModTime()) < young {
			return err
		}
		return os.RemoveAll(dir)
	}
	_, err = r.git(ctx, lock.file, []string{"GIT_INDEX_FILE=" + filepath.Join(dir, "index")}, nil, "prune", "--expire=1.hour.ago")
	return err
}

// dropRefs removes the names of trees that no record refers to.
func dropRefs(dir string, kept map[string]bool) (removed, left int, err error) {
	refs, err := refsOf(dir)
	if err != nil {
		return 0, 0, err
	}
	for path, r := range refs {
		if kept[r.tree] || time.Since(r.at) < young {
			left++
			continue
		}
		if err := os.Remove(path); err != nil {
			return removed, left, err
		}
		removed++
	}
	return removed, left, nil
}
