package stops_test

import (
	"strings"
	"testing"
	"time"

	"holdfast/conformance/harness"
)

// points are the instants on the way of a stop at which the executing process, or the one that says it, may die.
var points = []string{"cancel.accepted:before", "cancel.accepted:after", "turn.left:before", "turn.left:after", "remark.stored:before", "remark.stored:after",
	"background.settled:before", "background.settled:after", "command.consumed:before", "command.consumed:after"}

// The editor's process dies in the middle of a stop: once it was stored, nothing comes back. Before, the user says it again.
func TestStop_DiesInTheMiddle(t *testing.T) {
	for _, point := range points {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			a := w.launch()
			session := a.NewSession(w.work)
			a.Prompt(session, do(background(stays("behind")), foreground(stays("front")), foreground("echo run >> next")))
			w.begun("behind")
			w.begun("front")
			a.Kill()
			a = w.launch("HOLDFAST_CRASH=" + point)
			w.load(a, session)
			harness.Eventually(t, "it goes on", func() bool { return !alive(a) || strings.Contains(a.Text(session), "Holdfast was restarted") })
			a.Prompt(session, "/stop")
			harness.Eventually(t, "it dies", func() bool { return !alive(a) })
			stored := point != "cancel.accepted:before"
			asked := w.asked()
			b := w.launch()
			if !stored {
				say(t, b, b.NewSession(w.work), "/stop all")
				asked = w.asked()
			}
			w.load(b, session)
			harness.Eventually(t, "nothing runs", func() bool { return len(w.running()) == 0 })
			w.silent(asked, 2*time.Second, "it came back")
			if got := say(t, b, session, do()); got != "end_turn" {
				t.Errorf("the next prompt stops with %s", got)
			}
			if w.lines("front") != 1 || w.lines("behind") != 1 || w.lines("next") != 0 {
				t.Errorf("%d, %d and %d runs", w.lines("front"), w.lines("behind"), w.lines("next"))
			}
		})
	}
}

// The command line dies right after it has stored a stop: whoever executes carries it out, now or at the next launch.
func TestStop_TheCommandLineDies(t *testing.T) {
	for _, lives := range []bool{true, false} {
		t.Run(map[bool]string{true: "an owner lives", false: "nobody executes"}[lives], func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			a := w.launch()
			session := a.NewSession(w.work)
			a.Prompt(session, do(background(stays("behind")), foreground(stays("front"))))
			w.begun("behind")
			w.begun("front")
			if !lives {
				a.Kill()
			}
			_, faulty, err := harness.Binaries()
			if err != nil {
				t.Fatal(err)
			}
			cmd := w.command(faulty, "stop", "--all")
			cmd.Env = append(cmd.Env, "HOLDFAST_CRASH=cancel.accepted:after")
			if err := cmd.Run(); err == nil {
				t.Fatal("it did not die")
			}
			if !lives {
				w.launch()
			}
			harness.Eventually(t, "nothing runs", func() bool { return len(w.running()) == 0 })
			w.silent(w.asked(), time.Second, "it came back")
			if got := w.state(session); got != "idle" {
				t.Errorf("the session is %s", got)
			}
		})
	}
}
