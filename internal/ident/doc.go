// Package ident tells processes and machines apart.
//
// A PID alone proves nothing: it is reused. A process is its PID together with the time it started, in the kernel's own ticks since
// boot, and the boot it belongs to. A machine is a keyed hash of the system's machine id, never the id itself.
//
// Linux is proven by tests. On macOS and others the functions work with less: what is missing there is said at each.
//
// It imports nothing of ours.
package ident

import "errors"

// Process identifies one process for as long as the machine exists.
type Process struct {
	PID   int    `json:"pid"`
	Start uint64 `json:"start"`
	Boot  string `json:"boot"`
}

// ErrGone: the process has ended, or its PID now belongs to another.
var ErrGone = errors.New("the process is gone")

// Alive tells whether exactly this process still runs. A zombie does not.
func (p Process) Alive() bool {
	now, err := Start(p.PID)
	return err == nil && now == p
}
