package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"holdfast/internal/proc"
)

// endWithin is how long an agent may take to end by itself, and a command to be ended.
const endWithin = 5 * time.Second

// clean ends what the demo started and removes its folder. It does not depend on the demo's context: an interrupted demo cleans up too.
func (d *demoRun) clean() error {
	for _, a := range []*demoAgent{d.first, d.second} {
		if a != nil {
			a.end()
		}
	}
	return errors.Join(d.endCommands(), d.remove())
}

// endCommands ends commands that outlived their agents.
func (d *demoRun) endCommands() error {
	dirs, err := filepath.Glob(filepath.Join(d.home, "calls", "*"))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), endWithin)
	defer cancel()
	var errs []error
	for _, dir := range dirs {
		h := proc.Open(dir)
		s, err := h.State()
		if err == nil && (s.Verdict == proc.Live || s.Verdict == proc.Orphaned) {
			_, err = h.Stop(ctx, "user")
		}
		if err != nil && !errors.Is(err, proc.ErrNoReceipt) {
			errs = append(errs, fmt.Errorf("end the command in %s: %w", dir, err))
		}
	}
	return errors.Join(errs...)
}

// remove tries again for a moment: what was just ended may still have been writing.
func (d *demoRun) remove() (err error) {
	for range 20 {
		if err = os.RemoveAll(d.dir); err == nil {
			return nil
		}
		time.Sleep(50 * time.Millisecond)
	}
	return fmt.Errorf("remove the demo's folder: %w", err)
}
