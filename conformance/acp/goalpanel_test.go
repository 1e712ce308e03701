package acp_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"holdfast/conformance/fakemodel"
	"holdfast/conformance/harness"
)

// snap is a goal as clients with a goal panel read it.
type snap struct {
	Objective, Status, ControlMethod string
	CreatedAt, UpdatedAt             int64
	TokenBudget                      *int64
	TokensUsed, TimeUsedSeconds      *int64
	Iterations                       *int
	LastReason                       *string
}

// snapshots are the contract's snapshots of a session so far, nil where one was cleared; and what is mirrored under the key.
func snapshots(t testing.TB, a *harness.Agent, session, mirror string) (all, mirrored []*snap) {
	t.Helper()
	for _, u := range updates(t, a, session) {
		var v struct {
			Meta map[string]json.RawMessage `json:"_meta"`
		}
		if u.Kind != "session_info_update" || json.Unmarshal([]byte(u.Raw), &v) != nil {
			continue
		}
		if raw, ok := v.Meta["goal"]; ok {
			all = append(all, decode[*snap](t, raw))
		}
		if raw, ok := v.Meta[mirror]; ok {
			mirrored = append(mirrored, decode[struct{ Goal *snap }](t, raw).Goal)
		}
	}
	return all, mirrored
}

// lastSnap waits until the last snapshot has that status; "" for none.
func lastSnap(t testing.TB, a *harness.Agent, session, status string) *snap {
	t.Helper()
	var last *snap
	harness.Eventually(t, "the snapshot is "+status, func() bool {
		all, _ := snapshots(t, a, session, "")
		if len(all) == 0 {
			return false
		}
		last = all[len(all)-1]
		return last == nil && status == "" || last != nil && last.Status == status
	})
	return last
}

// A client that has a goal panel of its own sets, pauses, resumes and clears; what it is shown and what the other doors say is the same goal.
func TestPanel_OneGoal(t *testing.T) {
	gate := make(chan struct{})
	w := newWorld(t, pursuing(gate))
	a := w.raw(nil)
	raw, e := a.Call("initialize", map[string]any{"protocolVersion": 1, "clientCapabilities": map[string]any{"_meta": map[string]any{"jetbrains.air": map[string]any{"goal": true}}}})
	if e != nil {
		t.Fatal(e)
	}
	for _, part := range []string{`"goal":{"actions":["set","pause","resume","clear"],"controlMethod":"_session/goal","version":1}`, `"steering":{"supported":true}`} {
		if !strings.Contains(string(raw), part) {
			t.Errorf("announced %s", raw)
		}
	}
	session := a.NewSession(w.work)
	do := func(action string, more map[string]any) *harness.Error {
		t.Helper()
		params := map[string]any{"sessionId": session, "action": action}
		for k, v := range more {
			params[k] = v
		}
		raw, e := a.Call("_session/goal", params)
		if e == nil && string(raw) != "{}" {
			t.Errorf("%s is answered with %s", action, raw)
		}
		return e
	}
	must := func(action string, more map[string]any) {
		t.Helper()
		if e := do(action, more); e != nil {
			t.Errorf("%s: %v", action, e)
		}
	}
	refused(t, "pause of nothing", do("pause", nil), -32002, "no_goal")
	refused(t, "a blank objective", do("set", map[string]any{"objective": " "}), -32602, "objective")
	refused(t, "another action", do("verify", nil), -32602, "set", "_holdfast/update_goal")
	must("clear", nil)
	must("set", map[string]any{"objective": "Produce out.txt."})
	must("set", map[string]any{"objective": "Produce out.txt."}) // a double click
	g := getGoal(t, a, session)
	if g == nil || g.Objective != "Produce out.txt." || g.Status != "active" || g.Revision != 1 {
		t.Fatalf("set as %+v", g)
	}
	message(t, a, "working")
	must("resume", nil) // it works already
	must("pause", nil)
	must("pause", nil)
	if s := lastSnap(t, a, session, "paused"); s.LastReason == nil || *s.LastReason != "You paused it." || s.ControlMethod != "_session/goal" || s.Iterations == nil ||
		*s.Iterations != 1 || s.TokensUsed == nil || s.TimeUsedSeconds == nil || s.TokenBudget != nil || s.CreatedAt < 1e12 || s.UpdatedAt < s.CreatedAt {
		t.Errorf("paused is shown as %+v", s)
	}
	must("set", map[string]any{"objective": "Produce out.txt, and say so."})
	if now := getGoal(t, a, session); now.GoalID != g.GoalID || now.Revision != 2 || now.Status != "paused" || now.Objective != "Produce out.txt, and say so." {
		t.Errorf("new words: %+v", now) // they revive nothing
	}
	close(gate)
	must("resume", nil)
	if s := lastSnap(t, a, session, "complete"); s.Objective != "Produce out.txt, and say so." || s.LastReason != nil {
		t.Errorf("achieved is shown as %+v", s)
	}
	refused(t, "pause of what is done", do("pause", nil), -32602, "not_allowed", "achieved")
	must("clear", nil)
	lastSnap(t, a, session, "")
	if now := getGoal(t, a, session); now.Status != "achieved" {
		t.Errorf("clearing the panel made it %s", now.Status)
	}
	all, mirrored := snapshots(t, a, session, "jetbrains.air")
	if len(all) == 0 || len(mirrored) != len(all) {
		t.Errorf("%d snapshots, %d mirrored", len(all), len(mirrored))
	}
	must("set", map[string]any{"objective": "Another."})
	lastSnap(t, a, session, "active")
	id := getGoal(t, a, session).GoalID
	a.Must("update_goal", map[string]any{"goalId": id, "action": "budget", "budget": map[string]any{"activeSeconds": 90000}}, nil)
	if s := lastSnap(t, a, session, "active"); s.TokenBudget != nil {
		t.Errorf("a limit of time is shown as %d tokens", *s.TokenBudget)
	}
	a.Must("update_goal", map[string]any{"goalId": id, "action": "budget", "budget": map[string]any{"tokens": 1}}, nil)
	if s := lastSnap(t, a, session, "limited"); s.TokenBudget == nil || *s.TokenBudget != 1 || s.LastReason == nil || !strings.Contains(*s.LastReason, "used up") {
		t.Errorf("a budget that is used up is shown as %+v", s)
	}
	refused(t, "resume of what used its budget up", do("resume", nil), -32602, "not_allowed", "raise its budget first")
	a.Must("update_goal", map[string]any{"goalId": id, "action": "budget", "budget": map[string]any{"tokens": 90000000}}, nil)
	if s := lastSnap(t, a, session, "active"); s.TokenBudget == nil || *s.TokenBudget != 90000000 {
		t.Errorf("a budget that was raised is shown as %+v", s)
	}
	must("clear", nil)
	lastSnap(t, a, session, "")
	if now := getGoal(t, a, session); now.Status != "cancelled" {
		t.Errorf("cleared, it is %s", now.Status)
	}

	b := w.start()
	w.load(b, session)
	lastSnap(t, b, session, "")
	if _, mirrored := snapshots(t, b, session, "jetbrains.air"); len(mirrored) != 0 {
		t.Errorf("a client that did not ask gets %v", mirrored)
	}
	if n := strings.Count(b.Text(session), "Goal achieved") + strings.Count(b.Text(session), "Goal cancelled"); n != 2 {
		t.Errorf("the transcript has %d records: %q", n, b.Text(session))
	}
}

