package history_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"holdfast/conformance/fakemodel"
	"holdfast/conformance/harness"
)

// standing is what a list says of where a session stands.
type standing struct {
	id, state, reason string
}

// editorsList is what session/list says, in its order.
func editorsList(t testing.TB, a *harness.Agent) (out []standing) {
	t.Helper()
	var l struct {
		Sessions []struct {
			SessionID string
			Meta      struct {
				Holdfast struct{ State, ReasonCode string }
			} `json:"_meta"`
		}
	}
	a.Must("session/list", map[string]any{}, &l)
	for _, s := range l.Sessions {
		out = append(out, standing{s.SessionID, s.Meta.Holdfast.State, s.Meta.Holdfast.ReasonCode})
	}
	return out
}

// commandsList is what the command line says, in its order.
func (w *world) commandsList() (out []standing) {
	w.t.Helper()
	for _, s := range w.sessions() {
		out = append(out, standing{s.SessionID, s.State, s.ReasonCode})
	}
	return out
}

// After a death everybody sees which sessions there were and what each was at, the newest first: nothing of the dead process is called
// running, and nothing that waits for a person is called anything else. What goes on, goes on.
func TestStates_AfterADeath(t *testing.T) {
	t.Parallel()
	free := make(chan struct{})
	defer close(free)
	w := newWorld(t, func(r fakemodel.Request) fakemodel.Reply {
		switch u := r.LastUser(); {
		case r.Said("work"): // after the restart, too
			return holding(free, "thinking")
		case u == "ask" && len(r.Results()) == 0:
			return fakemodel.Calls(shell("echo ran >> counter"))
		}
		return fakemodel.Text("done")
	})
	a := w.asking(unanswered)
	idle := a.NewSession(w.work)
	w.turn(a, idle, "hello")
	asks := a.NewSession(w.work)
	a.Prompt(asks, "ask")
	if _, ok := a.Find(func(m harness.Message) bool { return m.Method == "session/request_permission" }); !ok {
		t.Fatal("nothing was asked")
	}
	works := a.NewSession(w.work)
	a.Prompt(works, "work")
	harness.Eventually(t, "words are stored", func() bool { return w.number(`SELECT count(*) FROM items WHERE body LIKE '%thinking%'`) == 1 })
	alive := []standing{{works, "working", ""}, {asks, "waiting", "approval_pending"}, {idle, "idle", ""}}
	if c, e := w.commandsList(), editorsList(t, a); !slices.Equal(c, alive) || !slices.Equal(e, alive) {
		t.Errorf("alive: the command line lists %v, the editor %v, want %v", c, e, alive)
	}
	a.Kill()
	dead := []standing{{works, "waiting", "owner_lost"}, {asks, "waiting", "approval_pending"}, {idle, "idle", ""}}
	if c := w.commandsList(); !slices.Equal(c, dead) {
		t.Errorf("dead: the command line lists %v, want %v", c, dead)
	}
	if ps := w.want("ps", "--json"); strings.Contains(ps, works) {
		t.Errorf("of a dead process ps says %s", ps)
	}

	b := w.asking(unanswered)
	w.load(b, idle) // any session: work is taken up once a client is at work
	harness.Eventually(t, "the work is taken up", func() bool { l := editorsList(t, b); return slices.Contains(l, standing{works, "working", ""}) })
	for _, want := range []standing{{asks, "waiting", "approval_pending"}, {idle, "idle", ""}} {
		if l := editorsList(t, b); !slices.Contains(l, want) {
			t.Errorf("the editor lists %v, without %v", l, want)
		}
	}
	b.Kill()
}

// Prompts that were accepted are kept in order over a death: the one that ran goes on, each of the others runs once.
func TestStates_QueuedPrompts(t *testing.T) {
	t.Parallel()
	free := make(chan struct{})
	defer close(free)
	var asked atomic.Int64
	w := newWorld(t, func(r fakemodel.Request) fakemodel.Reply {
		if asked.Add(1) == 1 {
			return holding(free, "beginning ")
		}
		said := ""
		for _, m := range r.Messages {
			if m.Role == "user" && (m.Content == "one" || m.Content == "two" || m.Content == "three") {
				said = m.Content
			}
		}
		return fakemodel.Text("answer to " + said + ". ")
	})
	a := w.start()
	session := a.NewSession(w.work)
	a.Prompt(session, "one")
	harness.Eventually(t, "words are stored", func() bool { return w.number(`SELECT count(*) FROM items WHERE body LIKE '%beginning%'`) == 1 })
	a.Prompt(session, "two")
	a.Prompt(session, "three")
	harness.Eventually(t, "all are accepted", func() bool { return w.number(`SELECT count(*) FROM runs`) == 3 })
	a.Kill()

	b := w.start()
	w.load(b, session)
	harness.Eventually(t, "the last is answered", func() bool { return strings.Contains(b.Text(session), "answer to three. ") })
	if got := b.Text(session); strings.Count(got, "answer to") != 3 || !inOrder(got, "beginning ", "answer to one. ", "answer to two. ", "answer to three. ") {
		t.Errorf("said was %q", got)
	}
	var users []string
	for _, u := range b.Updates(session) {
		c := decode[struct {
			Kind    string          `json:"sessionUpdate"`
			Content json.RawMessage `json:"content"`
		}](t, u)
		if c.Kind == "user_message_chunk" {
			users = append(users, decode[struct{ Text string }](t, c.Content).Text)
		}
	}
	if fmt.Sprint(users) != "[one two three]" {
		t.Errorf("the prompts are %v", users)
	}
	harness.Eventually(t, "all three have ended well", func() bool {
		return w.number(`SELECT count(*) FROM runs WHERE phase = 'ended' AND stop_reason = 'end_turn'`) == 3
	})
	w.end(b)
}

