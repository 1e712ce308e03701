package session

import "time"

// A wait for a time stores when it is due and how long it is. It ends when the clock says so, or when its length has passed since a process
// first saw it, whichever comes first: a clock that is put forward, or a machine that slept, makes it due; one that is put back does not
// make it longer.

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
