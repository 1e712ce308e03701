//go:build unix

package proc

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"holdfast/internal/ident"
	"holdfast/internal/secret"
)

// Handle is a command, running or not. It holds nothing open: any process may have one.
type Handle struct {
	dir  string
	mask *secret.Masker // of those who read its output
}

// Open returns the command of a folder, as another process left it. The folder need not exist: then nothing was started.
func Open(dir string) *Handle {
	if abs, err := filepath.Abs(dir); err == nil {
		dir = abs
	}
	return &Handle{dir: dir}
}

// look asks for the lock without keeping it.
func (h *Handle) look() (lock, error) {
	f, err := os.Open(path(h.dir, "alive"))
	if errors.Is(err, os.ErrNotExist) {
		return unclaimed, nil
	}
	if err != nil {
		return "", fmt.Errorf("look at the lock of a command: %w", err)
	}
	defer func() { _ = f.Close() }()
	// Shared, so that two who look do not see each other.
	err = unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return held, nil
	}
	if err != nil {
		return "", fmt.Errorf("look at the lock of a command: %w", err)
	}
	return free, nil
}

// State says what the files prove.
func (h *Handle) State() (State, error) {
	l, err := h.look()
	if err != nil {
		return State{}, err
	}
	return judge(h.dir, l)
}

// How often Wait looks: soon for short commands, then less and less, at last ten times a second.
const (
	firstPause = time.Millisecond
	lastPause  = 100 * time.Millisecond
)

// Wait blocks until there is a receipt, or nothing more can be known.
func (h *Handle) Wait(ctx context.Context) (Result, error) {
	for pause := firstPause; ; pause = min(pause*5/4, lastPause) {
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
	}
}

// again is how long Stop waits before it repeats its signal.
const again = 500 * time.Millisecond

// Stop ends a command with everything it started, and waits for the receipt, which names the cause unless the command was faster.
// A folder that exists and has not started its command yet will not start it later.
func (h *Handle) Stop(ctx context.Context, cause string) (Result, error) {
	if cause == "" {
		cause = CauseUser
	}
	s, err := h.State()
	if err != nil {
		return Result{}, err
	}
	if s.Verdict == Live || s.Verdict == NotStarted {
		// Before the signal: it is what the supervisor reads when it gets one, or before it starts the command. On a full disk the
		// signal alone has to do.
		_ = put(h.dir, "stop", cause, false)
	}
	for {
		if s, err = h.State(); err != nil {
			return Result{}, err
		}
		switch {
		case s.Verdict == Live && s.Supervisor.PID != 0:
			err = ident.Signal(s.Supervisor, unix.SIGTERM)
		case s.Verdict == Live: // it has not said who it is yet
		case s.Verdict == Orphaned:
			err = endOrphan(ctx, s.Command)
		default:
			return h.Wait(ctx)
		}
		if err != nil && !errors.Is(err, ident.ErrGone) {
			return Result{}, err
		}
		short, cancel := context.WithTimeoutCause(ctx, again, errAgain)
		r, err := h.Wait(short)
		cancel()
		if !errors.Is(err, errAgain) {
			return r, err
		}
	}
}

var errAgain = errors.New("signal again")

// Remove deletes the folder of a command that does not run.
func (h *Handle) Remove() error {
	s, err := h.State()
	if err != nil {
		return err
	}
	if s.Verdict == Live || s.Verdict == Orphaned {
		return fmt.Errorf("remove the folder of a command: %w", ErrRunning)
	}
	if err := os.RemoveAll(h.dir); err != nil {
		return fmt.Errorf("remove the folder of a command: %w", err)
	}
	return nil
}
