//go:build unix

package client

import (
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"holdfast/internal/ident"
)

const (
	sweepTerm  = time.Second     // between the polite signal and the other
	sweepKill  = 5 * time.Second // for all to be gone
	sweepPause = 10 * time.Millisecond
)

// sweep ends what is left of the launches, in rounds: what forks while it is being ended is found in the next.
func sweep(known []record, tags []string) (int, error) {
	seen := map[ident.Process]bool{}
	start := time.Now()
	for {
		left := survivors(known, tags)
		if len(left) == 0 {
			return len(seen), nil
		}
		sig := unix.SIGTERM
		if time.Since(start) > sweepTerm {
			sig = unix.SIGKILL
		}
		if time.Since(start) > sweepTerm+sweepKill {
			return len(seen) - len(left), fmt.Errorf("sweep: %d processes do not end", len(left))
		}
		for _, p := range left {
			if sig == unix.SIGKILL || !seen[p] {
				if err := ident.Signal(p, sig); err != nil && !errors.Is(err, ident.ErrGone) {
					return len(seen), fmt.Errorf("sweep: %w", err)
				}
			}
			seen[p] = true
		}
		time.Sleep(sweepPause)
	}
}
