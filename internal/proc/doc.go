// Package proc runs commands that outlive the process that started them.
//
// Each command has a supervisor: this binary under a hidden name, in a session of its own and reparented away from us, so that neither
// our death nor the end of an editor's process tree reaches it. The two share nothing but files in a private folder:
//
//	spec      what to run; written whole and made durable before anything starts
//	alive     locked by the supervisor for its whole life; the lock passes from us to it without a gap
//	starting  the supervisor's identity, before it starts the command
//	running   the command's identity, after
//	out       standard output and error, written by the command itself
//	stop      why somebody asked it to end
//	exit      the receipt: exit code, signal, times; its space is set aside before the command starts
//
// From these anybody can tell at any time which of seven [Verdict]s holds. A folder serves one command and is never used again. The
// values of the command's environment stay out of it: the supervisor inherits them in a file without a name.
//
// What the command leaves in the background is counted in the receipt and left running; nobody waits for it. A stop, the deadline and
// the output cap end the whole tree instead, processes in sessions of their own included.
//
// Linux is proven by tests. macOS lacks the subreaper, so what leaves the group and loses its parent escapes a stop there (untested).
// On Windows everything here returns an error.
//
// A machine that logs its user out, or a manager that ends a whole control group, may still end supervisor and command together; the
// outcome is unknown then, and the verdict says so.
//
// It imports internal/ident and internal/fault.
//
// Invariants:
//
//	I1: a free lock with no starting file, in the same boot, proves that the command never ran and never will.
//	I2: a receipt is complete or absent.
//	I3: nobody but the supervisor waits for, or ends, the command while the supervisor lives.
//	I4: the lock is visible only while it is held, or after its command's end: no look at it can get in the way of a start.
//	I5: a folder runs at most one command, once.
//	I6: the command inherits no descriptor but its three, and no ignored signal.
package proc
