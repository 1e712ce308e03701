//go:build unix

package keys

import (
	"fmt"
	"os"
	"syscall"
)

// openPrivate opens a file that belongs to the user and is closed to others (I2). One that is merely open to others is closed to them first.
func openPrivate(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	st, err := f.Stat()
	if err == nil {
		sys, ok := st.Sys().(*syscall.Stat_t)
		switch {
		case !st.Mode().IsRegular():
			err = fmt.Errorf("%s is not a regular file; remove it", path)
		case !ok || int(sys.Uid) != os.Geteuid():
			err = fmt.Errorf("%s belongs to another user; remove it", path)
		case st.Mode().Perm()&0o077 != 0:
			err = f.Chmod(0o600)
		}
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}
