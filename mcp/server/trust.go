package server

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
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
		if holds(root, real) {
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

// holds tells whether dir, which is resolved, is root or lies in it.
func holds(root, dir string) bool {
	root, err := filepath.EvalSymlinks(root)
	if err != nil {
		return false
	}
	if root == filepath.Dir(root) {
		return dir == root // an editor that was launched without a folder: nobody meant to trust everything
	}
	return dir == root || strings.HasPrefix(dir, root+string(filepath.Separator))
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
				if !seen[root] && holds(root, dir) {
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
