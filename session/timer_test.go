package session

import (
	"testing"
	"time"
)

func TestRemaining_WhateverTheClockDoes(t *testing.T) {
	due := time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		now          time.Time
		length, seen time.Duration
		want         time.Duration
	}{
		"as stored":                      {due.Add(-time.Minute), time.Minute, 0, time.Minute},
		"half way":                       {due.Add(-30 * time.Second), time.Minute, 30 * time.Second, 30 * time.Second},
		"due":                            {due, time.Minute, time.Minute, 0},
		"overdue at launch":              {due.Add(time.Hour), time.Minute, 0, -time.Hour},
		"the clock was put forward":      {due.Add(time.Hour), time.Minute, time.Second, -time.Hour},
		"the clock was put back":         {due.Add(-24 * time.Hour), time.Minute, 0, time.Minute},
		"put back, and half of it is up": {due.Add(-24 * time.Hour), time.Minute, 30 * time.Second, 30 * time.Second},
		"put back, and it is over":       {due.Add(-24 * time.Hour), time.Minute, time.Minute, 0},
	} {
		if got := remaining(c.now, due, c.length, c.seen); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}
