// Package ident tells processes and machines apart.
//
// A PID alone proves nothing: it is reused. A [Process] is its PID together with the time it started, in the kernel's own ticks since
// boot, the boot it belongs to, and the space its PID counts in. A machine is a keyed hash of the system's machine id, never the id
// itself.
//
// Linux is proven by tests. On macOS the same questions are answered by sysctl (untested); elsewhere, Windows included, they are
// refused with an error: nothing there is ever called dead or alive.
//
// It imports nothing of ours.
//
// Invariants:
//
//	I1: ErrGone and a false without an error are proofs; a question that could not be answered is another error.
//	I2: a signal reaches exactly the process it was meant for, or nobody.
package ident
