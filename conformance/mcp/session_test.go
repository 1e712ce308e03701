package mcp_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"holdfast/conformance/fakemodel"
	"holdfast/conformance/harness"
)

type item struct {
	Kind, Text, RunID string
	Seq               int64
}

type conversation struct {
	Session    struct{ SessionID, State, Cwd string }
	Items      []item
	NextCursor string
}

type sent struct {
	RunID, Cursor string
	Executor      executor
}

// A message is worked on by whoever owns the session, and is read back from the place it was accepted at.
func TestSession_SendAndRead(t *testing.T) {
	w := newWorld(t, func(r fakemodel.Request) fakemodel.Reply { return fakemodel.Text("you said " + r.LastUser()) })
	a := w.editor(nil)
	session := a.NewSession(w.work)
	a.Await(a.Prompt(session, "first"))
	c := w.serve()
	args := object{"sessionId": session, "text": "second", "idempotencyKey": "k"}
	var s, again sent
	c.must("send_message", args, &s)
	if !s.Executor.Alive || s.RunID == "" {
		t.Errorf("sent %+v", s)
	}
	var got conversation
	harness.Eventually(t, "it is answered", func() bool {
		c.must("get_session", object{"sessionId": session, "cursor": s.Cursor}, &got)
		return len(got.Items) == 2 && got.Session.State == "idle"
	})
	if got.Items[0].Text != "second" || got.Items[1].Text != "you said second" || got.Items[0].RunID != s.RunID {
		t.Errorf("read back %+v", got)
	}
	c.must("send_message", args, &again)
	w.serve().must("send_message", args, &again)
	if again.RunID != s.RunID {
		t.Errorf("a repeat made %s besides %s", again.RunID, s.RunID)
	}
	args["text"] = "third"
	c.refused("another text", "send_message", args, "key_reused", "idempotencyKey")
	c.refused("no text", "send_message", object{"sessionId": session, "text": " "}, "invalid_argument", "text")
	if n := len(w.model.Requests()); n != 2 {
		t.Errorf("%d model requests", n)
	}
	if text := a.Text(session); !strings.Contains(text, "you said second") {
		t.Errorf("the editor shows %q", text)
	}
}

// Copies on one store are safe: many of the same request at once, in two processes, are one.
func TestSession_CopiesRepeatAtOnce(t *testing.T) {
	w := newWorld(t, nil)
	a, b := w.serve(), w.serve()
	session := a.create(object{"cwd": w.work}).Goal.SessionID
	runs, goals := map[string]bool{}, map[string]bool{}
	type begun struct {
		c        *client
		tool, id string
	}
	var all []begun
	for range 10 {
		for _, c := range []*client{a, b} {
			for tool, args := range map[string]object{
				"send_message": {"sessionId": session, "text": "one", "idempotencyKey": "k"},
				"create_goal":  {"cwd": w.work, "objective": "One.", "idempotencyKey": "k"},
			} {
				all = append(all, begun{c, tool, c.Begin("tools/call", object{"name": tool, "arguments": args})})
			}
		}
	}
	for _, r := range all {
		var got struct {
			RunID string
			Goal  goal
		}
		if p := r.c.result(r.tool, r.c.Await(r.id).Result, &got); p != nil {
			t.Errorf("%s: %+v", r.tool, *p)
		}
		if r.tool == "send_message" {
			runs[got.RunID] = true
		} else {
			goals[got.Goal.GoalID] = true
		}
	}
	if len(runs) != 1 || len(goals) != 1 {
		t.Errorf("one message is %d runs, one goal is %d", len(runs), len(goals))
	}
}

