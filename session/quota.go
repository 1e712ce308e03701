package session

import (
	"fmt"
	"strings"
	"time"
)

// Backoff of temporary provider faults: 1 s doubling, at most maxFaults tries.
const maxFaults = 5

// A provider that asks for longLimit or more says when a limit that is used up is full again. That time is kept to, however far it is, up to
// longestWait; nobody waits for hours only to be told that five tries were made meanwhile.
const (
	longLimit   = 5 * time.Minute
	longestWait = 7 * 24 * time.Hour
)

// again is how a failed request is tried once more.
type again struct {
	wait   time.Duration
	faults int // what the run has counted then
	limit  bool
}

// tryAgain decides on a temporary fault of a run that has counted so many. From maxFaults on the count says that a long limit was waited
// for: then the provider has had its one try, and only a connection that was not there yet is waited for.
func tryAgain(faults int, me *ModelError) (again, bool) {
	tries, waited := faults, faults >= maxFaults
	if waited {
		tries -= maxFaults
	}
	switch {
	case !me.Temporary() || tries+1 >= maxFaults || waited && me.Kind != ModelNetwork:
		return again{}, false
	case me.RetryAfter >= longLimit && !waited:
		return again{min(me.RetryAfter, longestWait), maxFaults, true}, true
	}
	return again{max(time.Second<<tries, min(me.RetryAfter, longestWait)), faults + 1, false}, true
}

// limited tells whether a run waits for a limit of the provider, so that nothing else of its session should ask by itself.
func (r Run) limited() bool {
	return r.Phase == PhaseWaiting && r.ReasonCode == CodeModelRetry && r.Faults >= maxFaults
}

// until names a time for a person, in the zone of this machine.
func until(at time.Time) string { return at.Local().Format("2 Jan 15:04 MST") }

// limitNotice is said once, when the wait begins; it stands in the history.
func limitNotice(me *ModelError, at time.Time) string {
	return fmt.Sprintf("%s. The provider takes requests again at %s. Nothing is asked before that; then it is tried once. /retry asks now, /stop gives it up.",
		strings.TrimSuffix(me.Message, "."), until(at))
}

// LimitedUntil is when a provider's limit is full again that the run was told of, also while it does not wait for it because something else was
// wanted of it meanwhile. Zero without one, and when that time has come.
func (r Run) LimitedUntil(now time.Time) time.Time {
	if r.Faults < maxFaults || r.RetryWait <= 0 || !r.RetryAt.After(now) {
		return time.Time{}
	}
	return r.RetryAt
}

// Await makes a run wait for the limit that another one was told of: whatever is done next would ask the same endpoint.
func (r *Run) Await(told Run) {
	r.Phase, r.ReasonCode = PhaseWaiting, CodeModelRetry
	r.Reason = "The provider's limit is used up; not asked again before " + until(told.RetryAt)
	r.Remember(told)
}

// Remember keeps such a limit for when the run is wanted again.
func (r *Run) Remember(told Run) {
	r.Faults, r.RetryAt, r.RetryWait = told.Faults, told.RetryAt, told.RetryWait
}

// AskNow is a person's word that the limit is not waited for.
func (r *Run) AskNow() { r.Faults, r.RetryAt, r.RetryWait = 0, time.Time{}, 0 }
