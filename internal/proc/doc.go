// Package proc runs commands that outlive the process that started them.
//
// Each command has a supervisor: this binary under a hidden name, in a session of its own and reparented away from us, so that neither
// our death nor the end of an editor's process tree reaches it. The two share nothing but files in a private folder:
//
//	spec      what to run; written whole before anything starts
//	alive     locked by the supervisor for its whole life; the lock passes from us to it without a gap
//	starting  the supervisor's identity, before it starts the command
//	running   the command's identity, after
//	out       standard output and error, written by the command itself
//	stop      why somebody asked it to end
//	exit      the receipt: exit code, signal, times; its space is set aside before the command starts
//
// From these anybody can tell at any time which of seven [Verdict]s holds. Linux is proven by tests; macOS lacks the subreaper and the
// children's lists, so processes that leave the group escape there (untested); Windows is refused.
//
// It imports internal/ident and internal/fault.
//
// Invariants:
//
//	I1: a free lock with no starting file, in the same boot, proves that the command never ran.
//	I2: a receipt is complete or absent.
//	I3: nobody but the supervisor waits for, or ends, the command while the supervisor lives.
package proc
