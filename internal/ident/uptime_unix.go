//go:build linux || darwin

package ident

import (
	"time"

	"golang.org/x/sys/unix"
)

// Uptime is how long the machine has run, asleep or awake. Nobody sets it.
func Uptime() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(runningClock, &ts); err != nil {
		return awake()
	}
	return time.Duration(ts.Nano())
}
