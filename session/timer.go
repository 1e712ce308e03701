package session

import "time"

// A wait for a time stores when it is due and how long it is. It ends when the clock says so, or when its length has passed since a process
// first saw it, whichever comes first: a clock that is put forward, or a machine that slept, makes it due; one that is put back does not
// make it longer.

// Timed tells whether a wait for this ends by itself at its time.
func Timed(c Code) bool { return c == CodeModelRetry || c == CodeCommandRuns }

// clockCheck is how often a wait looks at the clock, which may be set while the process sleeps.
const clockCheck = 15 * time.Second

// sighting is when a process first saw a wait. at holds a reading of the monotonic clock, which nobody sets.
type sighting struct {
	due time.Time
	at  time.Time
}

// remaining is how long a wait goes on that is due at a time, is at most length long, and was first seen that long ago.
func remaining(now, due time.Time, length, seen time.Duration) time.Duration {
	return min(due.Sub(now), length-seen)
}

// left is how long the wait of a run goes on.
func (a *actor) left(r Run) time.Duration {
	s, known := a.timers[r.ID]
	if !known || !s.due.Equal(r.RetryAt) {
		s = sighting{r.RetryAt, time.Now()}
		a.timers[r.ID] = s
	}
	return remaining(a.e.Now(), r.RetryAt, r.RetryWait, time.Since(s.at))
}

// shorten stores when a wait really ends that was stored as longer than it can be: the clock was put back. Without that it would begin anew
// in the next process.
func (a *actor) shorten(runs []Run) {
	for i, r := range runs {
		now := a.e.Now()
		if r.Phase != PhaseWaiting || !Timed(r.ReasonCode) || r.RetryWait <= 0 || r.RetryAt.Sub(now) <= r.RetryWait+time.Second {
			continue
		}
		due := now.Add(a.left(r)).Truncate(time.Millisecond)
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
		a.timers[r.ID] = sighting{due, a.timers[r.ID].at}
		runs[i].RetryAt = due
	}
}
