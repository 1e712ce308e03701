//go:build linux

package proc

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"holdfast/internal/ident"
)

// forest is a command with children of every kind: one that ignores TERM, one in a session of its own, one that lost its parent too.
const forest = `sh -c 'trap "" TERM; echo $$ > stubborn; while :; do sleep 1; done' &
setsid sh -c 'echo $$ > escaped; exec sleep 60' &
(setsid sh -c 'trap "" TERM HUP; echo $$ > daemon; while :; do sleep 1; done' &)
wait`

func plant(t *testing.T, change func(*Spec)) (*Handle, []ident.Process) {
	t.Helper()
	s := counting(newDir(t), forest)
	if change != nil {
		change(&s)
	}
	h := start(t, s)
	var tree []ident.Process
	for _, name := range []string{"stubborn", "escaped", "daemon"} {
		tree = append(tree, identify(t, filepath.Join(s.Dir, name)))
	}
	return h, tree
}

func gone(t *testing.T, tree []ident.Process) {
	t.Helper()
	for i, p := range tree {
		if p.Alive() {
			t.Errorf("process %d of the tree survived", i)
			_ = ident.Signal(p, syscall.SIGKILL)
		}
	}
}

func TestHandle_StopEndsTheWholeTree(t *testing.T) {
	h, tree := plant(t, nil)
	r, err := h.Stop(within(t), "a reason")
	if err != nil || r.Stopped != "a reason" || r.Signal != "SIGTERM" || r.Left != 0 {
		t.Errorf("receipt %v, %v", r, err)
	}
	gone(t, tree)
	if s := verdict(t, h); s.Verdict != Done || s.Result.Stopped != "a reason" {
		t.Errorf("state %+v", s)
	}
	if r, err := h.Stop(within(t), "another"); err != nil || r.Stopped != "a reason" {
		t.Errorf("stopped once more: %v, %v", r, err)
	}
}

func TestHandle_DeadlineEndsTheWholeTree(t *testing.T) {
	h, tree := plant(t, func(s *Spec) { s.Timeout = 3 * time.Second })
	if r := finished(t, h); r.Stopped != CauseDeadline || r.Left != 0 {
		t.Errorf("receipt %v", r)
	}
	gone(t, tree)
}