// Every listing comes in pages that together are everything, once and in order.
func TestSession_Pages(t *testing.T) {
	w := newWorld(t, func(r fakemodel.Request) fakemodel.Reply {
		if n := len(r.Results()); n < 5 {
			return fakemodel.Calls(fakemodel.Call{Name: "list", Args: encode(object{"path": "."})})
		}
		return fakemodel.Text("done")
	})
	c := w.serve()
	for i := range 5 {
		c.create(object{"cwd": w.work, "objective": fmt.Sprint("Goal ", i)})
	}
	a := w.editor(nil)
	session := a.NewSession(w.work)
	a.Await(a.Prompt(session, "look around"))
	for tool, args := range map[string]object{"list_goals": {}, "list_sessions": {"cwd": w.work}, "list_effects": {"sessionId": session}, "get_session": {"sessionId": session}} {
		harness.Eventually(t, tool+" in pages is the whole", func() bool { // the goals change meanwhile
			whole, pages := c.collect(tool, args, 200), c.collect(tool, args, 2)
			return len(whole) >= 5 && slices.Equal(whole, pages)
		})
	}
	if ids := c.collect("list_effects", object{"sessionId": "none"}, 2); len(ids) != 0 {
		t.Errorf("calls of no session: %v", ids)
	}
	var known struct{ Effects []struct{ Fact string } }
	c.must("list_effects", object{"fact": "unknown"}, &known)
	if len(known.Effects) != 0 {
		t.Errorf("unknown: %+v", known)
	}
}

// collect reads a listing to its end.
func (c *client) collect(tool string, args object, limit int) (ids []string) {
	c.t.Helper()
	cursor := ""
	for range 100 {
		ask := object{"limit": limit}
		for k, v := range args {
			ask[k] = v
		}
		if cursor != "" {
			ask["cursor"] = cursor
		}
		var r struct {
			Goals      []struct{ GoalID string }
			Sessions   []struct{ SessionID string }
			Effects    []struct{ EffectID string }
			Items      []struct{ ItemID string }
			NextCursor string
		}
		c.must(tool, ask, &r)
		for _, g := range r.Goals {
			ids = append(ids, g.GoalID)
		}
		for _, s := range r.Sessions {
			ids = append(ids, s.SessionID)
		}
		for _, e := range r.Effects {
			ids = append(ids, e.EffectID)
		}
		for _, i := range r.Items {
			ids = append(ids, i.ItemID)
		}
		if n := len(r.Goals) + len(r.Sessions) + len(r.Effects) + len(r.Items); n > limit {
			c.t.Errorf("%s: a page of %d has %d", tool, limit, n)
		}
		if cursor = r.NextCursor; cursor == "" {
			return ids
		}
	}
	c.t.Fatalf("%s: the pages do not end", tool)
	return nil
}

type approval struct {
	ApprovalID, SessionID, State string
	Options                      []string
	Effect                       struct{ EffectID, Title string }
	Unknown                      []struct{ EffectID, Title string }
}

func (c *client) approvals(session string) []approval {
	c.t.Helper()
	var r struct{ Approvals []approval }
	c.must("list_approvals", object{"sessionId": session}, &r)
	return r.Approvals
}

func (c *client) question(session string, want func(approval) bool) (found approval) {
	c.t.Helper()
	harness.Eventually(c.t, "the question is there", func() bool {
		for _, p := range c.approvals(session) {
			if want(p) {
				found = p
				return true
			}
		}
		return false
	})
	return found
}

// A client with full authority answers a question, once, and the call runs.
func TestApproval_Answered(t *testing.T) {
	w := newWorld(t, func(r fakemodel.Request) fakemodel.Reply {
		if len(r.Results()) == 0 {
			return command("echo ran >> out")
		}
		return fakemodel.Text("done")
	})
	a := w.editor(unanswered)
	session := a.NewSession(w.work)
	id := a.Prompt(session, "run")
	c := w.serve("--authority", "full")
	p := c.question(session, func(approval) bool { return true })
	if p.State != "pending" || !strings.Contains(p.Effect.Title, "echo ran") || !slices.Equal(p.Options, []string{"allow_once", "allow_always", "reject_once", "reject_always"}) {
		t.Errorf("the question is %+v", p)
	}
	c.refused("an option that was not offered", "answer_approval", object{"approvalId": p.ApprovalID, "option": "yes"}, "bad_option", "allow_once")
	c.refused("a question that is not", "answer_approval", object{"approvalId": "x", "option": "allow_once"}, "not_found", "approvalId")
	var r struct {
		Approval approval
		Executor executor
	}
	c.must("answer_approval", object{"approvalId": p.ApprovalID, "option": "allow_once"}, &r)
	if r.Approval.State == "pending" || !r.Executor.Alive {
		t.Errorf("answered: %+v", r)
	}
	c.refused("a second answer", "answer_approval", object{"approvalId": p.ApprovalID, "option": "reject_once"}, "already_answered", "approvalId")
	a.Await(id)
	if w.file("out") != "ran\n" {
		t.Errorf("the command left %q", w.file("out"))
	}
	var e struct {
		Effects []struct{ EffectID, Fact string }
	}
	c.must("list_effects", object{"sessionId": session}, &e)
	if len(e.Effects) != 1 || e.Effects[0].Fact != "completed" {
		t.Errorf("the journal has %+v", e)
	}
	c.refused("a known outcome", "settle_effect", object{"effectId": e.Effects[0].EffectID, "happened": true}, "not_unknown", "effectId")
}

