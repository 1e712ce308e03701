//go:build unix

package proc

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"

	"holdfast/internal/ident"
	"holdfast/internal/sandbox"
)

// supervisor is one command and what its process, which does nothing else, knows about it. It has one goroutine, and one more that copies what a
// terminal prints.
type supervisor struct {
	dir     string
	spec    record
	env     []string
	blanker blanker
	receipt *os.File // its space is set aside
	out     *os.File
	term    chan os.Signal
	child   chan os.Signal
	pid     int
	printed chan struct{}    // of a terminal: closed when all it printed is in the output; nil without one
	status  *unix.WaitStatus // nil until the command has ended; its PID and group are its own until then
}

func (s *supervisor) run() error {
	r := Result{Started: time.Now().UTC()}
	if asked, cause := s.asked(); asked {
		r.Stopped, r.Failure = cause, "it was stopped before it started"
		return s.finish(r)
	}
	if err := s.start(); err != nil {
		code := unstarted
		r.ExitCode, r.Failure = &code, err.Error()
		return s.finish(r)
	}
	point("supervisor.started")
	id, err := ident.Start(s.pid)
	if err != nil { // it has ended already
		id = ident.Process{PID: s.pid}
	}
	_ = put(s.dir, "running", id, false) // on a full disk there is a receipt all the same
	point("supervisor.running")
	r.Stopped = s.watch()
	point("supervisor.exited")
	if s.status.Signaled() {
		r.Signal = signalName(s.status.Signal())
	} else {
		code := s.status.ExitStatus()
		r.ExitCode = &code
	}
	list, _ := left(s.pid) // counted as none if they cannot be listed
	r.Left = len(list)
	return s.finish(r)
}

// asked tells whether somebody wants the command to end, and why.
func (s *supervisor) asked() (bool, string) {
	var cause string
	if ok, err := take(s.dir, "stop", &cause); err == nil && ok {
		return true, cause
	}
	select {
	case <-s.term:
		return true, CauseUser
	default:
		return false, ""
	}
}

func (s *supervisor) start() error {
	out, err := os.OpenFile(path(s.dir, "out"), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("open the output: %w", err)
	}
	s.out = out
	cmd := exec.Command(s.spec.Argv[0], s.spec.Argv[1:]...)
	cmd.Dir, cmd.Env = s.spec.Cwd, s.env
	cmd.Stdout, cmd.Stderr = out, out // the file itself: no pipe that anybody's death could break
	cmd.SysProcAttr = &unix.SysProcAttr{Setpgid: true}
	if s.spec.Terminal {
		tty, err := s.terminal(cmd)
		if err != nil {
			return fmt.Errorf("open a terminal: %w", err)
		}
		defer func() { _ = tty.Close() }() // the command has it
	}
	if s.spec.OwnNet {
		sandbox.NetworkFlags(cmd.SysProcAttr, os.Getuid(), os.Getgid())
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	s.pid = cmd.Process.Pid
	return cmd.Process.Release() // reap waits for it, together with the orphans that become ours
}

// terminalSize is what programs are told of the terminal.
var terminalSize = pty.Winsize{Rows: 40, Cols: 120}

// terminal gives the command a terminal. Nobody types there: its input is at its end.
func (s *supervisor) terminal(cmd *exec.Cmd) (*os.File, error) {
	master, tty, err := pty.Open()
	if err != nil {
		return nil, err
	}
	if err := errors.Join(pty.Setsize(master, &terminalSize), unix.SetNonblock(int(master.Fd()), false)); err != nil {
		return nil, errors.Join(err, master.Close(), tty.Close())
	}
	if _, err := master.Write([]byte{4, 4}); err != nil { // ^D, for two readers in a row
		return nil, errors.Join(err, master.Close(), tty.Close())
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = tty, tty, tty
	cmd.SysProcAttr = &unix.SysProcAttr{Setsid: true, Setctty: true}
	s.printed = make(chan struct{})
	go func() { // ends with the last holder of the terminal, or with us
		defer close(s.printed)
		_, _ = io.Copy(s.out, master) // the end of a terminal is an error
	}()
	return tty, nil
}

// lastWords is how long the end of a terminal's output may take when processes of the command still hold it.
const lastWords = 200 * time.Millisecond

// drain waits until what the terminal printed is in the output.
func (s *supervisor) drain() {
	if s.printed == nil {
		return
	}
	select {
	case <-s.printed:
	case <-time.After(lastWords):
	}
}

// reap collects every child that has ended. Orphans of a long command would pile up otherwise.
func (s *supervisor) reap() {
	for {
		var ws unix.WaitStatus
		pid, err := unix.Wait4(-1, &ws, unix.WNOHANG, nil)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil || pid <= 0 {
			return
		}
		if pid == s.pid {
			s.status = &ws
		}
	}
}

// How often the size of the output is looked at: while it grows, and at rest.
const (
	capBusy = 10 * time.Millisecond
	capIdle = 200 * time.Millisecond
)

// watch waits for the command and ends it when a limit is reached or somebody asks. It returns why, or "".
func (s *supervisor) watch() string {
	var deadline, look <-chan time.Time
	if s.spec.Timeout > 0 {
		deadline = time.After(s.spec.Timeout)
	}
	pause, last := capBusy, int64(0)
	if s.spec.OutputCap > 0 {
		look = time.After(pause)
	}
	if asked, cause := s.asked(); asked { // before we could be signalled
		return s.end(cause)
	}
	for {
		if s.reap(); s.status != nil {
			return ""
		}
		select {
		case <-s.child:
		case <-deadline:
			return s.end(CauseDeadline)
		case <-s.term:
			cause := CauseUser
			_, _ = take(s.dir, "stop", &cause) // without a reason it was the user's
			return s.end(cause)
		case <-look:
			size := s.size()
			if size > s.spec.OutputCap { // before anything that takes time: the command goes on meanwhile
				return s.end(CauseOutputCap)
			}
			s.blanker.blank(path(s.dir, "out"), min(size, s.blanker.done+atOnce), false)
			if pause = min(2*pause, capIdle); size != last {
				pause = capBusy
			}
			last, look = size, time.After(pause)
		}
	}
}

func (s *supervisor) size() int64 {
	if s.out == nil {
		return 0
	}
	st, err := s.out.Stat()
	if err != nil {
		return 0
	}
	return st.Size()
}

// finish writes the receipt: synced, renamed, the folder synced (I2). The lock is let go by our end.
func (s *supervisor) finish(r Result) error {
	s.drain()
	r.Ended, r.OutputBytes = time.Now().UTC(), s.size()
	s.blanker.rest(path(s.dir, "out"), r.OutputBytes, s.spec.OutputCap)
	if r.OutputBytes > 0 {
		_ = s.out.Sync() // the receipt tells how long the output is; if this fails a reader sees that some is missing
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

// encodeReceipt keeps a receipt inside the space that was set aside: a byte of text takes up to six.
func encodeReceipt(r Result) []byte {
	r.Failure, r.Stopped = r.Failure[:min(len(r.Failure), 400)], r.Stopped[:min(len(r.Stopped), 100)]
	b, err := json.Marshal(r)
	if err != nil {
		panic(fmt.Sprintf("proc: encode a receipt: %v", err))
	}
	return b
}

func signalName(sig unix.Signal) string {
	if name := unix.SignalName(sig); name != "" {
		return name
	}
	return fmt.Sprintf("signal %d", int(sig)) // the real-time ones have no names
}
