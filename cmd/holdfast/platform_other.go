//go:build !unix

package main

import (
	"errors"
	"os"
	"syscall"
)

// unsupported says why this build does nothing but tell its version.
func unsupported() error {
	return errors.New("this build cannot work on Windows yet: it has no locks that prove a process dead, no supervised commands, no process trees to end " +
		"and no store. Use Linux, or WSL on Windows")
}

var errHere = errors.New("not available on this system")

const noFollow = 0

func silently(*os.File, func() error) error { return errHere }

func freeSpace(string) (uint64, error) { return 0, errHere }

func takeStdout() (*os.File, error) { return nil, errHere }

// politely is how a process is asked to end, also one that was stopped.
var politely = []syscall.Signal{syscall.SIGTERM}
