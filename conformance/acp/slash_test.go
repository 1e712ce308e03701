package acp_test

import (
	"strings"
	"testing"

	"holdfast/conformance/harness"
)

// A goal that is set as a command keeps its prompt open until the goal ends, so that the client's Stop button works.
func TestSlash_PromptStaysOpenForTheGoal(t *testing.T) {
	gate := make(chan struct{})
	w := newWorld(t, pursuing(gate))
	a := w.start()
	session := a.NewSession(w.work)
	id := a.Prompt(session, "/goal Produce out.txt.")
	message(t, a, "working")
	if g := getGoal(t, a, session); g == nil || g.Objective != "Produce out.txt." || g.Status != "active" {
		t.Fatalf("the goal is %+v", g)
	}
	if answered(a, id) {
		t.Error("the prompt ended before its goal")
	}
	if got := stop(t, a, a.Prompt(session, "/status")); got != "end_turn" || !strings.Contains(a.Text(session), "Goal active") {
		t.Errorf("status stops with %s: %q", got, a.Text(session))
	}
	close(gate)
	if got := stop(t, a, id); got != "end_turn" {
		t.Errorf("stopped with %s", got)
	}
	if g := getGoal(t, a, session); g.Status != "achieved" {
		t.Errorf("the prompt ended with the goal %s", g.Status)
	}
	if n := strings.Count(a.Text(session), "Goal achieved"); n != 1 {
		t.Errorf("the end is told %d times: %q", n, a.Text(session))
	}
	b := w.start()
	w.load(b, session)
	if n := position(b, "user_message_chunk", "/goal Produce out.txt."); n < 0 {
		t.Errorf("the replay lacks the command: %s", sent(b))
	}
}

func answered(a *harness.Agent, id string) bool {
	for _, m := range a.Log() {
		if m.Method == "" && string(m.ID) == id {
			return true
		}
	}
	return false
}

// Commands say where the goal stands and control it.
func TestSlash_Controls(t *testing.T) {
	gate := make(chan struct{})
	w := newWorld(t, pursuing(gate))
	a := w.start()
	session := a.NewSession(w.work)
	for _, text := range []string{"/goal", "/goal status", "/status", "/goal pause", "/goal end", "/goal resume"} {
		if got := stop(t, a, a.Prompt(session, text)); got != "end_turn" {
			t.Errorf("%s without a goal stops with %s", text, got)
		}
	}
	if n := strings.Count(strings.ToLower(a.Text(session)), "no goal"); n != 6 {
		t.Errorf("said %q", a.Text(session))
	}
	if n := len(w.model.Requests()); n != 0 {
		t.Errorf("commands made %d model requests", n)
	}
	working := a.Prompt(session, "/goal Produce out.txt.")
	message(t, a, "working")
	if got := stop(t, a, a.Prompt(session, "/goal pause")); got != "end_turn" {
		t.Errorf("pause stops with %s", got)
	}
	if got := stop(t, a, working); got != "end_turn" {
		t.Errorf("the paused goal's prompt stops with %s", got)
	}
	if g := getGoal(t, a, session); g.Status != "paused" {
		t.Errorf("the goal is %s", g.Status)
	}
	close(gate)
	if got := stop(t, a, a.Prompt(session, "/goal resume")); got != "end_turn" {
		t.Errorf("resume stops with %s", got)
	}
	if g := getGoal(t, a, session); g.Status != "achieved" {
		t.Errorf("the resumed goal's prompt ended with the goal %s", g.Status)
	}
}

// Stop pauses the goal: it must not start again under the user's hand. An explicit resume starts it.
func TestSlash_CancelPausesTheGoal(t *testing.T) {
	gate := make(chan struct{})
	w := newWorld(t, pursuing(gate))
	a := w.start()
	session := a.NewSession(w.work)
	id := a.Prompt(session, "/goal Produce out.txt.")
	message(t, a, "working")
	a.Notify("session/cancel", map[string]any{"sessionId": session})
	if got := stop(t, a, id); got != "cancelled" {
		t.Errorf("stopped with %s", got)
	}
	if g := getGoal(t, a, session); g.Status != "paused" {
		t.Errorf("the goal is %s", g.Status)
	}
	if err := a.CloseInput(); err != nil {
		t.Fatal(err)
	}
	close(gate)
	b := w.start()
	w.load(b, session)
	message(t, b, "available_commands_update")
	if g := getGoal(t, b, session); g.Status != "paused" {
		t.Errorf("after a restart the goal is %s", g.Status)
	}
	if got := stop(t, b, b.Prompt(session, "/goal resume")); got != "end_turn" || getGoal(t, b, session).Status != "achieved" {
		t.Errorf("resumed, it stops with %s, the goal is %s", got, getGoal(t, b, session).Status)
	}
}

