//go:build unix

package worktree

import (
	"fmt"
	"io/fs"
	"syscall"
)

func fileID(st fs.FileInfo) string {
	if s, ok := st.Sys().(*syscall.Stat_t); ok {
		return fmt.Sprintf("%d:%d", s.Dev, s.Ino)
	}
	return "unknown"
}
