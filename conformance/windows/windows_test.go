package windows_test

import (
	"fmt"
	"strings"
	"testing"

	"holdfast/conformance/harness"
)

var looks = script{"look": {shell("whose; echo token $MY_TOKEN; echo colour $COLOUR")}}

// Each prompt runs with what its own editor has: its endpoint, its key, its programs, its variables. Opening the session changes nothing.
func TestWindows_NothingCrosses(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a, b := w.editor("ann", looks), w.editor("bob", looks)
	a.env = []string{"MY_TOKEN=tok-of-ann", "COLOUR=amber"}
	b.env = []string{"MY_TOKEN=tok-of-bob", "COLOUR=blue"}
	a.launch()
	session := a.NewSession(w.work)
	a.Must("session/set_mode", map[string]any{"sessionId": session, "modeId": "edit"}, nil)
	a.say(session, "look")
	b.launch().load(session)
	if got := b.view(session); got.Mode != "edit" {
		t.Errorf("opening it made the mode %s", got.Mode)
	}
	a.say(session, "look")
	a.only(4)
	b.only(0)
	if got := w.said(); got != strings.Repeat("I am of ann\ntoken tok-of-ann\ncolour amber\n", 2) {
		t.Errorf("ann's commands printed %q", got)
	}
	b.say(session, "look")
	b.only(2)
	if got := w.said(); !strings.HasSuffix(got, "amber\nI am of bob\ntoken tok-of-bob\ncolour blue\n") {
		t.Errorf("after bob's prompt it says %q", got)
	}
	a.say(session, "look")
	a.only(6)
	b.only(2)
	if got := w.said(); !strings.HasSuffix(got, "blue\nI am of ann\ntoken tok-of-ann\ncolour amber\n") {
		t.Errorf("after ann's prompt it says %q", got)
	}
	v := a.view(session)
	if len(v.Windows) != 2 || v.Windows[0].Client != "ann" || v.Windows[1].Client != "bob" || !v.Windows[0].Answers || v.Windows[0].Endpoint == v.Windows[1].Endpoint ||
		v.Windows[0].Environment == v.Windows[1].Environment {
		t.Errorf("the windows are %+v", v.Windows)
	}
	for _, secret := range []string{a.key, b.key} {
		if found := w.stores(secret); len(found) > 0 {
			t.Errorf("a key is in %v", found)
		}
	}
}

// A variable that may hold a secret is on record by its name alone.
func TestWindows_NoSecretIsStored(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.editor("ann", script{"look": {shell("test -n \"$MY_TOKEN\" && echo it is there")}})
	a.env = []string{"MY_TOKEN=hush-hush-value", "DATABASE_URL=postgres://ann:db-hush@localhost/x", "COLOUR=amber-visible"}
	a.launch()
	session := a.NewSession(w.work)
	a.say(session, "look")
	if got := w.said(); got != "it is there\n" {
		t.Errorf("the command printed %q", got)
	}
	for _, secret := range []string{"hush-hush-value", "db-hush"} {
		if found := w.stores(secret); len(found) > 0 {
			t.Errorf("%s is in %v", secret, found)
		}
	}
	if len(w.stores("amber-visible")) == 0 || len(w.stores("MY_TOKEN")) == 0 {
		t.Error("the environment is not on record, so that this shows nothing")
	}
}

// A prompt from the second editor, given while the first one's work runs, waits for its end and then runs with what its editor has.
func TestWindows_PromptWhileTheOtherWorks(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a, b := w.editor("ann", looks), w.editor("bob", looks)
	a.hold("look")
	a.launch()
	session := a.NewSession(w.work)
	first := a.Prompt(session, "look")
	a.received(2)
	b.launch().load(session)
	second := b.Prompt(session, "look")
	b.only(0)
	a.open("look")
	if got := a.ended(first); got != "end_turn" {
		t.Errorf("ann's prompt ended with %s", got)
	}
	if got := b.ended(second); got != "end_turn" {
		t.Errorf("bob's prompt ended with %s", got)
	}
	a.only(2)
	b.only(2)
	if got := w.said(); !strings.HasPrefix(got, "I am of ann\n") || !strings.Contains(got, "I am of bob\n") {
		t.Errorf("the commands printed %q", got)
	}
	a.shows(session, "done bob look")
	b.shows(session, "done ann look")
}

