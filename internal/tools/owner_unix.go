//go:build unix

package tools

import (
	"io/fs"
	"os"
	"syscall"
)

// namesOf is how many names (hard links) a file has, 0 without a file.
func namesOf(info fs.FileInfo) uint64 {
	if info == nil {
		return 0
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0
	}
	return uint64(st.Nlink)
}

// keepOwner gives a replacement the owner of the file it replaces, as far as this user may.
func keepOwner(f *os.File, old fs.FileInfo) {
	was, ok := old.Sys().(*syscall.Stat_t)
	now, err := f.Stat()
	if !ok || err != nil {
		return
	}
	if is, ok := now.Sys().(*syscall.Stat_t); ok && (is.Uid != was.Uid || is.Gid != was.Gid) {
		_ = f.Chown(int(was.Uid), int(was.Gid)) // refused to ordinary users, whose own the new file then is
	}
}
