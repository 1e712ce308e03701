package stops_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"holdfast/conformance/harness"
)

// recoveredMark begins the line about work that was recovered elsewhere.
const recoveredMark = "Recovered: work in "

// told are the messages that hold the line, by their place in what the agent sent.
func told(a *harness.Agent) (places []int, text string) {
	for i, m := range a.Log() {
		if strings.Contains(string(m.Raw), recoveredMark) {
			places, text = append(places, i), text+string(m.Params)
		}
	}
	return places, text
}

// place is where the answer to a request stands.
func place(a *harness.Agent, id string) int {
	for i, m := range a.Log() {
		if m.Method == "" && string(m.ID) == id {
			return i
		}
	}
	return -1
}

// about fails when an update or a question names a session that was not opened.
func about(t *testing.T, a *harness.Agent, opened ...string) {
	t.Helper()
	for _, m := range a.Log() {
		var p struct{ SessionID string }
		if m.Method == "" || json.Unmarshal(m.Params, &p) != nil || p.SessionID == "" {
			continue
		}
		known := false
		for _, id := range opened {
			known = known || p.SessionID == id
		}
		if !known {
			t.Errorf("something was sent about a session that is not open: %s", m.Raw)
		}
	}
}

// settle waits until everything that the opening of a session brings has been said: what it says of a session opened behind it.
func settle(a *harness.Agent, w *world) {
	w.t.Helper()
	id := a.NewSession(w.work)
	say(w.t, a, id, do())
	w.load(a, id)
	harness.Eventually(w.t, "the silence ends", func() bool {
		n := 0
		for _, u := range a.Updates(id) {
			if strings.Contains(string(u), "available_commands_update") {
				n++
			}
		}
		return n > 1
	})
}

// interrupted leaves two sessions in the middle of a command, one that is idle, and no process.
func interrupted(w *world) (one, two string) {
	w.t.Helper()
	a := w.launch()
	one, two = a.NewSession(w.work), a.NewSession(w.work)
	idle := a.NewSession(w.work)
	say(w.t, a, idle, "idle "+do())
	a.Prompt(one, "paint the fence "+do(foreground(stays("fence"))))
	a.Prompt(two, "mow the lawn "+do(foreground(stays("lawn"))))
	w.begun("fence")
	w.begun("lawn")
	a.Kill()
	return one, two
}

// The first session that a client opens shows one line about what was recovered elsewhere, after its answer, and no other session does.
func TestRecovered_OneLine(t *testing.T) {
	for name, open := range map[string]func(w *world, a *harness.Agent, one string) (session, request, want string){
		"a new session": func(w *world, a *harness.Agent, _ string) (string, string, string) {
			id := a.Begin("session/new", map[string]any{"cwd": w.work, "mcpServers": []any{}})
			var r struct{ SessionID string }
			if m := a.Await(id); json.Unmarshal(m.Result, &r) != nil {
				w.t.Fatalf("no session: %s", m.Raw)
			}
			return r.SessionID, id, "2 other sessions"
		},
		"load": func(w *world, a *harness.Agent, one string) (string, string, string) {
			return one, a.Begin("session/load", w.params(one)), "1 other session"
		},
		"resume": func(w *world, a *harness.Agent, one string) (string, string, string) {
			return one, a.Begin("session/resume", w.params(one)), "1 other session"
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			one, two := interrupted(w)
			a := w.launch()
			session, request, want := open(w, a, one)
			message(t, a, recoveredMark)
			places, text := told(a)
			if !holds([]byte(text), []string{want, "mow the lawn", w.work, "/stop all", "holdfast stop --all", `"sessionId":"` + session + `"`}) {
				t.Errorf("it says %s", text)
			}
			if strings.Contains(text, "paint the fence") != (session != one) || strings.Contains(text, "idle") {
				t.Errorf("it says %s", text)
			}
			if answer := place(a, request); answer < 0 || places[0] < answer {
				t.Errorf("the line stands at %d, the answer at %d", places[0], answer)
			}
			settle(a, w)
			w.load(a, two)
			settle(a, w)
			if places, _ := told(a); len(places) != 1 {
				t.Errorf("it was said %d times", len(places))
			}
			// It is no part of the session: neither its transcript nor the model has it.
			if out, _, _ := w.cli("sessions", "show", session); strings.Contains(out, recoveredMark) {
				t.Errorf("the transcript has it: %s", out)
			}
			for _, r := range w.model.Requests() {
				if strings.Contains(string(r.Body), recoveredMark) {
					t.Error("the model was told")
				}
			}
			// What it offers does what it says.
			say(t, a, session, "/stop all")
			harness.Eventually(t, "nothing runs", func() bool { return len(w.running()) == 0 })
			if w.lines("fence") != 1 || w.lines("lawn") != 1 {
				t.Error("a command ran again")
			}
		})
	}
}

