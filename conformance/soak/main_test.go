// Package soak_test lets several agents work on one store while they are killed and suspended at random, and checks from outside that one
// process at a time wrote each session, that nothing accepted is lost and that nothing happened twice.
//
// Words. A window is what a user has open: one agent at a time, and another one after its death. A session belongs to one window and is
// sometimes opened in a second one as well. A token is what a prompt asks for: its tool call leaves it in a file of the session, so that
// everything can be counted afterwards. The chaos is one goroutine with a seed; what it does next is decided by the seed, what the agents
// make of it is not.
//
// The agents are builds with crash points, because those write down who owned what and when (HOLDFAST_TRACE). Nothing here stops or kills a
// process that it did not start.
package soak_test

import (
	"os"
	"strconv"
	"testing"
	"time"

	"holdfast/conformance/harness"
)

func TestMain(m *testing.M) {
	code := m.Run()
	harness.Cleanup()
	os.Exit(code)
}

// plan is how much a run does, and how much must have happened for it to count.
type plan struct {
	windows, sessions int // sessions of each window
	chaos             time.Duration
	every             time.Duration // between two acts

	kills, takeovers, prompts, pauses int // at least
}

// TestSoak is the short form.
func TestSoak(t *testing.T) {
	soak(t, plan{windows: 3, sessions: 8, chaos: 15 * time.Second, every: 60 * time.Millisecond, kills: 4, takeovers: 2, prompts: 40, pauses: 3})
}

// TestSoak_Long is the whole of it.
func TestSoak_Long(t *testing.T) {
	if os.Getenv("HOLDFAST_CRASH_LONG") == "" {
		t.Skip("two minutes with eight agents; to run it: HOLDFAST_CRASH_LONG=1 go test -count=1 -timeout 20m -run TestSoak_Long ./conformance/soak")
	}
	soak(t, plan{windows: 8, sessions: 50, chaos: 2 * time.Minute, every: 60 * time.Millisecond, kills: 30, takeovers: 20, prompts: 300, pauses: 20})
}

func soak(t *testing.T, p plan) {
	seed := uint64(time.Now().UnixNano())
	if s := os.Getenv("HOLDFAST_SOAK_SEED"); s != "" {
		n, err := strconv.ParseUint(s, 10, 64)
		if err != nil {
			t.Fatalf("HOLDFAST_SOAK_SEED: %v", err)
		}
		seed = n
	}
	t.Logf("seed %d; once more with HOLDFAST_SOAK_SEED=%d", seed, seed)
	w := newWorld(t, p, seed)
	for _, phase := range []struct {
		name string
		do   func()
	}{{"opening", w.open}, {"chaos", w.chaos}, {"coming to rest", w.rest}, {"leaving", w.leave}, {"checking", w.check}} {
		began := time.Now()
		phase.do()
		t.Logf("%s: %s", phase.name, time.Since(began).Round(time.Millisecond))
	}
}
