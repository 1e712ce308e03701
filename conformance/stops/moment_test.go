package stops_test

import (
	"encoding/json"
	"strconv"
	"testing"
	"time"

	"holdfast/conformance/harness"
)

// confirmLimit is generous: the promise is about one second.
const confirmLimit = 4 * time.Second

// A stop in one window answers the prompts of that window soon, although the process that executes them hangs.
func TestStop_WhileTheOwnerSleeps(t *testing.T) {
	for name, stop := range map[string]func(w *world, b *harness.Agent, session string){
		"cancel":       func(_ *world, b *harness.Agent, session string) { cancel(b, session) },
		"/stop":        func(w *world, b *harness.Agent, session string) { b.Prompt(session, "/stop") },
		"/stop all":    func(w *world, b *harness.Agent, session string) { b.Prompt(session, "/stop all") },
		"command line": func(w *world, _ *harness.Agent, session string) { _ = document[[]stopped](w, "stop", session) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			a, b := w.launch(), w.launch()
			session := a.NewSession(w.work)
			w.load(b, session)
			id := b.Prompt(session, do(foreground(stays("front"))))
			w.begun("front")
			b.NewSession(w.work) // a write of the other: the owner is not suspended in the middle of its own
			w.suspend(a.PID())
			began := time.Now()
			stop(w, b, session)
			if got := ended(t, b, id); got != "cancelled" {
				t.Errorf("stopped with %s", got)
			}
			if took := time.Since(began); took > confirmLimit {
				t.Errorf("it took %v", took)
			}
			message(t, b, "agent_message_chunk", "Stopping: the stop is stored, and process "+strconv.Itoa(a.PID()))
			one, two := b.Prompt(session, do(foreground("echo one >> order"))), b.Prompt(session, do(foreground("echo two >> order")))
			harness.Eventually(t, "the command ends though its process sleeps", func() bool { return len(w.running()) == 0 })
			asked := w.asked()
			w.silent(asked, time.Second, "something began before the old execution has ended")
			if answered(b, one) || answered(b, two) {
				t.Error("a prompt was answered before the old execution has ended")
			}
			wake(t, a.PID())
			if got := ended(t, b, one) + " " + ended(t, b, two); got != "end_turn end_turn" {
				t.Errorf("what was sent meanwhile stops with %s", got)
			}
			if got := w.read("order"); got != "one\ntwo\n" {
				t.Errorf("they ran as %q", got)
			}
			if len(w.running()) != 0 || w.lines("front") != 1 {
				t.Errorf("%v runs, the command ran %d times", w.running(), w.lines("front"))
			}
		})
	}
}

// A stop of what another window asked for is not called done before it is, and ends the command though its process sleeps.
func TestStop_OfAnotherWindowThatSleeps(t *testing.T) {
	for _, stop := range []string{"/stop", "/stop all"} {
		t.Run(stop, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			a, b := w.launch(), w.launch()
			session := a.NewSession(w.work)
			w.load(b, session)
			id := a.Prompt(session, do(foreground(stays("front"))))
			w.begun("front")
			b.NewSession(w.work) // a write of the other: the owner is not suspended in the middle of its own
			w.suspend(a.PID())
			b.Prompt(session, stop)
			message(t, b, "agent_message_chunk", "Stopping: the stop is stored", "rocess "+strconv.Itoa(a.PID()))
			harness.Eventually(t, "the command ends though its process sleeps", func() bool { return len(w.running()) == 0 })
			wake(t, a.PID())
			if got := ended(t, a, id); got != "cancelled" {
				t.Errorf("the prompt ends with %s", got)
			}
			if w.lines("front") != 1 {
				t.Errorf("the command ran %d times", w.lines("front"))
			}
		})
	}
}

// A stop that is the last thing a client says is carried out all the same.
func TestStop_ThenTheClientIsGone(t *testing.T) {
	for name, stop := range map[string]func(a *harness.Agent, session, prompt string){
		"cancel": func(a *harness.Agent, session, _ string) { cancel(a, session) },
		"/stop":  func(a *harness.Agent, session, _ string) { a.Prompt(session, "/stop") },
		"cancel_request": func(a *harness.Agent, _, prompt string) {
			a.Notify("$/cancel_request", map[string]any{"requestId": json.RawMessage(prompt)})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for range 4 {
				w := newWorld(t)
				a := w.launch()
				session := a.NewSession(w.work)
				id := a.Prompt(session, do(foreground(stays("front")), foreground("echo run >> second")))
				w.begun("front")
				stop(a, session, id)
				if err := a.CloseInput(); err != nil {
					t.Error(err)
				}
				b := w.launch()
				w.load(b, session)
				if got := say(t, b, session, do()); got != "end_turn" { // what is found is worked through before it is answered
					t.Errorf("stopped with %s", got)
				}
				if n := w.asked(); n != 2 || w.lines("second") != 0 {
					t.Errorf("what was stopped came back: %d requests", n)
				}
				harness.Eventually(t, "nothing runs", func() bool { return len(w.running()) == 0 })
			}
		})
	}
}

// A cancel covers what was sent before it, and not what comes after it.
func TestCancel_LeavesWhatComesAfter(t *testing.T) {
	for name, stop := range map[string]func(a *harness.Agent, session, prompt string){
		"cancel": func(a *harness.Agent, session, _ string) { cancel(a, session) },
		"cancel_request": func(a *harness.Agent, _, prompt string) {
			a.Notify("$/cancel_request", map[string]any{"requestId": json.RawMessage(prompt)})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			a := w.launch()
			session := a.NewSession(w.work)
			for range 10 {
				asked := w.asked()
				running, queued := a.Prompt(session, do(foreground(stays("front")))), a.Prompt(session, do(foreground("echo run >> never")))
				w.requests(asked + 1)
				stop(a, session, running)
				after := a.Prompt(session, do())
				got := ended(t, a, running) + " " + ended(t, a, queued) + " " + ended(t, a, after)
				if got != "cancelled cancelled end_turn" {
					t.Errorf("the three stop with %s", got)
				}
				if w.lines("never") != 0 {
					t.Error("the queued prompt ran")
				}
			}
		})
	}
}
