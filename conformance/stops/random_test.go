package stops_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"holdfast/conformance/harness"
)

// Fifty cancels at random moments, by either window and in three ways: the prompt is answered, the next one runs, and the session is never
// left as running.
func TestCancel_FiftyTimes(t *testing.T) {
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	w := newWorld(t)
	a, b := w.launch(), w.launch()
	session := a.NewSession(w.work)
	w.load(b, session)
	windows := []*harness.Agent{a, b}
	orders := []string{do(foreground("sleep 600")), do("hang"), do(foreground("true"), foreground("true")), do(), do("busy")}
	for i := range 50 {
		x := windows[rnd.IntN(2)]
		id := x.Prompt(session, orders[rnd.IntN(len(orders))])
		<-time.After(time.Duration(rnd.IntN(120)) * time.Millisecond) // the moment is the test
		switch rnd.IntN(3) {
		case 0:
			cancel(x, session)
		case 1:
			y := windows[rnd.IntN(2)]
			cancel(y, session)
			y.Must("session/set_mode", map[string]any{"sessionId": session, "modeId": "ask"}, nil) // behind it: it must not come after the next prompt
			cancel(x, session)
		default:
			x.Prompt(session, "/stop")
		}
		if got := ended(t, x, id); got != "cancelled" && got != "end_turn" { // it may have come to its end before
			t.Errorf("round %d stops with %s", i, got)
		}
		if got := say(t, x, session, do()); got != "end_turn" {
			t.Fatalf("after round %d the next prompt stops with %s", i, got)
		}
	}
	harness.Eventually(t, "nothing runs", func() bool { return len(w.running()) == 0 && w.state(session) == "idle" })
}
