//go:build unix

package main

import (
	"errors"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
)

// unsupported says what is missing on this system; nothing.
func unsupported() error { return nil }

// noFollow keeps a link from leading a file of ours elsewhere.
const noFollow = unix.O_NOFOLLOW

// silently reads with the terminal's echo off.
func silently(f *os.File, read func() error) error {
	fd := int(f.Fd())
	old, err := unix.IoctlGetTermios(fd, getTermios)
	if err != nil {
		return os.NewSyscallError("look at the terminal", err)
	}
	quiet := *old
	quiet.Lflag &^= unix.ECHO
	if err := unix.IoctlSetTermios(fd, setTermios, &quiet); err != nil {
		return os.NewSyscallError("switch the echo off", err)
	}
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, os.Interrupt, unix.SIGTERM, unix.SIGHUP)
	defer signal.Stop(stop)
	done := make(chan error, 1)
	go func() { done <- read() }() // ends with its line, or with the process
	defer func() { _ = unix.IoctlSetTermios(fd, setTermios, old) }()
	select {
	case err := <-done:
		return err
	case <-stop:
		return errors.New("interrupted; nothing was changed")
	}
}

// freeSpace is how many bytes a folder's disk has left for us.
func freeSpace(dir string) (uint64, error) {
	var fs unix.Statfs_t
	if err := unix.Statfs(dir, &fs); err != nil {
		return 0, err
	}
	return uint64(fs.Bavail) * uint64(fs.Bsize), nil //nolint:unconvert // the widths differ between systems
}

// takeStdout takes the real output for the protocol and leaves everybody else, C code and children included, one that goes nowhere.
func takeStdout() (*os.File, error) {
	fd, err := unix.FcntlInt(os.Stdout.Fd(), unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		return nil, os.NewSyscallError("take the standard output", err)
	}
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = null.Close() }()
	if err := unix.Dup2(int(null.Fd()), int(os.Stdout.Fd())); err != nil {
		return nil, os.NewSyscallError("point the standard output elsewhere", err)
	}
	return os.NewFile(uintptr(fd), "stdout"), nil
}

// politely is how a process is asked to end, also one that was stopped.
var politely = []syscall.Signal{syscall.SIGTERM, syscall.SIGCONT}
