package acp_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"holdfast/conformance/fakemodel"
	"holdfast/conformance/harness"
)

// position is where the first message stands that holds all of these, -1 for nowhere.
func position(a *harness.Agent, parts ...string) int {
	return slices.IndexFunc(a.Log(), func(m harness.Message) bool { return holds(m.Raw, parts) })
}

// A client can place an update only when it knows the session: the answer goes first.
func TestNew_AnswerPrecedesUpdates(t *testing.T) {
	w := newWorld(t, nil)
	a := w.start()
	for range 5 {
		session := a.NewSession(w.work)
		if got := stop(t, a, a.Prompt(session, "hi")); got != "end_turn" {
			t.Errorf("stopped with %s", got)
		}
		answer, update := position(a, `"result"`, session), position(a, "session/update", session)
		if update < 0 || answer < 0 || update < answer {
			t.Errorf("the answer is message %d, the first update %d", answer, update)
		}
	}
}

// shortestQuiet is what clients need after the answer; the promise is 500 ms from when the agent has sent it.
const shortestQuiet = 250 * time.Millisecond

// Load repeats the whole conversation, then answers, then is silent for a moment. Resume repeats nothing.
func TestLoad_ReplaysThenAnswersThenIsSilent(t *testing.T) {
	w := newWorld(t, once("echo ran > out", "it ran"))
	a := w.start()
	session := a.NewSession(w.work)
	if got := stop(t, a, a.Prompt(session, "run it please")); got != "end_turn" {
		t.Fatalf("stopped with %s", got)
	}
	live := updates(t, a, session)
	if err := a.CloseInput(); err != nil {
		t.Fatal(err)
	}
	for _, method := range []string{"session/load", "session/resume"} {
		b := w.start()
		answer := b.Await(b.Begin(method, w.params(session)))
		began := time.Now()
		if answer.Error != nil {
			t.Fatal(answer.Error)
		}
		at := slices.IndexFunc(b.Log(), func(m harness.Message) bool { return string(m.Raw) == string(answer.Raw) })
		before := b.Log()[:at]
		if modes := decode[struct {
			Modes struct{ CurrentModeID string }
		}](t, answer.Result); modes.Modes.CurrentModeID == "" {
			t.Errorf("%s: no modes in %s", method, answer.Result)
		}
		message(t, b, "available_commands_update")
		if took := time.Since(began); took < shortestQuiet {
			t.Errorf("%s: the first update came %v after the answer", method, took)
		}
		var replayed []string
		for _, m := range before {
			if m.Method == "session/update" {
				replayed = append(replayed, string(m.Params))
			}
		}
		if method == "session/resume" {
			if len(replayed) > 0 {
				t.Errorf("resume repeats %s", replayed)
			}
			continue
		}
		all := strings.Join(replayed, "\n")
		for _, part := range []string{"run it please", "user_message_chunk", "it ran", "tool_call", "completed"} {
			if !strings.Contains(all, part) {
				t.Errorf("the replay lacks %q: %s", part, all)
			}
		}
		for _, u := range live { // the same names as before, so that a client can match them
			if u.Kind == "agent_message_chunk" && !strings.Contains(all, u.MessageID) || u.ToolCallID != "" && !strings.Contains(all, u.ToolCallID) {
				t.Errorf("the replay names it otherwise: %s", u.Raw)
			}
		}
	}
	if n := len(w.model.Requests()); n != 2 {
		t.Errorf("opening a session made %d model requests", n-2)
	}
}

// After a resume the conversation goes on with all that was said.
func TestResume_GoesOn(t *testing.T) {
	w := newWorld(t, nil)
	a := w.start()
	session := a.NewSession(w.work)
	a.Await(a.Prompt(session, "the word is xylophone"))
	if err := a.CloseInput(); err != nil {
		t.Fatal(err)
	}
	b := w.start()
	b.Must("session/resume", w.params(session), nil)
	if got := stop(t, b, b.Prompt(session, "which word?")); got != "end_turn" {
		t.Errorf("stopped with %s", got)
	}
	if last := w.requests(2)[1]; !strings.Contains(string(last.Body), "xylophone") || last.LastUser() != "which word?" {
		t.Errorf("the model got %s", last.Body)
	}
}

// A session that this connection did not open is not prompted.
func TestPrompt_NeedsAnOpenSession(t *testing.T) {
	w := newWorld(t, nil)
	a := w.start()
	session := a.NewSession(w.work)
	if err := a.CloseInput(); err != nil {
		t.Fatal(err)
	}
	b := w.start()
	m := b.Await(b.Prompt(session, "hi"))
	refused(t, "prompt", m.Error, -32602, "session/load")
}

type listed struct {
	Sessions   []struct{ SessionID, Cwd, Title, UpdatedAt string }
	NextCursor string
}

