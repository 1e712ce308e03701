//go:build unix && !linux

package proc

import (
	"os"

	"golang.org/x/sys/unix"

	"holdfast/internal/ident"
)

const inherited = "/dev/fd" // where a process finds its own descriptors

// become has nothing to do here: orphans cannot be made our children.
func become() {}

// allocate sets disk space aside, as far as the file system does not compress. Untested.
func allocate(f *os.File, size int64) error {
	_, err := f.Write(make([]byte, size))
	return err
}

// left lists what still runs of a command, or at least one of it: its group and what is below us. Untested.
func left(group int) ([]ident.Process, error) {
	list, err := ident.Descendants(os.Getpid())
	if len(list) == 0 && unix.Kill(-group, 0) == nil {
		list = []ident.Process{{PID: group}} // somebody; the group's signal will reach it
	}
	return list, err
}
