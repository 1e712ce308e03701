package ident

import "golang.org/x/sys/unix"

const runningClock = unix.CLOCK_BOOTTIME
