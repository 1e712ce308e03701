package main

import (
	"errors"
	"fmt"
	"io"
	"time"

	"holdfast/acp"
	"holdfast/internal/store"
	"holdfast/session"
)

// heldBy says which process keeps the store from being written.
func heldBy(err error) string {
	var busy *store.BusyError
	if errors.As(err, &busy) {
		return busy.Error()
	}
	return err.Error()
}

// freeStore is what a person can do about it. Ending it that hard is safe: what it had not committed is not stored.
func freeStore(err error) string {
	var busy session.StoreBusy
	if errors.As(err, &busy) {
		if pid, _ := busy.Holder(); pid > 0 {
			return acp.FreeStore(pid)
		}
	}
	return "Try again when that program has finished."
}

// warnBusy says it, for a command that waits.
func warnBusy(w io.Writer) func(int, time.Time) {
	return func(pid int, since time.Time) {
		_, _ = fmt.Fprintf(w, "holdfast: %s Waiting. %s\n", acp.HeldStore(pid, since), acp.FreeStore(pid))
	}
}