// A message beside the goal's prompt is heard before the goal's next turn, and says which of the two it was.
func TestSteering(t *testing.T) {
	gate := make(chan struct{})
	work := pursuing(gate)
	w := newWorld(t, func(r fakemodel.Request) fakemodel.Reply {
		if slices.ContainsFunc(r.Tools, func(tool fakemodel.Tool) bool { return tool.Name == "create_goal" }) {
			return fakemodel.Text("heard: " + r.LastUser())
		}
		return work(r)
	})
	a := w.start()
	session := a.NewSession(w.work)
	say := func(text string) string {
		t.Helper()
		var r struct{ Outcome string }
		a.Must("_session/steering", map[string]any{"sessionId": session, "prompt": []any{map[string]any{"type": "text", "text": text}}}, &r)
		return r.Outcome
	}
	_, e := a.Call("_session/steering", map[string]any{"sessionId": session, "prompt": []any{map[string]any{"type": "text", "text": "/goal pause"}}})
	refused(t, "a command", e, -32602, "session/prompt")
	_, e = a.Call("_session/steering", map[string]any{"sessionId": "none", "prompt": []any{}})
	refused(t, "an unknown session", e, -32002)
	createGoal(t, a, session, nil)
	message(t, a, "working")
	if got := say("Mind the spelling."); got != "injected" {
		t.Errorf("beside a goal: %s", got)
	}
	close(gate)
	harness.Eventually(t, "the goal is achieved", func() bool { return getGoal(t, a, session).Status == "achieved" })
	if !strings.Contains(a.Text(session), "heard: Mind the spelling.") {
		t.Errorf("said %q", a.Text(session))
	}
	for _, r := range w.model.Requests() { // the review, which is after all turns, reads files and no talk
		if slices.ContainsFunc(r.Tools, func(tool fakemodel.Tool) bool { return tool.Name == "submit_review" }) && strings.Contains(string(r.Body), "Mind the spelling.") {
			t.Errorf("the reviewer was told: %s", r.Body)
		}
	}
	if got := say("Thanks."); got != "startedNewTurn" {
		t.Errorf("with nothing running: %s", got)
	}
	harness.Eventually(t, "it is answered", func() bool { return strings.Contains(a.Text(session), "heard: Thanks.") })
}
