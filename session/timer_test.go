package session

import (
	"testing"
	"time"
)

func TestRemaining_WhateverTheClockDoes(t *testing.T) {
	due := time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		now    time.Time
		length time.Duration
		want   time.Duration
	}{
		"as stored":              {due.Add(-time.Minute), time.Minute, time.Minute},
		"half way":               {due.Add(-30 * time.Second), time.Minute, 30 * time.Second},
		"due":                    {due, time.Minute, 0},
		"overdue at launch":      {due.Add(time.Hour), time.Minute, -time.Hour},
		"the clock was put back": {due.Add(-24 * time.Hour), time.Minute, time.Minute},
	} {
		if got := remaining(c.now, due, c.length); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// Once a wait is seen, the clock has no say in it any more.
func TestWait_ClockIsSetMeanwhile(t *testing.T) {
	now := time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	a := &actor{e: &Engine{Config: Config{Now: func() time.Time { return now }}}, timers: map[RunID]sighting{}}
	r := Run{ID: "r", RetryAt: now.Add(5 * time.Hour), RetryWait: 5 * time.Hour}
	for _, set := range []time.Duration{0, 6 * time.Hour, -48 * time.Hour, 1000 * time.Hour} {
		now = now.Add(set)
		if left := a.left(r); left > 5*time.Hour || left < 4*time.Hour { // an hour for a machine that is slow
			t.Errorf("after the clock was set by %s, %s are left", set, left)
		}
	}
}

func TestTryAgain(t *testing.T) {
	limit := &ModelError{Kind: ModelRateLimit, RetryAfter: 5 * time.Hour}
	busy := &ModelError{Kind: ModelOverloaded}
	gone := &ModelError{Kind: ModelNetwork}
	for _, c := range []struct {
		name   string
		faults int
		me     *ModelError
		want   again
		ok     bool
	}{
		{"the first", 0, busy, again{time.Second, 1, false}, true},
		{"the fourth", 3, busy, again{8 * time.Second, 4, false}, true},
		{"the fifth is the last", 4, busy, again{}, false},
		{"what is asked for is kept to", 1, &ModelError{Kind: ModelRateLimit, RetryAfter: time.Minute}, again{time.Minute, 2, false}, true},
		{"a lasting one", 0, &ModelError{Kind: ModelAuth, RetryAfter: time.Hour}, again{}, false},
		{"a limit", 0, limit, again{5 * time.Hour, maxFaults, true}, true},
		{"a limit after other faults", 3, limit, again{5 * time.Hour, maxFaults, true}, true},
		{"a limit of months", 0, &ModelError{Kind: ModelRateLimit, RetryAfter: 60 * 24 * time.Hour}, again{longestWait, maxFaults, true}, true},
		{"a limit after a limit", maxFaults, limit, again{}, false},
		{"an answer other than a limit after it", maxFaults, busy, again{}, false},
		{"the network is not up yet after it", maxFaults, gone, again{time.Second, maxFaults + 1, false}, true},
		{"a limit after both", maxFaults + 1, limit, again{}, false},
		{"the network does not come", 2*maxFaults - 1, gone, again{}, false},
	} {
		if got, ok := tryAgain(c.faults, c.me); got != c.want || ok != c.ok {
			t.Errorf("%s: %+v %v", c.name, got, ok)
		}
	}
}
