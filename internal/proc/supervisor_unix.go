//go:build unix

package proc

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"holdfast/internal/ident"
)

// hidden is the argument that makes this binary a supervisor.
const hidden = "__supervise"

// Main runs a supervisor when the arguments ask for one. It must be the first thing a program does.
func Main(args []string) (handled bool) {
	if len(args) != 3 || args[1] != hidden {
		return false
	}
	if err := supervise(args[2]); err != nil {
		os.Exit(1) // the files say how far it came
	}
	return true
}

// Times a stop is given.
const (
	grace    = 300 * time.Millisecond
	pollCap  = 200 * time.Millisecond
	reserved = 4096
)

// supervise runs the command of a folder to its end.
func supervise(dir string) error {
	unix.CloseOnExec(3) // the claim: held until this process ends, inherited by nobody
	_, _ = unix.Setsid()
	signal.Ignore(unix.SIGHUP, unix.SIGINT, unix.SIGPIPE)
	term := make(chan os.Signal, 1)
	signal.Notify(term, unix.SIGTERM)
	becomeSubreaper()
	point("supervisor.claimed")
	var spec Spec
	if ok, err := take(dir, "spec", &spec); err != nil || !ok {
		return errors.Join(err, os.ErrNotExist)
	}
	receipt, err := reserve(dir)
	if err != nil {
		return err
	}
	if err := put(dir, "starting", ident.Self(), false); err != nil {
		return err
	}
	point("supervisor.starting")
	s := &supervisor{dir: dir, spec: spec, receipt: receipt, term: term}
	return s.run()
}

// reserve sets the receipt's space aside, so that a full disk does not lose it.
func reserve(dir string) (*os.File, error) {
	f, err := os.OpenFile(path(dir, "exit.tmp"), os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, fmt.Errorf("set space aside: %w", err)
	}
	if _, err := f.Write(make([]byte, reserved)); err != nil {
		return nil, errors.Join(fmt.Errorf("set space aside: %w", err), f.Close())
	}
	return f, nil
}

type supervisor struct {
	dir     string
	spec    Spec
	receipt *os.File
	term    chan os.Signal
	out     *os.File
}

func (s *supervisor) run() error {
	out, err := os.OpenFile(path(s.dir, "out"), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("open the output: %w", err)
	}
	s.out = out
	cmd := exec.Command(s.spec.Argv[0], s.spec.Argv[1:]...)
	cmd.Dir, cmd.Env = s.spec.Cwd, s.spec.Env
	cmd.Stdout, cmd.Stderr = out, out // the file itself: no pipe that anybody's death could break
	cmd.SysProcAttr = &unix.SysProcAttr{Setpgid: true}
	r := Result{Started: time.Now().UTC()}
	if err := cmd.Start(); err != nil {
		code := 127
		r.ExitCode, r.Failure = &code, err.Error()
		return s.finish(r)
	}
	point("supervisor.started")
	if id, err := ident.Start(cmd.Process.Pid); err == nil { // it may have ended already
		if err := put(s.dir, "running", id, false); err != nil {
			return err
		}
	} else if err := put(s.dir, "running", ident.Process{PID: cmd.Process.Pid}, false); err != nil {
		return err
	}
	point("supervisor.running")
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }() // received below, always
	r.Stopped = s.watch(cmd.Process.Pid, done)
	point("supervisor.exited")
	if st, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && st.Signaled() {
		r.Signal = unix.SignalName(st.Signal())
	} else {
		code := cmd.ProcessState.ExitCode()
		r.ExitCode = &code
	}
	if r.Stopped == "" {
		r.Left = len(descendants())
	}
	return s.finish(r)
}

// watch waits for the command and ends it when a limit is reached or somebody asks. It returns why, or "".
func (s *supervisor) watch(pid int, done <-chan error) string {
	var deadline <-chan time.Time
	if s.spec.Timeout > 0 {
		deadline = time.After(s.spec.Timeout)
	}
	poll := time.NewTicker(pollCap)
	defer poll.Stop()
	var cause string
	if ok, _ := take(s.dir, "stop", &cause); ok { // asked before we could be signalled
		return s.end(pid, done, cause)
	}
	for {
		select {
		case <-done:
			return ""
		case <-deadline:
			return s.end(pid, done, "deadline")
		case <-s.term:
			cause = "user"
			_, _ = take(s.dir, "stop", &cause) // without a reason it was the user's
			return s.end(pid, done, cause)
		case <-poll.C:
			if st, err := s.out.Stat(); err == nil && s.spec.OutputCap > 0 && st.Size() > s.spec.OutputCap {
				return s.end(pid, done, "output_cap")
			}
		}
	}
}

// end stops the whole tree: politely, and after a moment for good. Processes that left the group are found as our descendants.
func (s *supervisor) end(pid int, done <-chan error, cause string) string {
	signalTree(pid, unix.SIGTERM)
	t := time.NewTimer(grace)
	defer t.Stop()
	ended := false
	select {
	case <-done:
		ended = true
	case <-t.C:
	}
	for range 50 {
		if ended && len(descendants()) == 0 {
			break
		}
		signalTree(pid, unix.SIGKILL)
		if !ended {
			<-done
			ended = true
		}
		reap()
		time.Sleep(5 * time.Millisecond)
	}
	return cause
}

// finish writes the receipt: synced, renamed, the folder synced. The lock is let go by our end.
func (s *supervisor) finish(r Result) error {
	r.Ended = time.Now().UTC()
	if s.out != nil {
		if st, err := s.out.Stat(); err == nil {
			r.OutputBytes = st.Size()
		}
	}
	b := encodeReceipt(r)
	if _, err := s.receipt.WriteAt(b, 0); err != nil {
		return fmt.Errorf("write the receipt: %w", err)
	}
	if err := errors.Join(s.receipt.Truncate(int64(len(b))), s.receipt.Sync(), s.receipt.Close()); err != nil {
		return fmt.Errorf("write the receipt: %w", err)
	}
	if err := os.Rename(path(s.dir, "exit.tmp"), path(s.dir, "exit")); err != nil {
		return fmt.Errorf("write the receipt: %w", err)
	}
	err := syncDir(s.dir)
	point("supervisor.receipt")
	return err
}
