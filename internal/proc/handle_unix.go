//go:build unix

package proc

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"time"

	"golang.org/x/sys/unix"

	"holdfast/internal/fault"
	"holdfast/internal/ident"
)

// point is fault.Point; tests of this package replace it.
var point = fault.Point

// Handle is a command, running or not. It holds nothing open: any process may have one.
type Handle struct{ dir string }

// Start runs a command under a supervisor of its own.
func Start(spec Spec) (*Handle, error) {
	boot, err := ident.BootID()
	if err != nil {
		return nil, err
	}
	spec.Boot = boot
	if err := os.MkdirAll(spec.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the folder of a command: %w", err)
	}
	claim, err := os.OpenFile(path(spec.Dir, "alive"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("claim the command: %w", err)
	}
	// Our descriptor is only closed, never unlocked: the lock belongs to the open file, which the supervisor inherits.
	defer func() { _ = claim.Close() }()
	if err := unix.Flock(int(claim.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return nil, fmt.Errorf("claim the command: %w", err)
	}
	point("proc.claimed")
	if err := put(spec.Dir, "spec", spec, true); err != nil {
		return nil, err
	}
	point("proc.spec")
	if err := launch(spec.Dir, claim); err != nil {
		return nil, err
	}
	point("proc.launched")
	return &Handle{dir: spec.Dir}, nil
}

// launch starts the supervisor through a shell that ends at once, so that the supervisor's parent is not us.
func launch(dir string, claim *os.File) error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this binary: %w", err)
	}
	if runtime.GOOS == "linux" {
		self = fmt.Sprintf("/proc/%d/exe", os.Getpid()) // also when the file was replaced by an upgrade
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return fmt.Errorf("open the null device: %w", err)
	}
	defer func() { _ = null.Close() }()
	cmd := exec.Command("/bin/sh", "-c", `"$@" &`, "sh", self, hidden, dir)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = null, null, null
	cmd.ExtraFiles = []*os.File{claim}
	cmd.SysProcAttr = &unix.SysProcAttr{Setsid: true}
	cmd.Dir = "/"
	cmd.Env = supervisorEnv()
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("start the supervisor: %w", err)
	}
	return nil
}

// Open returns the command of a folder, as another process left it.
func Open(dir string) *Handle { return &Handle{dir: dir} }

// held tells whether the supervisor lives.
func (h *Handle) held() (bool, error) {
	f, err := os.OpenFile(path(h.dir, "alive"), os.O_RDWR, 0)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("look at the lock of a command: %w", err)
	}
	defer func() { _ = f.Close() }()
	err = unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("look at the lock of a command: %w", err)
	}
	return false, nil
}

// State says what the files prove. The lock is looked at first: a supervisor writes its receipt before it lets go.
func (h *Handle) State() (State, error) {
	var s State
	held, err := h.held()
	if err != nil {
		return s, err
	}
	var spec Spec
	specified, err := take(h.dir, "spec", &spec)
	if err != nil {
		return s, err
	}
	starting, err := take(h.dir, "starting", &s.Supervisor)
	if err != nil {
		return s, err
	}
	running, err := take(h.dir, "running", &s.Command)
	if err != nil {
		return s, err
	}
	done, err := take(h.dir, "exit", &s.Result)
	if err != nil {
		return s, err
	}
	boot, err := ident.BootID()
	if err != nil {
		return s, err
	}
	switch {
	case done && !held:
		s.Verdict = Done
	case held:
		s.Verdict = Live
	case !specified:
		s.Verdict = NotStarted
	case spec.Boot != boot:
		s.Verdict = Rebooted
	case !starting:
		s.Verdict = NotStarted
	case !running:
		s.Verdict = MaybeStarted
	case s.Command.Alive():
		s.Verdict = Orphaned
	default:
		s.Verdict = Lost
	}
	return s, nil
}

// ErrNoReceipt: the command will never have a receipt; State says why.
var ErrNoReceipt = errors.New("the command has no receipt")

// Wait blocks until there is a receipt, or nothing more can be known.
func (h *Handle) Wait(ctx context.Context) (Result, error) {
	pause := 2 * time.Millisecond
	for {
		s, err := h.State()
		if err != nil {
			return Result{}, err
		}
		switch s.Verdict {
		case Done:
			return s.Result, nil
		case Live, Orphaned:
		default:
			return Result{}, fmt.Errorf("%w: %s", ErrNoReceipt, s.Verdict)
		}
		t := time.NewTimer(pause)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return Result{}, context.Cause(ctx)
		}
		pause = min(pause*5/4+1, 100*time.Millisecond)
	}
}

// Stop ends a command with everything it started, and waits for the receipt.
func (h *Handle) Stop(ctx context.Context, cause string) (Result, error) {
	if err := put(h.dir, "stop", cause, false); err != nil {
		return Result{}, err
	}
	for {
		s, err := h.State()
		if err != nil {
			return Result{}, err
		}
		switch {
		case s.Verdict == Live && s.Supervisor.PID != 0:
			err = ident.Signal(s.Supervisor, unix.SIGTERM)
		case s.Verdict == Orphaned:
			err = ident.Signal(s.Command, unix.SIGKILL) // nobody is left who could do it gently
		case s.Verdict == Live: // it has not said who it is yet, and reads the stop file when it has
		default:
			return h.Wait(ctx)
		}
		if err != nil && !errors.Is(err, ident.ErrGone) {
			return Result{}, err
		}
		short, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
		r, err := h.Wait(short)
		cancel()
		if !errors.Is(err, context.DeadlineExceeded) || ctx.Err() != nil {
			return r, err
		}
	}
}

// Remove deletes the folder of a command that does not run.
func (h *Handle) Remove() error {
	held, err := h.held()
	if err != nil {
		return err
	}
	if held {
		return fmt.Errorf("remove the folder of a command: %w", os.ErrPermission)
	}
	return os.RemoveAll(h.dir)
}
