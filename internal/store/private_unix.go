//go:build unix

package store

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// private looks at everything that lies directly in the state folder and its run folder. What is open to other users is closed; what belongs to
// another user is refused: it could be changed under us, and a socket of somebody else would hear us. Folders below are behind a closed door.
func (h home) private() error {
	for _, dir := range []string{string(h), h.run()} {
		entries, err := os.ReadDir(dir)
		if err != nil {
			return unwritable(err)
		}
		for _, e := range entries {
			if err := closeToOthers(filepath.Join(dir, e.Name())); err != nil {
				return err
			}
		}
	}
	return mine(string(h))
}

func closeToOthers(path string) error {
	st, err := os.Lstat(path)
	if err != nil || st.Mode()&fs.ModeSymlink != 0 {
		return nil // gone meanwhile; what a link leads to is not ours to change
	}
	if err := mine(path); err != nil {
		return err
	}
	if st.Mode().Perm()&0o077 == 0 {
		return nil
	}
	if err := os.Chmod(path, st.Mode().Perm()&0o700); err != nil && !os.IsNotExist(err) {
		return unwritable(err)
	}
	return nil
}

// mine refuses what belongs to another user. Root may work on what is a user's.
func mine(path string) error {
	st, err := os.Lstat(path)
	if err != nil {
		return nil
	}
	sys, ok := st.Sys().(*syscall.Stat_t)
	if !ok || int(sys.Uid) == os.Geteuid() || os.Geteuid() == 0 {
		return nil
	}
	return &OpenError{CodeUnwritable, fmt.Sprintf("%s belongs to another user (%d).", path, sys.Uid),
		"Remove it, or choose another folder with HOLDFAST_HOME.", nil}
}