// The second editor is gone when its prompt's turn comes: the first one's endpoint never gets it. It waits for its own.
func TestWindows_PromptOfOneThatIsGone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a, b := w.editor("ann", looks), w.editor("bob", looks)
	a.hold("look")
	a.launch()
	session := a.NewSession(w.work)
	first := a.Prompt(session, "look")
	a.received(2)
	b.launch().load(session)
	b.Prompt(session, "hello")
	harness.Eventually(t, "bob's prompt is stored", func() bool {
		return len(harness.Rows(t, w.home, `SELECT id FROM runs WHERE input LIKE '%"text":"hello"%'`)) > 0
	})
	b.Kill()
	a.open("look")
	a.ended(first)
	a.waits(session, "environment_differs")
	a.only(2)
	b.launch()
	a.shows(session, "done bob hello")
	b.only(1)
	a.only(2)
}

// The owner's window closes while its question is open. An editor that can go on gets the session and the question; nothing is asked twice
// of the model, and the command runs once.
func TestWindows_HandedOverWithAQuestionOpen(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.editor("ann", looks)
	a.env = []string{"COLOUR=amber"}
	b := a.like("bob")
	a.leave, b.leave = true, true
	a.launch()
	session := a.NewSession(w.work)
	a.Prompt(session, "look")
	harness.Eventually(t, "ann is asked", func() bool { return a.questions() > 0 })
	b.launch().load(session)
	harness.Eventually(t, "bob is asked", func() bool { return b.questions() > 0 })
	if got := a.view(session); got.OwnerPid != a.PID() {
		t.Fatalf("opening it took it from a window that has it: owner %d", got.OwnerPid)
	}
	a.Must("session/close", map[string]any{"sessionId": session}, nil)
	harness.Eventually(t, "bob's process has it", func() bool { return b.view(session).OwnerPid == b.PID() })
	a.only(1)
	q, ok := b.Find(func(m harness.Message) bool { return m.Method == "session/request_permission" })
	if !ok {
		t.Fatal("the question is gone")
	}
	b.Answer(q.ID, map[string]any{"outcome": map[string]any{"outcome": "selected", "optionId": "allow_once"}})
	b.shows(session, "done ann look")
	a.only(2)
	if got := w.said(); got != "I am of ann\ntoken\ncolour amber\n" {
		t.Errorf("the command printed %q", got)
	}
	if strings.Contains(b.Text(session), "restarted") {
		t.Errorf("bob is told of a restart: %q", b.Text(session))
	}
}

// The owner's window closes, and the other editor cannot go on: the owner goes on without a window.
func TestWindows_OpeningIsNoWorseThanClosing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a, b := w.editor("ann", looks), w.editor("bob", looks)
	a.hold("look")
	a.launch()
	session := a.NewSession(w.work)
	a.Prompt(session, "look")
	a.received(2)
	b.launch().load(session)
	a.Must("session/close", map[string]any{"sessionId": session}, nil)
	a.open("look")
	b.shows(session, "done ann look")
	a.only(2)
	b.only(0)
	// Now nothing runs, and the session comes to the only window.
	harness.Eventually(t, "bob's process has it", func() bool { return b.view(session).OwnerPid == b.PID() })
}

// The owner dies, and a process with another key is alive and has the session open. The work waits, says for what, and goes on by itself when
// an editor with its key comes back, although nobody opens it there.
func TestWindows_WaitsForItsKey(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"killed", "closed"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			a, b := w.editor("ann", looks), w.editor("bob", nil)
			a.hold("look")
			a.launch()
			session := a.NewSession(w.work)
			a.Prompt(session, "look")
			a.received(2)
			b.launch().load(session)
			if how == "killed" {
				a.Kill()
			} else if err := a.CloseInput(); err != nil {
				t.Fatal(err)
			}
			v := b.waits(session, "environment_differs")
			host := strings.TrimPrefix(a.model.Origin(), "http://")
			if !strings.Contains(v.Reason, host) || v.OwnerPid != 0 {
				t.Errorf("it says %+v", v)
			}
			a.open("look")
			if out := b.cli("sessions", "retry", session); strings.Contains(out, "unknown") {
				t.Errorf("retry says %s", out)
			}
			b.waits(session, "environment_differs")
			b.only(0)
			a.launch()
			b.shows(session, "done ann look")
			b.only(0)
			if n := strings.Count(w.said(), "I am of ann"); n != 1 {
				t.Errorf("the command ran %d times: %q", n, w.said())
			}
		})
	}
}

