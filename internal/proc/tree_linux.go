package proc

import (
	"bytes"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// becomeSubreaper makes orphans of the command our children, so that they can be found.
func becomeSubreaper() { _ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) } // without it they escape, as on other systems

// descendants lists every living process below us.
func descendants() []int {
	var all []int
	todo := []int{os.Getpid()}
	for len(todo) > 0 {
		pid := todo[0]
		todo = todo[1:]
		for _, c := range children(pid) {
			if !zombie(c) {
				all = append(all, c)
			}
			todo = append(todo, c)
		}
	}
	return all
}

func children(pid int) []int {
	tasks, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	if err != nil {
		return nil
	}
	var out []int
	for _, t := range tasks {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%s/children", pid, t.Name()))
		if err != nil {
			continue
		}
		for _, f := range bytes.Fields(b) {
			if n, err := strconv.Atoi(string(f)); err == nil {
				out = append(out, n)
			}
		}
	}
	return out
}

func zombie(pid int) bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return true
	}
	rest := bytes.TrimSpace(b[bytes.LastIndexByte(b, ')')+1:])
	return len(rest) > 0 && rest[0] == 'Z'
}

// signalTree signals the command's group and every descendant that left it. They are our own children or theirs, so their PIDs
// cannot have been given to strangers while we look.
func signalTree(pid int, sig unix.Signal) {
	_ = unix.Kill(-pid, sig) // the group may be gone
	for _, p := range descendants() {
		_ = unix.Kill(p, sig)
	}
}

// reap collects orphans that ended. It is called only once the command itself was waited for.
func reap() {
	for {
		pid, err := unix.Wait4(-1, nil, unix.WNOHANG, nil)
		if err != nil || pid <= 0 {
			return
		}
	}
}
