package client

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"

	"holdfast/internal/ident"
)

func ownGroup() *unix.SysProcAttr { return &unix.SysProcAttr{Setpgid: true, Pdeathsig: unix.SIGKILL} }

// awaitExit waits for the end of a child without giving its number back.
func awaitExit(pid int) string {
	var info unix.Siginfo
	for {
		err := unix.Waitid(unix.P_PID, pid, &info, unix.WEXITED|unix.WNOWAIT, nil)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return "in an unknown way"
		}
		break
	}
	return exitStatus(pid, int(info.Code))
}

// exitStatus asks the kernel for the status that Siginfo of the wrapper does not show.
func exitStatus(pid, code int) string {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	fields := bytes.Fields(b[bytes.LastIndexByte(b, ')')+1:])
	if err != nil || len(fields) < 50 {
		return "in an unknown way"
	}
	n, _ := strconv.Atoi(string(fields[49]))
	ws := unix.WaitStatus(n)
	const exited = 1 // CLD_EXITED
	if code == exited || ws.Exited() {
		return fmt.Sprintf("status %d", ws.ExitStatus())
	}
	return "killed by " + unix.SignalName(ws.Signal())
}

// others tells whether a group has running members beside its leader, who has ended.
func others(group int) bool {
	for pid, p := range processes() {
		if p.group == group && pid != group && !p.dead {
			return true
		}
	}
	return false
}

type process struct {
	group int
	dead  bool
}

// processes lists what the kernel shows us of running processes.
func processes() map[int]process {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer func() { _ = dir.Close() }()
	names, _ := dir.Readdirnames(-1) // what was read is used
	all := map[int]process{}
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue // not a process
		}
		if p, ok := lookAt(pid); ok {
			all[pid] = p
		}
	}
	return all
}

// lookAt reads about one process; false if it is gone, or hidden as another user's.
func lookAt(pid int) (process, bool) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	fields := bytes.Fields(b[bytes.LastIndexByte(b, ')')+1:])
	if err != nil || len(fields) < 18 {
		return process{}, false
	}
	group, err := strconv.Atoi(string(fields[2]))
	state := fields[0][0]
	return process{group: group, dead: state == 'X' || state == 'Z' && string(fields[17]) == "1"}, err == nil
}

// tagged tells whether a process carries a tag in its environment.
func tagged(pid int, tag string) bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	if err != nil {
		return false
	}
	for kv := range bytes.SplitSeq(b, []byte{0}) {
		if string(kv) == tagName+"="+tag {
			return true
		}
	}
	return false
}

// survivors lists what still runs of the launches: leaders whose identity and tag are right, what is in the group of such a leader, and
// what carries the tag in the group of a leader who is gone, or anywhere if nobody knows which group it was.
func survivors(known []record, tags []string) (left []ident.Process) {
	for pid, p := range processes() {
		if p.dead || pid == os.Getpid() || !belongs(pid, p, known, tags) {
			continue
		}
		// Once more, now that it has an identity: what is signalled later is what was looked at here, or nobody.
		self, err := ident.Start(pid)
		if p, ok := lookAt(pid); err == nil && ok && belongs(pid, p, known, tags) {
			left = append(left, self)
		}
	}
	return left
}

func belongs(pid int, p process, known []record, tags []string) bool {
	for _, r := range known {
		if p.group != r.PID {
			continue
		}
		if r.Tag != "" && tagged(pid, r.Tag) || r.Process.Alive() && (r.Tag == "" || tagged(r.PID, r.Tag)) {
			return true
		}
	}
	for _, tag := range tags {
		if tagged(pid, tag) {
			return true
		}
	}
	return false
}