// The commands are announced, and what only looks like one is an ordinary prompt.
func TestSlash_AnnouncedAndRecognised(t *testing.T) {
	w := newWorld(t, nil)
	a := w.start()
	session := a.NewSession(w.work)
	message(t, a, "available_commands_update", session, `"goal"`, `"status"`)
	a.Await(a.Prompt(session, "/goalkeeper gloves"))
	a.Await(a.Prompt(session, "/etc/passwd is what?"))
	if reqs := w.requests(2); reqs[0].LastUser() != "/goalkeeper gloves" || reqs[1].LastUser() != "/etc/passwd is what?" {
		t.Errorf("the model got %q and %q", reqs[0].LastUser(), reqs[1].LastUser())
	}
	b := w.start()
	w.load(b, session)
	message(t, b, "available_commands_update", `"goal"`, `"status"`)
}

// Words that a user would type for help or to stop are no objectives, and what a refusal or a line offers can be typed.
func TestSlash_ReservedWords(t *testing.T) {
	gate := make(chan struct{})
	w := newWorld(t, pursuing(gate))
	a := w.start()
	session := a.NewSession(w.work)
	said := func(text string) string {
		t.Helper()
		before := len(a.Text(session))
		if got := stop(t, a, a.Prompt(session, text)); got != "end_turn" {
			t.Errorf("%s stops with %s", text, got)
		}
		return a.Text(session)[before:]
	}
	says := func(text string, wants ...string) {
		t.Helper()
		got := said(text)
		for _, want := range wants {
			if !strings.Contains(got, want) {
				t.Errorf("%s says %q, want %q", text, got, want)
			}
		}
	}
	says("/goal help", "/goal <objective>", "/goal pause", "stop, cancel", "/goal revise", "/goal add <text>", "/goal confirm <requirement>")
	for _, text := range []string{"/goal stop", "/goal cancel", "/goal revise Produce out.txt.", "/goal confirm", "/goal confirm r1"} {
		says(text, "no goal")
	}
	if g := getGoal(t, a, session); g != nil {
		t.Fatalf("a word became a goal: %+v", g)
	}
	first := a.Prompt(session, "/goal Produce out.txt.")
	message(t, a, "working")
	says("/goal Another one.", "/goal revise <objective>", "/goal end")
	says("/goal help", "/goal <objective>")
	says("/goal revise", "/goal revise <objective>")
	says("/goal confirm", "nothing was read out of the objective that could be confirmed")
	says("/goal confirm r7", "no such requirement")
	says("/goal add", "/goal add <text>")
	says("/goal ad", "Did you mean /goal add?")
	says("/goal add it is  short", "Added as requirement r1.", "Goal active")
	if g := getGoal(t, a, session); len(g.Requirements) != 2 || g.Requirements[1].Text != "it is  short" {
		t.Errorf("the goal is %+v", g)
	}
	a.Must("update_goal", map[string]any{"sessionId": session, "action": "budget", "budget": map[string]any{"tokens": 90000000}}, nil)
	says("/goal status", "Goal active", "\n- objective (semantic, user) is unknown: Produce out.txt.", "\n- r1 (semantic, added) is unknown: it is short",
		"Used ", " of 90000000 tokens.", "\nTurns: 1.")
	says("/goal stop", "Goal paused", "You can: /goal resume, /goal end.")
	if got := stop(t, a, first); got != "end_turn" {
		t.Errorf("the first prompt stops with %s", got)
	}
	says("/goal revise Produce out.txt, and say so.", "Goal paused") // a revision revives nothing
	if g := getGoal(t, a, session); g.Objective != "Produce out.txt, and say so." || g.Status != "paused" {
		t.Errorf("the goal is %+v", g)
	}
	says("/goal end", "Goal cancelled")
	says("/goal resume", "Set a new one with /goal <objective>")
	says("/goal confirm r1", "Set a new one with /goal <objective>")
	_, e := a.Call("update_goal", map[string]any{"sessionId": session, "action": "fly"})
	refused(t, "an unknown action on an ended goal", e, -32602, "action", "pause")
	close(gate)
}

// What begins like a word of a command and goes on as an objective is one: as long as there is no goal that it could be about.
func TestSlash_ObjectivesThatBeginWithAWord(t *testing.T) {
	gate := make(chan struct{})
	w := newWorld(t, pursuing(gate))
	a := w.start()
	for _, objective := range []string{"confirm that the door is green", "add a door to the house", "budget the trip", "add"} {
		session := a.NewSession(w.work)
		id := a.Prompt(session, "/goal "+objective)
		if objective == "add" {
			if got := stop(t, a, id); got != "end_turn" || getGoal(t, a, session) != nil {
				t.Errorf("%q stops with %s and is a goal", objective, got)
			}
			continue
		}
		harness.Eventually(t, objective+" is a goal", func() bool { g := getGoal(t, a, session); return g != nil && g.Objective == objective })
		if got := stop(t, a, a.Prompt(session, "/goal confirm that it is so")); got != "end_turn" || !strings.Contains(a.Text(session), "already has an unfinished goal") {
			t.Errorf("a second objective stops with %s: %q", got, a.Text(session))
		}
		if got := stop(t, a, a.Prompt(session, "/goal add a window")); got != "end_turn" || len(getGoal(t, a, session).Requirements) != 2 {
			t.Errorf("an addition stops with %s: %q", got, a.Text(session))
		}
	}
	close(gate)
}
