//go:build unix

package instance

import (
	"os"
	"syscall"
)

// ours tells whether a path names nothing, or a file of this user that is no link: nobody else's socket is rung, and none is replaced.
func ours(path string) bool {
	st, err := os.Lstat(path)
	if err != nil {
		return os.IsNotExist(err)
	}
	sys, ok := st.Sys().(*syscall.Stat_t)
	return ok && int(sys.Uid) == os.Geteuid() && st.Mode()&os.ModeSymlink == 0
}
