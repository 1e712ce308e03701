package proc

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"holdfast/internal/ident"
)

const inherited = "/proc/self/fd" // where a process finds its own descriptors

// become prepares this process for being a supervisor: orphans of the command become our children, so that they can be found.
func become() {
	_ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)        // without it they escape, as on other systems
	_ = os.WriteFile("/proc/self/comm", []byte("holdfast-run"), 0) // for people who list processes
}

// allocate sets disk space aside. Not every file system can; writing zeros is the next best.
func allocate(f *os.File, size int64) error {
	err := unix.Fallocate(int(f.Fd()), 0, 0, size)
	if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOSYS) {
		_, err = f.Write(make([]byte, size))
	}
	return err
}

// left lists what still runs of a command: everything below its supervisor, as every orphan is its child.
func left(int) ([]ident.Process, error) {
	if err := unix.Waitid(unix.P_ALL, 0, nil, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil); errors.Is(err, unix.ECHILD) {
		return nil, nil // the common case, without reading about every process of the machine
	}
	list, err := ident.Descendants(os.Getpid())
	if err != nil {
		return nil, fmt.Errorf("list what is left: %w", err)
	}
	return list, nil
}
