package quota_test

import (
	"slices"
	"strings"
	"testing"

	"holdfast/conformance/harness"
)

// three leaves a session behind in the middle of one prompt, with two more behind it.
func (w *world) three(set ...string) left {
	w.t.Helper()
	a := w.launch("")
	l := left{a.NewSession(w.tree("t")), w.tree("t"), "one"}
	for _, value := range set {
		w.holdfast(0, nil, "sessions", "recovery", l.id, value)
	}
	for _, text := range []string{"one", "two", "three"} {
		a.Prompt(l.id, text)
	}
	w.await("the first is asked", "one")
	harness.Eventually(w.t, "all are stored", func() bool { return strings.Count(w.runs(l), "queued") == 2 })
	a.Kill()
	w.forget()
	return l
}

// runs are the phases and codes of a session's runs, in order.
func (w *world) runs(l left) string {
	return w.query("SELECT phase || ' ' || reason_code FROM runs WHERE session = ? ORDER BY ord", l.id)
}

// texts are the inputs that are stored, in order.
func (w *world) texts(l left) string {
	return w.query("SELECT json_extract(input, '$.text') FROM runs WHERE session = ? ORDER BY ord", l.id)
}

// inOrder answers the three, each of which is asked once.
func (w *world) inOrder() {
	w.t.Helper()
	for _, text := range []string{"one", "two", "three"} {
		w.await(text+" is asked", text)
		w.release(text)
	}
	harness.Eventually(w.t, "nothing is in the queue", func() bool { return len(w.queue()) == 0 })
	if got := w.asked(); !slices.Equal(got, []string{"one", "two", "three"}) {
		w.t.Errorf("the model was asked %q", got)
	}
}

// aside has a process do something else, so that it has had the time to do what it should not.
func (w *world) aside(a *harness.Agent) {
	w.t.Helper()
	w.say(a, a.NewSession(w.tree("aside")), "quick")
	w.mu.Lock()
	defer w.mu.Unlock()
	w.order = slices.DeleteFunc(w.order, func(s string) bool { return s == "quick" })
}

const (
	offAll      = "waiting recovery_off\nwaiting recovery_off\nwaiting recovery_off"
	attachedAll = "waiting not_attached\nwaiting not_attached\nwaiting not_attached"
)

// What a restart does under each value of the store and of the session: the session's own value goes first.
func TestRecovery_EveryCombination(t *testing.T) {
	for name, c := range map[string]struct{ config, session, want string }{
		"nothing said":               {"", "", "always"},
		"store always":               {"always", "", "always"},
		"store attached":             {"attached", "", "attached"},
		"store off":                  {"off", "", "off"},
		"session always, store off":  {"off", "always", "always"},
		"session off":                {"", "off", "off"},
		"session off, store always":  {"always", "off", "off"},
		"session attached":           {"", "attached", "attached"},
		"session attached, off":      {"off", "attached", "attached"},
		"session off, attached":      {"attached", "off", "off"},
		"session always, attached":   {"attached", "always", "always"},
		"session default, store off": {"off", "default", "off"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			config := ""
			if c.config != "" {
				config = "[recovery]\nauto = \"" + c.config + "\"\n"
			}
			w := newWorld(t, config)
			var l left
			if c.session == "" {
				l = w.three()
			} else {
				l = w.three(c.session)
			}
			a := w.launch("")
			a.Must("session/list", map[string]any{}, nil)
			if got := w.texts(l); got != "one\ntwo\nthree" {
				t.Errorf("stored are %q", got)
			}
			switch c.want {
			case "off":
				w.stands(l, "waiting", "recovery_off")
				w.aside(a)
				w.load(a, l.id, l.cwd) // opening it is no word
				w.aside(a)
				if got := w.runs(l); got != offAll || len(w.asked()) > 0 {
					t.Errorf("the runs are %q, asked %q", got, w.asked())
				}
				w.holdfast(0, nil, "sessions", "retry", l.id)
			case "attached":
				w.stands(l, "waiting", "not_attached")
				w.aside(a)
				if got := w.runs(l); got != attachedAll || len(w.asked()) > 0 {
					t.Errorf("the runs are %q, asked %q", got, w.asked())
				}
				w.load(a, l.id, l.cwd)
			}
			w.inOrder()
		})
	}
}