func inOrder(s string, parts ...string) bool {
	for _, p := range parts {
		i := strings.Index(s, p)
		if i < 0 {
			return false
		}
		s = s[i+len(p):]
	}
	return true
}

// A replay holds the output of commands as text. It names nothing that a client has made for an earlier connection.
func TestStates_ReplayNamesNoTerminals(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(r fakemodel.Request) fakemodel.Reply {
		if len(r.Results()) == 0 {
			return fakemodel.Calls(shell("echo visible words"))
		}
		return fakemodel.Text("done")
	})
	start := func() *harness.Agent {
		a := harness.Start(t, harness.Options{Binary: w.binary(), Env: w.env})
		a.Must("initialize", map[string]any{"protocolVersion": 1, "clientCapabilities": map[string]any{"terminal": true,
			"fs": map[string]any{"readTextFile": true, "writeTextFile": true}}}, nil)
		return a
	}
	a := start()
	session := a.NewSession(w.work)
	w.turn(a, session, "go")
	ids := map[string]bool{}
	for _, m := range a.Log() {
		if m.Method != "" && len(m.ID) > 0 && m.Method != "session/request_permission" {
			ids[string(m.ID)] = true // an object of the client, if there were any
		}
	}
	w.end(a)
	b := start()
	w.load(b, session)
	shown := ""
	for _, u := range b.Updates(session) {
		if strings.Contains(string(u), "terminal") {
			t.Errorf("an update names a terminal: %s", u)
		}
		shown += string(u)
	}
	if !strings.Contains(shown, "visible words") || !strings.Contains(shown, "exit code 0") || len(ids) > 0 {
		t.Errorf("%d objects of the client; the replay is %s", len(ids), shown)
	}
	w.end(b)
}

// A run without anybody who could answer its question ends by saying so, in its result and in every list. Nothing counts as done, and an
// answer that comes later is all that is missing.
func TestStates_HeadlessQuestion(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(r fakemodel.Request) fakemodel.Reply {
		if len(r.Results()) == 0 {
			return fakemodel.Calls(shell("echo ran >> counter"))
		}
		return fakemodel.Text("It is done.")
	})
	made := decode[struct{ GoalID, SessionID string }](t, w.want("goals", "create", "--json", "--cwd", w.work, "Count to one."))
	for range 2 { // a second look changes nothing
		out, errs, code := w.run("work")
		if code != 3 || !strings.Contains(out+errs, "sessions answer") {
			t.Errorf("work ends with %d and says %s%s", code, out, errs)
		}
	}
	g := decode[struct {
		Status, Phase, ReasonCode string
		NextAction                struct{ Owner string }
	}](t, w.want("goals", "show", "--json", made.GoalID))
	if g.Status != "active" || g.Phase != "waiting" || g.ReasonCode != "approval_pending" || g.NextAction.Owner != "user" {
		t.Errorf("the goal is %+v", g)
	}
	if s := w.sessions(); len(s) != 1 || s[0].State != "waiting" || s[0].ReasonCode != "approval_pending" || s[0].PendingApprovals != 1 {
		t.Errorf("the list says %+v", s)
	}
	if effects := w.want("effects", "list", "--json"); !strings.Contains(effects, `"planned"`) || strings.Contains(effects, `"completed"`) {
		t.Errorf("the journal says %s", effects)
	}
	if _, _, code := w.run("doctor"); code != 3 {
		t.Errorf("doctor ends with %d", code)
	}
	asked := decode[[]struct{ ApprovalID string }](t, w.want("sessions", "approvals", "--json"))
	if len(asked) != 1 {
		t.Fatalf("asked is %+v", asked)
	}
	w.want("sessions", "answer", asked[0].ApprovalID, "allow_once")
	w.run("work")
	if n := w.number(`SELECT count(*) FROM effects WHERE tool = 'shell' AND fact = 'completed'`); n != 1 {
		t.Errorf("the answer let %d calls happen", n)
	}
}