// Nothing is said of a session that the client has not opened, and the line is a notice where the client shows those.
func TestRecovered_ANotice(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	interrupted(w)
	a := w.start(w.plain(), map[string]any{"session": map[string]any{"notices": map[string]any{}}}, nil)
	session := a.NewSession(w.work)
	message(t, a, recoveredMark, `"sessionUpdate":"notice"`)
	about(t, a, session)
}

// Another process has recovered it: the line is the same, because nobody has it open.
func TestRecovered_ByAnotherProcess(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	one, two := interrupted(w)
	other := w.launch() // its client opens nothing, and recovery begins without
	for _, id := range []string{one, two} {
		harness.Eventually(t, "it goes on", func() bool {
			out, _, _ := w.cli("sessions", "show", id)
			return strings.Contains(out, "Holdfast was restarted; continuing") || strings.Contains(out, "worktree_busy") // one at a time in a work tree
		})
	}
	a := w.launch()
	session := a.NewSession(w.work)
	message(t, a, recoveredMark, "2 other sessions")
	about(t, a, session)
	about(t, other)
}

// What ended before anybody could look is told all the same.
func TestRecovered_AndAlreadyOver(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.launch()
	session := a.NewSession(w.work)
	a.Prompt(session, "quick "+do(foreground("echo run >> first; while [ ! -e go ]; do sleep 0.02; done")))
	w.begun("first")
	a.Kill()
	w.put("go")
	b := w.launch()
	b.NewSession(w.work)
	message(t, b, recoveredMark, "1 other session", "quick")
	harness.Eventually(t, "it is over", func() bool { return w.state(session) == "idle" })
}

// Nothing was recovered: nothing is said.
func TestRecovered_Nothing(t *testing.T) {
	quiet := func(json.RawMessage) string { return "" }
	for name, before := range map[string]func(w *world){
		"nothing was there": func(*world) {},
		"it was idle": func(w *world) {
			a := w.launch()
			say(w.t, a, a.NewSession(w.work), do())
			a.Kill()
		},
		"it was stopped": func(w *world) {
			interrupted(w)
			_ = document[[]stopped](w, "stop", "--all")
		},
		"it was closed": func(w *world) {
			a := w.launch()
			id := a.NewSession(w.work)
			a.Prompt(id, do(foreground(stays("front"))))
			w.begun("front")
			closeSession(a, id)
			a.Kill()
		},
		"it waits for an answer": func(w *world) {
			a := w.start(w.plain(), map[string]any{}, quiet)
			a.Prompt(a.NewSession(w.work), do(foreground(stays("front"))))
			message(w.t, a, "session/request_permission")
			a.Kill()
		},
		"another window works": func(w *world) {
			a := w.launch()
			a.Prompt(a.NewSession(w.work), do(foreground(stays("front"))))
			w.begun("front")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			before(w)
			a := w.launch()
			a.NewSession(w.work)
			settle(a, w)
			w.silent(w.asked(), time.Second, "something goes on")
			if places, text := told(a); len(places) != 0 {
				t.Errorf("it says %s", text)
			}
		})
	}
}
