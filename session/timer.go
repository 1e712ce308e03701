package session

import (
	"time"

	"holdfast/internal/ident"
)

// A wait for a time stores when it is due and how long it is. A process that sees it for the first time believes its clock, but never that it
// is longer than its length. From then on the machine's own running time counts, which goes on while it sleeps and which nobody sets: a clock
// that is put forward makes no wait shorter, and one that is put back none longer.

// Timed tells whether a wait for this ends by itself at its time.
func Timed(c Code) bool { return c == CodeModelRetry || c == CodeCommandRuns }

// clockCheck is how often a wait looks at the time, which may have passed while the machine slept.
const clockCheck = 15 * time.Second

// clockError is how far the clock may be off before that is stored.
const clockError = 2 * time.Second

// sighting is when a process first saw a wait, by the running time of the machine, and how long it still was.
type sighting struct {
	due  time.Time
	up   time.Duration
	left time.Duration
}

// remaining is how long a wait is, as a process finds it that is due at a time and at most length long.
func remaining(now, due time.Time, length time.Duration) time.Duration {
	return min(due.Sub(now), length)
}

// left is how long the wait of a run goes on.
func (a *actor) left(r Run) time.Duration {
	s, known := a.timers[r.ID]
	if !known || !s.due.Equal(r.RetryAt) {
		s = sighting{r.RetryAt, ident.Uptime(), remaining(a.e.Now(), r.RetryAt, r.RetryWait)}
		a.timers[r.ID] = s
	}
	return s.left - (ident.Uptime() - s.up)
}

// restate stores when a wait really ends that the clock says something else of, because it was set. Without that the next process would
// believe the clock.
func (a *actor) restate(runs []Run) {
	for i, r := range runs {
		if r.Desired != DesiredRun || r.Phase != PhaseWaiting || !Timed(r.ReasonCode) || r.RetryWait <= 0 {
			continue
		}
		left, now := a.left(r), a.e.Now()
		due := now.Add(left).Truncate(time.Millisecond)
		if off := due.Sub(r.RetryAt); left <= 0 || off > -clockError && off < clockError {
			continue
		}
		err := a.e.Commit(a.ctx, "model.retry", a.id, func(tx Tx) error {
			if err := tx.Fence(a.id, a.e.Self.ID, a.gen); err != nil {
				return err
			}
			run, err := tx.Run(r.ID)
			if err != nil || run.Phase != PhaseWaiting || !run.RetryAt.Equal(r.RetryAt) {
				return err
			}
			run.RetryAt = due
			return tx.UpdateRun(run, now)
		})
		if err != nil {
			a.log(err, "storing the end of a wait failed") // this process keeps to it all the same
			continue
		}
		seen := a.timers[r.ID]
		a.timers[r.ID] = sighting{due, seen.up, seen.left}
		runs[i].RetryAt = due
	}
}
