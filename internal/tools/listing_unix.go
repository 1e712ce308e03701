//go:build unix

package tools

import (
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// listFolder reads the entries of an opened folder. What was opened below a root looks at every single entry again to tell its kind; a second
// handle of the same folder takes the kind from the listing, where the file system says it there.
func listFolder(dir *os.File) ([]fs.DirEntry, error) {
	conn, err := dir.SyscallConn()
	if err != nil {
		return nil, err
	}
	fd := -1
	if err := conn.Control(func(of uintptr) { fd, err = unix.FcntlInt(of, unix.F_DUPFD_CLOEXEC, 0) }); err != nil {
		return nil, err
	}
	if err != nil {
		return dir.ReadDir(-1)
	}
	again := os.NewFile(uintptr(fd), dir.Name())
	defer func() { _ = again.Close() }()
	return again.ReadDir(-1)
}
