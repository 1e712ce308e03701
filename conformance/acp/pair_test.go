package acp_test

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"holdfast/conformance/fakemodel"
	"holdfast/conformance/harness"
)

// Two processes on one store. One executes; both clients see one stream; what one sets, the other learns.
func TestPair_OneStream(t *testing.T) { families(t, oneStream) }

func oneStream(t *testing.T, family string) {
	gate := make(chan struct{})
	w := newWorldOf(t, family, func(r fakemodel.Request) fakemodel.Reply {
		if len(r.Results()) == 0 {
			reply := command("echo ran >> out")
			reply.Steps = []fakemodel.Step{{Text: "first "}, fakemodel.Gate(gate), {Text: "then "}}
			return reply
		}
		return fakemodel.Text("the ", "end")
	})
	a := w.start()
	session := a.NewSession(w.work)
	b := w.asking(unanswered)
	w.load(b, session)
	id := b.Prompt(session, "both of you") // sent through the one that does not own it
	message(t, a, "agent_message_chunk", "first")
	message(t, b, "agent_message_chunk", "first")
	b.Must("session/set_mode", map[string]any{"sessionId": session, "modeId": "edit"}, nil)
	message(t, a, "current_mode_update", `"edit"`)
	close(gate)
	if got := stop(t, b, id); got != "end_turn" {
		t.Errorf("stopped with %s", got)
	}
	harness.Eventually(t, "both show all of it", func() bool {
		return strings.HasSuffix(a.Text(session), "the end") && strings.HasSuffix(b.Text(session), "the end")
	})
	if a.Text(session) != b.Text(session) || strings.Count(a.Text(session), "first then ") != 1 {
		t.Errorf("one shows %q, the other %q", a.Text(session), b.Text(session))
	}
	message(t, a, "user_message_chunk", "both of you")
	if position(b, "user_message_chunk", "both of you") >= 0 {
		t.Error("a client is shown its own prompt")
	}
	if w.file("out") != "ran\n" {
		t.Errorf("it wrote %q", w.file("out"))
	}
	w.noMore(3, time.Second, "a step was asked for twice")
}

// When the owner is killed while the model answers, the other goes on with it, and its client sees the end.
func TestPair_TakeoverAfterKill(t *testing.T) { families(t, takeoverAfterKill) }

func takeoverAfterKill(t *testing.T, family string) {
	gate := make(chan struct{})
	defer close(gate)
	w := newWorldOf(t, family, func(r fakemodel.Request) fakemodel.Reply {
		if r.N == 1 {
			return fakemodel.Reply{Steps: []fakemodel.Step{{Text: "half a "}, fakemodel.Gate(gate)}}
		}
		return fakemodel.Text("whole sentence")
	})
	a := w.start()
	session := a.NewSession(w.work)
	b := w.start()
	w.load(b, session)
	id := b.Prompt(session, "speak")
	message(t, b, "agent_message_chunk", "half a")
	began := time.Now()
	a.Kill()
	w.requests(2)
	if took := time.Since(began); took > 5*time.Second { // the promise is 2 s
		t.Errorf("the takeover took %v", took)
	}
	if got := stop(t, b, id); got != "end_turn" || !strings.Contains(b.Text(session), "whole sentence") {
		t.Errorf("stopped with %s: %q", got, b.Text(session))
	}
	w.noMore(3, time.Second, "a step was asked for twice")
}

// A suspended owner is not dead. Nobody takes over, however long it sleeps; woken, it ends its turn itself.
func TestPair_SuspendedOwnerKeepsTheWork(t *testing.T) {
	gate := make(chan struct{})
	w := newWorld(t, func(r fakemodel.Request) fakemodel.Reply {
		return fakemodel.Reply{Steps: []fakemodel.Step{{Text: "before "}, fakemodel.Gate(gate), {Text: "after"}}}
	})
	a := w.start()
	session := a.NewSession(w.work)
	b := w.start()
	w.load(b, session)
	id := a.Prompt(session, "speak")
	message(t, b, "agent_message_chunk", "before")
	harness.Suspend(t, w.home, a.PID())
	close(gate)
	w.noMore(2, 4*time.Second, "somebody took over from a suspended owner")
	a.Signal(syscall.SIGCONT)
	if got := stop(t, a, id); got != "end_turn" {
		t.Errorf("stopped with %s", got)
	}
	harness.Eventually(t, "both show all of it", func() bool { // the other may have been told meanwhile that the owner sleeps
		other := b.Text(session)
		return a.Text(session) == "before after" && strings.HasPrefix(other, "before ") && strings.HasSuffix(other, "after")
	})
	if n := len(w.model.Requests()); n != 1 {
		t.Errorf("%d model requests", n)
	}
}

// A cancel from the client that does not own the session stops the work at the one that does.
func TestPair_CancelFromTheOther(t *testing.T) {
	w := newWorld(t, func(r fakemodel.Request) fakemodel.Reply {
		if r.N == 1 {
			return command(sleeper)
		}
		return fakemodel.Text("next")
	})
	a := w.start()
	session := a.NewSession(w.work)
	b := w.start()
	w.load(b, session)
	id := a.Prompt(session, "run")
	pid := w.waitFile("child")
	b.Notify("session/cancel", map[string]any{"sessionId": session})
	if got := stop(t, a, id); got != "cancelled" {
		t.Errorf("stopped with %s", got)
	}
	dead(t, pid)
	if got := stop(t, b, b.Prompt(session, "and now")); got != "end_turn" {
		t.Errorf("the next prompt stops with %s", got)
	}
}

// A cancel does not wait for an owner that cannot act on it. What that owner still says of the turn when it wakes is not shown.
func TestPair_CancelWhileTheOwnerSleeps(t *testing.T) {
	gate := make(chan struct{})
	w := newWorld(t, func(r fakemodel.Request) fakemodel.Reply {
		if r.N == 1 {
			return fakemodel.Reply{Steps: []fakemodel.Step{{Text: "early "}, fakemodel.Gate(gate), {Text: "LATE"}}, Calls: []fakemodel.Call{{Name: "shell", Args: `{"command":"echo LATE > out"}`}}}
		}
		return fakemodel.Text("next")
	})
	a := w.start()
	session := a.NewSession(w.work)
	b := w.start()
	w.load(b, session)
	id := b.Prompt(session, "speak")
	message(t, b, "agent_message_chunk", "early")
	b.NewSession(w.work) // a write of the other: the owner is not suspended in the middle of its own
	harness.Suspend(t, w.home, a.PID())
	close(gate) // the rest is there when the owner wakes
	began := time.Now()
	b.Notify("session/cancel", map[string]any{"sessionId": session})
	if got := stop(t, b, id); got != "cancelled" {
		t.Errorf("stopped with %s", got)
	}
	if took := time.Since(began); took > cancelLimit {
		t.Errorf("it took %v", took)
	}
	shown := len(b.Updates(session))
	a.Signal(syscall.SIGCONT)
	if got := stop(t, b, b.Prompt(session, "and now")); got != "end_turn" {
		t.Errorf("the next prompt stops with %s", got)
	}
	for _, u := range updates(t, b, session)[shown:] {
		if strings.Contains(u.Raw, "LATE") || u.ToolCallID != "" {
			t.Errorf("after the answer: %s", u.Raw)
		}
	}
	if w.file("out") != "" {
		t.Error("a call of the cancelled turn ran")
	}
}