func TestList_FiltersAndPages(t *testing.T) {
	w := newWorld(t, nil)
	a := w.start()
	raw, e := a.Call("session/list", map[string]any{})
	if e != nil || !strings.Contains(string(raw), `"sessions":[]`) {
		t.Errorf("an empty list is %s, %v", raw, e)
	}
	other := t.TempDir()
	const here = 60 // more than a page
	made := map[string]bool{}
	for range here {
		made[a.NewSession(w.work)] = true
	}
	elsewhere := a.NewSession(other)

	var all listed
	a.Must("session/list", map[string]any{"cwd": other}, &all)
	if len(all.Sessions) != 1 || all.Sessions[0].SessionID != elsewhere || all.Sessions[0].Cwd != other {
		t.Errorf("in %s: %+v", other, all)
	}
	if _, err := time.Parse(time.RFC3339, all.Sessions[0].UpdatedAt); err != nil {
		t.Error(err)
	}
	got := map[string]int{}
	params := map[string]any{"cwd": w.work}
	for page := 1; ; page++ {
		var l listed
		a.Must("session/list", params, &l)
		for _, s := range l.Sessions {
			got[s.SessionID]++
		}
		if l.NextCursor == "" {
			if page < 2 {
				t.Errorf("%d sessions come in one page", here)
			}
			break
		}
		params["cursor"] = l.NextCursor
	}
	for id := range made {
		if got[id] != 1 {
			t.Errorf("session %s is listed %d times", id, got[id])
		}
	}
	if len(got) != here {
		t.Errorf("%d sessions are listed", len(got))
	}
	raw, e = a.Call("session/list", map[string]any{"cwd": filepath.Join(other, "none")})
	if e != nil || !strings.Contains(string(raw), `"sessions":[]`) {
		t.Errorf("a directory without sessions has %s, %v", raw, e)
	}
	for _, cursor := range []string{"x", "!!", "AAAA", fmt.Sprint(made)} {
		_, e := a.Call("session/list", map[string]any{"cursor": cursor})
		refused(t, "cursor "+cursor, e, -32602, "cursor")
	}
	_, e = a.Call("session/list", map[string]any{"cwd": "relative"})
	refused(t, "a relative cwd", e, -32602, "cwd")
}

// Close answers what is open, interrupts the work and keeps the history; the work waits until the session is opened again.
func TestClose_KeepsTheHistory(t *testing.T) {
	gate := make(chan struct{})
	w := newWorld(t, func(r fakemodel.Request) fakemodel.Reply {
		if r.N == 1 {
			return fakemodel.Reply{Steps: []fakemodel.Step{{Text: "begun "}, fakemodel.Gate(gate), {Text: "late"}}}
		}
		return fakemodel.Text("gone on")
	})
	defer close(gate)
	a := w.start()
	session := a.NewSession(w.work)
	id := a.Prompt(session, "tell me")
	message(t, a, "begun")
	a.Must("session/close", map[string]any{"sessionId": session}, nil)
	if got := stop(t, a, id); got != "cancelled" {
		t.Errorf("stopped with %s", got)
	}
	shown := len(a.Updates(session))
	w.noMore(2, 1500*time.Millisecond, "a closed session works on")
	if n := len(a.Updates(session)); n != shown {
		t.Errorf("a closed session sends %s", a.Updates(session)[shown:])
	}
	var l listed
	a.Must("session/list", map[string]any{}, &l)
	if len(l.Sessions) != 1 {
		t.Errorf("listed: %+v", l)
	}
	a.Must("session/close", map[string]any{"sessionId": session}, nil) // closing twice is no error
	w.load(a, session)
	if text := a.Text(session); !strings.Contains(text, "begun") {
		t.Errorf("the history is %q", text)
	}
	message(t, a, "gone on")
}

func TestSetMode_KnownOnesOnly(t *testing.T) {
	w := newWorld(t, nil)
	a := w.start()
	var r struct {
		SessionID string
		Modes     struct {
			CurrentModeID  string
			AvailableModes []struct{ ID string }
		}
	}
	a.Must("session/new", map[string]any{"cwd": w.work, "mcpServers": []any{}}, &r)
	if r.Modes.CurrentModeID != "ask" || fmt.Sprint(r.Modes.AvailableModes) != "[{ask} {edit} {auto} {plan}]" {
		t.Errorf("the modes are %+v", r.Modes)
	}
	for _, m := range r.Modes.AvailableModes {
		a.Must("session/set_mode", map[string]any{"sessionId": r.SessionID, "modeId": m.ID}, nil)
	}
	_, e := a.Call("session/set_mode", map[string]any{"sessionId": r.SessionID, "modeId": "yolo"})
	refused(t, "an unknown mode", e, -32602, "modeId", "yolo")
	if err := a.CloseInput(); err != nil {
		t.Fatal(err)
	}
	b := w.start()
	b.Must("session/load", w.params(r.SessionID), &r)
	if r.Modes.CurrentModeID != "plan" {
		t.Errorf("after a restart the mode is %s", r.Modes.CurrentModeID)
	}
}
