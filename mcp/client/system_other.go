//go:build unix && !linux

package client

import (
	"time"

	"golang.org/x/sys/unix"

	"holdfast/internal/ident"
)

func ownGroup() *unix.SysProcAttr { return &unix.SysProcAttr{Setpgid: true} }

// awaitExit waits until a child has ended without collecting it, for which there is no portable call. Untested.
func awaitExit(pid int) string {
	for {
		if _, err := ident.Start(pid); err != nil {
			return "in an unknown way"
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// others cannot be told here.
func others(int) bool { return false }

// survivors lists the leaders that still run, by their start time; environments and groups are not shown here.
func survivors(known []record, _ []string) (left []ident.Process) {
	for _, r := range known {
		if r.Process.Alive() {
			left = append(left, r.Process)
		}
	}
	return left
}