// An outcome that nobody knows restricts the session: its questions name it. A person's word over MCP lifts that.
func TestEffect_SettledLiftsTheRestriction(t *testing.T) {
	w := newWorld(t, func(r fakemodel.Request) fakemodel.Reply {
		switch len(r.Results()) {
		case 0:
			return command("echo one >> out")
		case 1:
			return fakemodel.Calls(fakemodel.Call{Name: "write", Args: `{"path":"two","content":"two\n"}`})
		}
		return fakemodel.Text("done")
	})
	_, faulty, err := harness.Binaries()
	if err != nil {
		t.Fatal(err)
	}
	a := harness.Start(t, harness.Options{Binary: faulty, Env: append(w.env(), "HOLDFAST_SUPERVISOR_CRASH=supervisor.running"), Permission: unanswered})
	a.Initialize()
	session := a.NewSession(w.work)
	id := a.Prompt(session, "go")
	c := w.serve("--authority", "full")
	first := c.question(session, func(approval) bool { return true })
	c.must("answer_approval", object{"approvalId": first.ApprovalID, "option": "allow_once"}, nil)
	second := c.question(session, func(p approval) bool { return p.ApprovalID != first.ApprovalID })
	if len(second.Unknown) != 1 || !strings.Contains(second.Unknown[0].Title, "echo one") || !slices.Contains(second.Options, "it_happened") {
		t.Fatalf("the question does not name what is unknown: %+v", second)
	}
	var e struct {
		Effects []struct{ EffectID, Fact string }
	}
	c.must("list_effects", object{"fact": "unknown"}, &e)
	var s struct{ Session struct{ UnknownEffects int } }
	c.must("get_session", object{"sessionId": session}, &s)
	if len(e.Effects) != 1 || e.Effects[0].EffectID != second.Unknown[0].EffectID || s.Session.UnknownEffects != 1 {
		t.Fatalf("unknown are %+v, the session says %+v", e, s)
	}
	unknown := object{"effectId": e.Effects[0].EffectID, "happened": true, "note": "I looked"}
	var settled struct {
		Effect struct {
			State, Fact, SettledBy, Note string
			Settlements                  []struct{ Fact, SettledBy string }
		}
	}
	c.must("settle_effect", unknown, &settled)
	if settled.Effect.State != "settled" || settled.Effect.SettledBy != "person" || !strings.Contains(settled.Effect.Note, "I looked") ||
		len(settled.Effect.Settlements) != 2 || settled.Effect.Settlements[0].Fact != "unknown" || settled.Effect.Settlements[1].SettledBy != "person" {
		t.Errorf("settled as %+v", settled)
	}
	c.refused("settling again", "settle_effect", unknown, "not_unknown", "effectId")
	third := c.question(session, func(p approval) bool { return len(p.Unknown) == 0 })
	if third.ApprovalID == second.ApprovalID || slices.Contains(third.Options, "it_happened") {
		t.Errorf("the new question is %+v", third)
	}
	c.must("answer_approval", object{"approvalId": third.ApprovalID, "option": "allow_once"}, nil)
	a.Await(id)
	if w.file("out") != "one\n" || w.file("two") != "two\n" {
		t.Errorf("the work tree has %q and %q", w.file("out"), w.file("two"))
	}
}
