package session

import (
	"testing"
	"testing/synctest"
	"time"
)

// An attempt is still when nothing of its own has happened for the whole limit, and never while a call of it is open.
func TestPulse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const limit = 15 * time.Minute
		p := newPulse()
		expect := func(when string, want bool) {
			t.Helper()
			if got := p.still(limit); got != want {
				t.Errorf("%s: still is %v", when, got)
			}
		}
		time.Sleep(limit - time.Nanosecond)
		expect("right before the limit", false)
		time.Sleep(time.Nanosecond)
		expect("at the limit", true)
		p.beat()
		expect("after a beat", false)
		leave, other := p.enter(), p.enter()
		time.Sleep(48 * time.Hour)
		expect("with two calls open", false)
		leave()
		time.Sleep(48 * time.Hour)
		expect("with one call open", false)
		other()
		expect("right after the last call", false)
		time.Sleep(limit)
		expect("long after the last call", true)
	})
}
