//go:build !linux

package sandbox

import (
	"context"
	"syscall"
)

const udpABI = 10

// Main is the helper, which only Linux has.
func Main([]string) bool { return false }

// Probe says that there is no wall.
func Probe(context.Context, string) Wall {
	return Wall{Reason: "confining commands is there on Linux only"}
}

// NetworkFlags changes nothing here.
func NetworkFlags(*syscall.SysProcAttr, int, int) {}
