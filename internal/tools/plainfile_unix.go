//go:build unix

package tools

import (
	"cmp"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// plainFolder opens the files of one folder for a search, which reads very many of them: with the four calls to the system that it takes. A file
// is reached by its own name in the folder that is open, never through a link.
type plainFolder struct{ dir *os.File }

func openPlainFolder(root *os.Root, path string) (plainFolder, error) {
	dir, err := root.OpenFile(path, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_DIRECTORY, 0)
	return plainFolder{dir}, err
}

func (p plainFolder) close() { _ = p.dir.Close() }

// open opens a regular file. A pipe or a device never blocks it.
func (p plainFolder) open(base string) (io.ReadSeekCloser, error) {
	conn, err := p.dir.SyscallConn()
	if err != nil {
		return nil, err
	}
	fd := -1
	cerr := conn.Control(func(dir uintptr) {
		fd, err = retried(func() (int, error) {
			return unix.Openat(int(dir), base, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		})
	})
	if cerr != nil || err != nil {
		return nil, cmp.Or(cerr, err)
	}
	var info unix.Stat_t
	if _, err = retried(func() (int, error) { return 0, unix.Fstat(fd, &info) }); err == nil && info.Mode&unix.S_IFMT != unix.S_IFREG {
		err = errNotRegular
	}
	if err != nil {
		_ = unix.Close(fd)
		return nil, err
	}
	return &plainFile{fd: fd, size: info.Size}, nil
}

// plainFile is a regular file that is read from its beginning, again after a Seek.
type plainFile struct {
	fd   int
	size int64 // when it was opened; 0 for those whose size is not known
	read int64
}

func (f *plainFile) Read(b []byte) (int, error) {
	if len(b) == 0 {
		return 0, nil
	}
	n, err := retried(func() (int, error) { return unix.Read(f.fd, b) })
	if err != nil {
		return 0, err
	}
	f.read += int64(n)
	if n == 0 || n < len(b) && f.size > 0 && f.read >= f.size {
		return n, io.EOF
	}
	return n, nil
}

// Seek goes to a place in the file.
func (f *plainFile) Seek(offset int64, whence int) (int64, error) {
	at, err := retried(func() (int, error) {
		n, err := unix.Seek(f.fd, offset, whence)
		return int(n), err
	})
	if err == nil {
		f.read = int64(at)
	}
	return int64(at), err
}

func (f *plainFile) Close() error { return unix.Close(f.fd) }

// retried makes a call to the system again when a signal came between.
func retried(call func() (int, error)) (int, error) {
	for {
		if n, err := call(); err != unix.EINTR {
			return n, err
		}
	}
}
