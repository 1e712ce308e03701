//go:build unix

package config

import "syscall"

// nonblock keeps an open from waiting, should a pipe have taken the place of a file that was looked at.
const nonblock = syscall.O_NONBLOCK
