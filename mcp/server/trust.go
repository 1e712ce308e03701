package server

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"holdfast/session"
)

// trusted resolves a directory that a client named and checks that the user trusts it: it is, or lies in, one named at the launch, or a
// root of a stored session. Links are resolved on both sides, so that none leads out.
func (c call) trusted(ctx context.Context, dir string) (string, error) {
	real, err := resolve(dir)
	if err != nil {
		return "", err
	}
	for _, root := range c.s.o.Trust {
		if root, err := filepath.EvalSymlinks(root); err == nil && within(root, real) {
			return real, nil
		}
	}
	ok, err := c.ofSession(ctx, real)
	if err != nil {
		return "", err
	}
	if !ok {
		return "", &untrustedError{real}
	}
	return real, nil
}

func resolve(dir string) (string, error) {
	if !filepath.IsAbs(dir) {
		return "", invalid("cwd", "%q is not an absolute path", dir)
	}
	real, err := filepath.EvalSymlinks(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", invalid("cwd", "the directory %s does not exist", dir)
	case err != nil:
		return "", invalid("cwd", "the directory %s cannot be read", dir)
	}
	if st, err := os.Stat(real); err != nil || !st.IsDir() {
		return "", invalid("cwd", "%s is not a directory", dir)
	}
	return real, nil
}

// opened tells whether a root that a user opened in an editor holds a resolved directory. The whole disk does not count: it is what an
// editor has that was launched without a folder.
func opened(root, dir string) bool {
	root, err := filepath.EvalSymlinks(root)
	return err == nil && root != filepath.Dir(root) && within(root, dir)
}

// within tells whether dir is root or lies in it; both are resolved.
func within(root, dir string) bool {
	rel, err := filepath.Rel(root, dir)
	return err == nil && filepath.IsLocal(rel)
}

// ofSession looks through the roots of every stored session, a page at a time.
func (c call) ofSession(ctx context.Context, dir string) (bool, error) {
	const pageSize = 500
	seen, at, id := map[string]bool{}, time.Time{}, session.SessionID("")
	for {
		var all []session.Session
		err := c.read(ctx, func(tx session.Tx) (err error) { all, err = tx.Sessions("", at, id, pageSize); return err })
		if err != nil {
			return false, err
		}
		for _, s := range all {
			for _, root := range s.Roots {
				if !seen[root] && opened(root, dir) {
					return true, nil
				}
				seen[root] = true
			}
		}
		if len(all) < pageSize {
			return false, nil
		}
		at, id = all[len(all)-1].UpdatedAt, all[len(all)-1].ID
	}
}
