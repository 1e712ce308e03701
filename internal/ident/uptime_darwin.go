package ident

import "golang.org/x/sys/unix"

const runningClock = unix.CLOCK_MONOTONIC // which goes on while the machine sleeps, unlike that of Linux