// A new message is new authority: what was left behind goes first, in order.
func TestRecovery_NewPromptGoesBehind(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "[recovery]\nauto = \"off\"\n")
	l := w.three()
	a := w.launch("")
	w.load(a, l.id, l.cwd)
	w.stands(l, "waiting", "recovery_off")
	id := a.Prompt(l.id, "quick four")
	for _, text := range []string{"one", "two", "three"} {
		w.await(text+" is asked", text)
		w.release(text)
	}
	a.Await(id)
	if got := w.asked(); !slices.Equal(got, []string{"one", "two", "three", "quick four"}) {
		t.Errorf("the model was asked %q", got)
	}
}

// A configuration with a mistake in it may have said "off", so that nothing is revived: it waits as it would then.
func TestRecovery_MistakeIsOff(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "[recovery]\nauto = \"of\"\n")
	l := w.three()
	b := w.launch("")
	w.aside(b)
	if got := w.runs(l); !strings.Contains(got, "waiting recovery_off") || len(w.asked()) != 0 {
		t.Errorf("its runs are %q, and the model was asked %q", got, w.asked())
	}
}

// What is accepted while nobody executes was left behind by nobody.
func TestRecovery_OffConcernsOnlyWhatWasLeft(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "[recovery]\nauto = \"off\"\n")
	a := w.launch("")
	s := a.NewSession(w.tree("t"))
	w.say(a, s, "quick first")
	w.must(a.CloseInput())
	w.holdfast(0, nil, "sessions", "send", s, "quick second")
	w.worker("")
	harness.Eventually(t, "it is worked on", func() bool { return w.times("quick second") == 1 })
}

// The setting can be changed while the work waits, by either door; the work follows, and a stop goes before everything.
func TestRecovery_Changed(t *testing.T) {
	t.Parallel()
	for _, door := range []string{"slash", "command", "stop"} {
		t.Run(door, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, "[recovery]\nauto = \"off\"\n")
			l := w.three()
			a := w.launch("")
			w.load(a, l.id, l.cwd)
			w.stands(l, "waiting", "recovery_off")
			switch door {
			case "slash":
				a.Await(a.Prompt(l.id, "/recovery always"))
				if !strings.Contains(a.Text(l.id), "it goes on by itself") {
					t.Errorf("it says %q", a.Text(l.id))
				}
			case "command":
				w.holdfast(0, nil, "sessions", "recovery", l.id, "always")
				if !strings.Contains(w.holdfast(0, nil, "sessions", "show", l.id), "recovery   always") {
					t.Error("it is not shown")
				}
			case "stop":
				w.holdfast(0, nil, "stop", l.id)
				w.holdfast(0, nil, "sessions", "recovery", l.id, "always")
				w.aside(a)
				w.stands(l, "idle", "")
				if len(w.asked()) > 0 {
					t.Errorf("the model was asked %q", w.asked())
				}
				return
			}
			w.inOrder()
		})
	}
}

// A goal that was left behind waits for its word, which is resume or retry.
func TestRecovery_Goal(t *testing.T) {
	for _, word := range []string{"resume", "retry"} {
		t.Run(word, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, "[recovery]\nauto = \"off\"\n")
			a := w.launch("")
			l := left{a.NewSession(w.tree("t")), w.tree("t"), "the goal"}
			a.Must("_holdfast/create_goal", map[string]any{"sessionId": l.id, "objective": "g"}, nil)
			w.await("its first turn", "")
			w.must(a.CloseInput()) // it departs in order
			w.forget()
			out, _, code := w.command("work")
			if code != 3 || !strings.Contains(out, "recovery_off") || !strings.Contains(out, "holdfast goals retry") {
				t.Errorf("work ended with %d and says %s", code, out)
			}
			var all []struct {
				GoalID, Phase, ReasonCode string
				CanResume, CanRetry       bool
			}
			w.holdfast(0, &all, "goals", "list", "--json")
			if g := all[0]; g.Phase != "waiting" || g.ReasonCode != "recovery_off" || !g.CanResume || !g.CanRetry {
				t.Errorf("the goal is shown as %+v", g)
			}
			if len(w.asked()) > 0 {
				t.Errorf("the model was asked %q", w.asked())
			}
			w.holdfast(0, nil, "goals", word, all[0].GoalID)
			w.worker("")
			w.await("it goes on", "")
		})
	}
}