// All of it goes on by itself and in order when its editor comes back, what was queued as well.
func TestWindows_TheQueueWaitsToo(t *testing.T) {
	t.Parallel()
	for _, seen := range []bool{true, false} {
		t.Run(fmt.Sprintf("open in the other %v", seen), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			a, b := w.editor("ann", looks), w.editor("bob", nil)
			a.hold("look")
			a.launch()
			session := a.NewSession(w.work)
			a.Prompt(session, "look")
			a.received(2)
			a.Prompt(session, "then")
			a.Must("session/set_mode", map[string]any{"sessionId": session, "modeId": "ask"}, nil) // answered after the prompt was accepted
			if b.launch(); seen {
				b.load(session)
			}
			a.Kill()
			harness.Eventually(t, "both wait for her key", func() bool {
				return strings.Count(b.cli("sessions", "show", session, "--json"), "environment_differs") > 0
			})
			a.open("look")
			a.launch().load(session)
			a.shows(session, "done ann look")
			a.shows(session, "done ann then")
			b.only(0)
		})
	}
}

// The same work goes on elsewhere when a person says so there, and one line says with what.
func TestWindows_APersonTakesItOn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a, b := w.editor("ann", looks), w.editor("bob", looks)
	a.hold("look")
	a.launch()
	session := a.NewSession(w.work)
	a.Prompt(session, "look")
	a.received(2)
	b.launch().load(session)
	a.Kill()
	b.waits(session, "environment_differs")
	b.only(0)
	b.say(session, "/retry")
	b.shows(session, "It goes on with ")
	b.shows(session, "done bob look")
	line := b.Text(session)
	for _, e := range []*editor{a, b} {
		if !strings.Contains(line, strings.TrimPrefix(e.model.Origin(), "http://")) {
			t.Errorf("the line does not name %s's host: %q", e.name, line)
		}
	}
	if n := strings.Count(w.said(), "I am of"); n != 1 {
		t.Errorf("the command ran %d times", n)
	}
}

// Only the key differs: it is said so, and the key is not.
func TestWindows_AnotherKeyOfTheSameEndpoint(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.editor("ann", looks)
	b := a.like("bob")
	b.key = "sk-bob-9876543210"
	a.hold("look")
	a.launch()
	session := a.NewSession(w.work)
	a.Prompt(session, "look")
	a.received(2)
	b.launch().load(session)
	a.Kill()
	if v := b.waits(session, "environment_differs"); !strings.Contains(v.Reason, "another key") || strings.Contains(v.Reason, "sk-") {
		t.Errorf("it says %q", v.Reason)
	}
	a.only(2)
}

// A Goal belongs to the editor that set it, whatever is said in another one in between.
func TestWindows_AGoalKeepsItsEditor(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a, b := w.editor("ann", looks), w.editor("bob", looks)
	a.hold("") // no prompt: the goal's first turn
	a.launch()
	session := a.NewSession(w.work)
	a.Begin("create_goal", map[string]any{"sessionId": session, "objective": "Look around."})
	a.received(1)
	b.launch().load(session)
	hello := b.Prompt(session, "hello")
	a.open("")
	if got := b.ended(hello); got != "end_turn" {
		t.Errorf("bob's prompt ended with %s", got)
	}
	b.shows(session, "done bob hello")
	b.shows(session, "done ann hello") // the goal goes on at its own endpoint
	b.only(1)
	for _, r := range b.model.Requests() {
		if strings.Contains(r.Messages[0].Content, "The user has set a goal") {
			t.Error("the goal reached bob's endpoint")
		}
	}
	a.Must("update_goal", map[string]any{"sessionId": session, "action": "end"}, nil)
}
