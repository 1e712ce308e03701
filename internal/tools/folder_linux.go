package tools

import (
	"os"

	"golang.org/x/sys/unix"
)

// exchange puts each of two files in the other's place, in one step.
func (d folder) exchange(a, b string) error {
	return withDir(d, func(fd int) error { return unix.Renameat2(fd, a, fd, b, unix.RENAME_EXCHANGE) })
}

// linkTo gives a file a second name in another folder; one that is there stays.
func (d folder) linkTo(name string, to folder, as string) error {
	return withDir(d, func(from int) error {
		return withDir(to, func(fd int) error { return unix.Linkat(from, name, fd, as, 0) })
	})
}

func withDir(d folder, do func(fd int) error) error {
	f, err := d.Open(".")
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	if err := do(int(f.Fd())); err != nil {
		return &os.PathError{Op: "rename", Path: d.path, Err: err}
	}
	return nil
}