func TestHandle_OutputCapEndsTheWholeTree(t *testing.T) {
	h, tree := plant(t, func(s *Spec) {
		s.OutputCap = 100_000
		s.Argv[2] = strings.Replace(s.Argv[2], "wait", "while [ ! -e go ]; do sleep 0.01; done; yes", 1)
	})
	if err := os.WriteFile(path(h.dir, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if r := finished(t, h); r.Stopped != CauseOutputCap || r.OutputBytes <= 100_000 || r.Left != 0 {
		t.Errorf("receipt %v", r)
	}
	gone(t, tree)
}

func TestHandle_StopOfACommandThatIgnoresIt(t *testing.T) {
	dir := newDir(t)
	h := start(t, counting(dir, "trap '' TERM INT HUP; echo $$ > up; while :; do sleep 0.1; done"))
	identify(t, filepath.Join(dir, "up"))
	if r, err := h.Stop(within(t), ""); err != nil || r.Stopped != CauseUser || r.Signal != "SIGKILL" || r.ExitCode != nil {
		t.Errorf("receipt %v, %v", r, err)
	}
}

func TestHandle_StopOfACommandThatEndsItself(t *testing.T) {
	dir := newDir(t)
	h := start(t, counting(dir, "trap 'echo bye; exit 9' TERM; echo $$ > up; while :; do sleep 0.01; done"))
	identify(t, filepath.Join(dir, "up"))
	r, err := h.Stop(within(t), CauseUser)
	if err != nil || r.Stopped != CauseUser || !exited(r, 9) {
		t.Errorf("receipt %v, %v", r, err)
	}
	if v, err := h.Output(100, false); err != nil || !strings.HasSuffix(string(v.Head), "bye\n") {
		t.Errorf("output %q, %v", v.Head, err)
	}
}

func TestHandle_StopFromManySides(t *testing.T) {
	h := start(t, counting(newDir(t), "sleep 60"))
	var wg sync.WaitGroup
	for range 6 {
		wg.Go(func() {
			if r, err := h.Stop(within(t), CauseUser); err != nil || r.Stopped != CauseUser {
				t.Errorf("receipt %v, %v", r, err)
			}
		})
	}
	wg.Wait()
}

// A stop that comes while the supervisor is still starting up finds it later: the command never runs.
func TestHandle_StopBeforeTheCommandStarts(t *testing.T) {
	log, resume := filepath.Join(t.TempDir(), "log"), filepath.Join(t.TempDir(), "resume")
	t.Setenv("HOLDFAST_SUPERVISOR_CRASH", "supervisor.claimed/pause")
	t.Setenv("HOLDFAST_SUPERVISOR_CRASH_LOG", log)
	t.Setenv("HOLDFAST_SUPERVISOR_CRASH_RESUME", resume)
	dir := newDir(t)
	h, err := Start(counting(dir, "exit 0"))
	if err != nil {
		t.Fatal(err)
	}
	paused(t, log)
	type end struct {
		r   Result
		err error
	}
	ends := make(chan end, 1)
	go func() { // received below
		r, err := h.Stop(within(t), "a reason")
		ends <- end{r, err}
	}()
	eventually(t, "the stop is written down", func() bool { _, err := os.Stat(path(dir, "stop")); return err == nil })
	if s := verdict(t, h); s.Verdict != Live || s.Supervisor.PID != 0 {
		t.Errorf("state %+v", s)
	}
	if err := os.WriteFile(resume, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if e := <-ends; e.err != nil || e.r.Stopped != "a reason" || e.r.Failure == "" || e.r.ExitCode != nil {
		t.Errorf("receipt %v, %v", e.r, e.err)
	}
	if n := runs(t, dir); n != 0 {
		t.Errorf("ran %d times", n)
	}
}

// What stays in the background neither holds anything up nor is ended, even with the output in its hands.
func TestHandle_GrandchildWithTheOutputDoesNotHang(t *testing.T) {
	dir := newDir(t)
	h := start(t, counting(dir, "sh -c 'echo $$ > left; exec sleep 60' & while [ ! -s left ]; do :; done; echo done"))
	r := finished(t, h)
	left := identify(t, filepath.Join(dir, "left"))
	t.Cleanup(func() { _ = ident.Signal(left, syscall.SIGKILL) })
	if !exited(r, 0) || r.Left != 1 {
		t.Errorf("receipt %v", r)
	}
	if !left.Alive() {
		t.Error("the process in the background was ended")
	}
	if s := verdict(t, h); s.Verdict != Done || s.Supervisor.Alive() {
		t.Errorf("state %+v, the supervisor lives: %v", s, s.Supervisor.Alive())
	}
}

// Orphans that end while a command goes on are collected.
func TestSupervisor_LeavesNoZombies(t *testing.T) {
	dir := newDir(t)
	h := start(t, counting(dir, "i=0; while [ $i -lt 20 ]; do (sh -c 'sleep 0.01' &); i=$((i+1)); done; echo $$ > up; sleep 60"))
	identify(t, filepath.Join(dir, "up"))
	s := running(t, h)
	zombie := regexp.MustCompile(fmt.Sprintf(`\) Z %d `, s.Supervisor.PID))
	eventually(t, "only the command is left, and no zombie", func() bool {
		below, err := ident.Descendants(s.Supervisor.PID)
		if err != nil {
			t.Fatal(err)
		}
		stats, err := filepath.Glob("/proc/[0-9]*/stat")
		if err != nil {
			t.Fatal(err)
		}
		zombies := 0
		for _, f := range stats {
			if b, err := os.ReadFile(f); err == nil && zombie.Match(b) {
				zombies++
			}
		}
		return zombies == 0 && len(below) <= 2 // the shell and its sleep
	})
}

// I6, with a launcher that was itself started with ignored signals and a pipe it does not know about.
func TestCommand_InheritsNothing(t *testing.T) {
	dir := newDir(t)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Close() }()
	cmd := exec.Command("/bin/sh", "-c", `trap "" HUP INT QUIT PIPE TSTP TTIN TTOU; exec "$0"`, os.Args[0])
	cmd.ExtraFiles = []*os.File{w, w, w, w, w}
	cmd.Env = append(os.Environ(), "PROC_TEST_LAUNCH="+dir,
		"PROC_TEST_COMMAND=exec 2>&1; ls -l /proc/$$/fd; cat /proc/self/status; echo > up; while [ ! -e go ]; do sleep 0.01; done")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	cleanup(t, Open(dir))
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // a second time
	})
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	h := Open(dir)
	eventually(t, "the command is up", func() bool { _, err := os.Stat(path(dir, "up")); return err == nil })
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // killed
	// With the launcher nobody holds the pipe any more, though the command runs on: its reader sees the end at once.
	if err := r.SetReadDeadline(time.Now().Add(limit)); err != nil {
		t.Fatal(err)
	}
	if b, err := io.ReadAll(r); err != nil || len(b) != 0 {
		t.Errorf("the pipe of the launcher is still held: %v", err)
	}
	if s := verdict(t, h); s.Verdict != Live {
		t.Errorf("verdict %s", s.Verdict)
	}
	if err := os.WriteFile(path(dir, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	finished(t, h)
	v, err := h.Output(100_000, false)
	if err != nil {
		t.Fatal(err)
	}
	fds := regexp.MustCompile(`(\d+) -> (.*)`).FindAllStringSubmatch(string(v.Head), -1)
	for _, fd := range fds {
		shells := fd[1] == "10" || fd[1] == "255" // a shell keeps a copy of its own for a redirection
		if want := map[string]string{"0": "/dev/null", "1": path(dir, "out"), "2": path(dir, "out")}[fd[1]]; fd[2] != want && !shells {
			t.Errorf("descriptor %s is %s", fd[1], fd[2])
		}
	}
	if len(fds) < 3 {
		t.Errorf("only %d descriptors", len(fds))
	}
	// Signals 32 and 33 are the C library's own; make and others leave them ignored, and no program uses them.
	for _, field := range []string{`SigIgn:\t0000000[01][08]0000000`, `SigBlk:\t0000000000000000`} {
		if !regexp.MustCompile(field).Match(v.Head) {
			t.Errorf("no %q in %s", field, v.Head)
		}
	}
}
