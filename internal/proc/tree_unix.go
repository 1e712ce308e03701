//go:build unix

package proc

import (
	"context"
	"runtime"
	"time"

	"golang.org/x/sys/unix"

	"holdfast/internal/ident"
)

const (
	grace = 300 * time.Millisecond // between the polite signal and the other
	round = 20 * time.Millisecond  // between two looks at what is left
	chase = 5 * time.Second        // after which processes that fork faster than they are killed are left, and counted
)

// end stops the whole tree: politely, and after a moment for good. It returns the cause, or "" if the command was faster.
func (s *supervisor) end(cause string) string {
	if s.reap(); s.status != nil {
		return ""
	}
	s.signal(unix.SIGTERM)
	for end := time.Now().Add(grace); time.Now().Before(end); s.pause() {
		if s.gone() {
			return cause
		}
	}
	// The command itself has no limit: there is no receipt while it runs.
	for end := time.Now().Add(chase); s.status == nil || time.Now().Before(end); {
		s.signal(unix.SIGKILL)
		s.pause()
		if s.gone() {
			break
		}
	}
	return cause
}

// gone tells whether nothing of the command runs.
func (s *supervisor) gone() bool {
	if s.reap(); s.status == nil {
		return false
	}
	list, err := left(s.pid)
	return err == nil && len(list) == 0
}

func (s *supervisor) pause() {
	t := time.NewTimer(round)
	defer t.Stop()
	select {
	case <-s.child:
	case <-t.C:
	}
}

// signal reaches the group at once, and one by one those that left it. The number of the group is the command's while it was not waited
// for; later only systems without a way to find the others use it.
func (s *supervisor) signal(sig unix.Signal) {
	if s.status == nil || runtime.GOOS != "linux" {
		_ = unix.Kill(-s.pid, sig) // it may be empty
	}
	list, _ := left(s.pid) // asked again in the next round
	for _, p := range list {
		_ = ident.Signal(p, sig) // it may be gone
	}
}

// endOrphan ends a command whose supervisor is lost, with its group and what was below it. What had lost its parent belongs to init by
// now and is not found.
func endOrphan(ctx context.Context, command ident.Process) error {
	list, err := ident.Descendants(command.PID)
	if err != nil {
		return err
	}
	list = append(list, command)
	for _, sig := range []unix.Signal{unix.SIGTERM, unix.SIGKILL} {
		if command.Alive() {
			_ = unix.Kill(-command.PID, sig) // the group's number is the command's while it lives
		}
		for _, p := range list {
			_ = ident.Signal(p, sig) // it may be gone
		}
		if err := ended(ctx, list, grace); err == nil || ctx.Err() != nil {
			return err
		}
	}
	return nil // the caller looks again
}

// ended waits until none of them runs.
func ended(ctx context.Context, list []ident.Process, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	tick := time.NewTicker(round)
	defer tick.Stop()
	for _, p := range list {
		for p.Alive() {
			select {
			case <-tick.C:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
	}
	return nil
}
