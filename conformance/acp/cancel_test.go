package acp_test

import (
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"holdfast/conformance/fakemodel"
	"holdfast/conformance/harness"
)

// cancelLimit is generous: the promise is about one second.
const cancelLimit = 4 * time.Second

// sleeper starts a child, tells its id, and stays.
const sleeper = "sleep 300 & echo $! > child; echo begun; sleep 300"

// places are where a turn can be when it is cancelled: the model's answer, and how to tell that the turn is there.
var places = map[string]struct {
	reply      func(gate chan struct{}) fakemodel.Reply
	permission func(json.RawMessage) string
	reached    func(w *world, a *harness.Agent)
}{
	"before the first word": {
		reply: func(gate chan struct{}) fakemodel.Reply {
			return fakemodel.Reply{Steps: []fakemodel.Step{fakemodel.Gate(gate), {Text: "LATE"}}}
		},
		reached: func(w *world, _ *harness.Agent) { w.requests(1) },
	},
	"in mid-stream": {
		reply: func(gate chan struct{}) fakemodel.Reply {
			return fakemodel.Reply{Steps: []fakemodel.Step{{Text: "early "}, fakemodel.Gate(gate), {Text: "LATE"}}}
		},
		reached: func(w *world, a *harness.Agent) { message(w.t, a, "early") },
	},
	"in a command": {
		reply:   func(chan struct{}) fakemodel.Reply { return command(sleeper) },
		reached: func(w *world, _ *harness.Agent) { w.waitFile("child") },
	},
	"with a question open": {
		reply:      func(chan struct{}) fakemodel.Reply { return command("echo LATE > out") },
		permission: unanswered,
		reached:    func(w *world, a *harness.Agent) { message(w.t, a, "session/request_permission") },
	},
}

// ways are how a client cancels.
var ways = map[string]func(a *harness.Agent, session, prompt string){
	"session cancel": func(a *harness.Agent, session, _ string) {
		a.Notify("session/cancel", map[string]any{"sessionId": session})
	},
	"twice in a row": func(a *harness.Agent, session, _ string) {
		a.Notify("session/cancel", map[string]any{"sessionId": session, "reason": "user"})
		a.Notify("session/cancel", map[string]any{"sessionId": session})
	},
	"cancel_request": func(a *harness.Agent, _, prompt string) {
		a.Notify("$/cancel_request", map[string]any{"requestId": json.RawMessage(prompt)})
	},
}

// However a turn is cancelled, wherever it is: the prompt is answered "cancelled", soon, nothing of the turn is shown or done afterwards,
// what it started is gone, and the next prompt is an ordinary one.
func TestCancel_EverywhereAndEveryWay(t *testing.T) {
	for where, place := range places {
		for how, cancel := range ways {
			t.Run(where+"/"+how, func(t *testing.T) {
				t.Parallel()
				gate := make(chan struct{})
				w := newWorld(t, func(r fakemodel.Request) fakemodel.Reply {
					if r.N == 1 {
						return place.reply(gate)
					}
					return fakemodel.Text("answer to " + r.LastUser())
				})
				a := w.asking(place.permission)
				session := a.NewSession(w.work)
				id := a.Prompt(session, "do it")
				place.reached(w, a)
				began := time.Now()
				cancel(a, session, id)
				if got := stop(t, a, id); got != "cancelled" {
					t.Errorf("stopped with %s", got)
				}
				if took := time.Since(began); took > cancelLimit {
					t.Errorf("it took %v", took)
				}
				shown := len(a.Updates(session))
				close(gate) // the endpoint would go on
				if got := stop(t, a, a.Prompt(session, "what now")); got != "end_turn" {
					t.Errorf("the next prompt stops with %s", got)
				}
				for _, u := range updates(t, a, session)[shown:] {
					if u.ToolCallID != "" || strings.Contains(u.Raw, "LATE") || u.Kind == "user_message_chunk" {
						t.Errorf("after the answer: %s", u.Raw)
					}
				}
				if !strings.HasSuffix(a.Text(session), "answer to what now") {
					t.Errorf("said %q", a.Text(session))
				}
				if w.file("out") != "" {
					t.Error("a call ran that nobody allowed")
				}
				if pid := strings.TrimSpace(w.file("child")); pid != "" {
					dead(t, pid)
				}
				replayedCancelled(t, w, session)
			})
		}
	}
}

// dead waits until a process is gone.
func dead(t *testing.T, pid string) {
	t.Helper()
	n, err := strconv.Atoi(pid)
	if err != nil {
		t.Fatal(err)
	}
	harness.Eventually(t, "the command's child is gone", func() bool { return errors.Is(syscall.Kill(n, 0), syscall.ESRCH) })
}

// replayedCancelled looks at the cancelled turn in a new process: no call is left open, and no question is raised again.
func replayedCancelled(t *testing.T, w *world, session string) {
	t.Helper()
	b := w.start()
	w.load(b, session)
	status := map[string]string{}
	for _, u := range updates(t, b, session) {
		if u.ToolCallID != "" && u.Status != "" {
			status[u.ToolCallID] = u.Status
		}
	}
	for id, s := range status {
		if s != "failed" && s != "completed" {
			t.Errorf("the call %s is replayed as %s", id, s)
		}
	}
	message(t, b, "available_commands_update") // questions come right behind it
	b.Must("session/list", map[string]any{}, nil)
	if position(b, "session/request_permission") >= 0 {
		t.Error("the question of a cancelled turn is raised again")
	}
}

// A cancel of nothing gets no answer and stops nothing that comes later.
func TestCancel_OfNothing(t *testing.T) {
	w := newWorld(t, nil)
	a := w.start()
	session := a.NewSession(w.work)
	for range 3 {
		a.Notify("session/cancel", map[string]any{"sessionId": session})
		if got := stop(t, a, a.Prompt(session, "hi")); got != "end_turn" {
			t.Errorf("stopped with %s", got)
		}
		a.Notify("session/cancel", map[string]any{"sessionId": session}) // late: the turn has ended
	}
	a.Must("session/list", map[string]any{}, nil)
	for _, m := range a.Log() {
		if m.Error != nil {
			t.Errorf("a cancel was answered: %s", m.Raw)
		}
	}
}

// A cancel stops all that is asked of a session: the prompts in the queue as well, and only of this session.
func TestCancel_QueueAndOtherSessions(t *testing.T) {
	gate := make(chan struct{})
	w := newWorld(t, func(r fakemodel.Request) fakemodel.Reply {
		return fakemodel.Reply{Steps: []fakemodel.Step{{Text: "begun " + r.LastUser() + " "}, fakemodel.Gate(gate), {Text: "ended"}}}
	})
	a := w.start()
	one, two := a.NewSession(w.work), a.NewSession(w.work)
	running, other := a.Prompt(one, "running"), a.Prompt(two, "other")
	message(t, a, "begun running")
	message(t, a, "begun other")
	queued := a.Prompt(one, "queued")
	a.Must("session/list", map[string]any{}, nil)
	a.Notify("session/cancel", map[string]any{"sessionId": one})
	for name, id := range map[string]string{"running": running, "queued": queued} {
		if got := stop(t, a, id); got != "cancelled" {
			t.Errorf("the %s prompt stops with %s", name, got)
		}
	}
	close(gate)
	if got := stop(t, a, other); got != "end_turn" || a.Text(two) != "begun other ended" {
		t.Errorf("the other session stops with %s: %q", got, a.Text(two))
	}
	if n := len(w.model.Requests()); n != 2 {
		t.Errorf("the queued prompt reached the model: %d requests", n)
	}
}
