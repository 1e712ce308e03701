// Package fault names the instants at which the process may die.
//
// A crash point sits before and after every commit and every outside action. In an ordinary build [Point] is empty and the
// compiler removes it. A binary built with the tag "faultpoints" reads HOLDFAST_CRASH and acts when the named point is reached.
//
// HOLDFAST_CRASH holds one or more comma-separated specs NAME[/N][/ACTION]: the N-th time (default 1) the point NAME is
// reached, do ACTION (default "kill"):
//
//	kill   SIGKILL this process
//	stop   SIGSTOP this process
//	exit   exit with status 70, without running deferred functions
//	pause  wait until the file named by HOLDFAST_CRASH_RESUME exists, then go on
//
// A point that fires appends one line "NAME ACTION PID" to the file named by HOLDFAST_CRASH_LOG (when set) before acting, so
// that a test can prove it fired. The variables are removed from the environment at start, so that no child inherits them.
//
// HOLDFAST_WITHOUT holds comma-separated names from Workarounds: what a peculiar client makes necessary, and what a faultpoints build then
// leaves out, so that a test can prove that it would be missed. In an ordinary build [Without] is always false.
//
// HOLDFAST_PRETEND holds comma-separated FACT=VALUE of what a faultpoints build takes for a fact of the system, where a test cannot arrange it:
// "fs=nfs" is the type of the file system that the state folder is on. In an ordinary build [Pretend] is always empty.
//
// HOLDFAST_TRACE names a folder. Each process of a faultpoints build writes down there what its transactions did with the ownership of
// sessions, and when; see internal/store/trace_on.go.
//
// Points lists every name. Reaching a point whose name is not listed panics in a faultpoints build, and a test parses the
// sources and compares.
package fault
