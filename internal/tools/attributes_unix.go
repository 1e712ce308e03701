//go:build linux || darwin

package tools

import (
	"bytes"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// foldsModes: files have no permission to run them here.
const foldsModes = false

// keepAttributes gives a replacement the extended attributes (access lists among them) of the file it replaces, as far as this user may, and
// says when some are lost.
func (d folder) keepAttributes(name string, f *os.File) string {
	old, _, err := d.open(name)
	if err != nil {
		return ""
	}
	defer func() { _ = old.Close() }()
	size, err := unix.Flistxattr(int(old.Fd()), nil)
	if err != nil || size == 0 {
		return ""
	}
	list := make([]byte, size)
	if size, err = unix.Flistxattr(int(old.Fd()), list); err != nil {
		return ""
	}
	lost := 0
	for name := range bytes.SplitSeq(bytes.TrimSuffix(list[:size], []byte{0}), []byte{0}) {
		if err := copyAttribute(int(old.Fd()), int(f.Fd()), string(name)); err != nil && !bytes.HasPrefix(name, []byte("security.")) { // the system's own
			lost++
		}
	}
	if lost > 0 {
		return fmt.Sprintf(" %d extended attribute(s) could not be kept.", lost)
	}
	return ""
}

func copyAttribute(from, to int, name string) error {
	size, err := unix.Fgetxattr(from, name, nil)
	if err != nil {
		return err
	}
	value := make([]byte, size)
	if size > 0 {
		if size, err = unix.Fgetxattr(from, name, value); err != nil {
			return err
		}
	}
	return unix.Fsetxattr(to, name, value[:size], 0)
}
