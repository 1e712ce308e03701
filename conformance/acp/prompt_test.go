package acp_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"holdfast/conformance/fakemodel"
	"holdfast/conformance/harness"
)

// Prompts of one session wait for each other, in the order they came.
func TestPrompt_QueuesInOrder(t *testing.T) {
	gate := make(chan struct{})
	w := newWorld(t, func(r fakemodel.Request) fakemodel.Reply {
		reply := fakemodel.Text("to " + r.LastUser())
		if r.N == 1 {
			reply.Steps = append([]fakemodel.Step{{Text: "slowly "}, fakemodel.Gate(gate)}, reply.Steps...)
		}
		return reply
	})
	a := w.start()
	session := a.NewSession(w.work)
	prompts := []string{"first", "second", "third"}
	ids := []string{a.Prompt(session, prompts[0])}
	message(t, a, "slowly")
	ids = append(ids, a.Prompt(session, prompts[1]), a.Prompt(session, prompts[2]))
	a.Must("session/list", map[string]any{}, nil) // it has read them
	if n := len(w.model.Requests()); n != 1 {
		t.Errorf("%d model requests run at once", n)
	}
	close(gate)
	last := -1
	for i, id := range ids {
		if got := stop(t, a, id); got != "end_turn" {
			t.Errorf("prompt %s stops with %s", id, got)
		}
		answer := slices.IndexFunc(a.Log(), func(m harness.Message) bool { return m.Method == "" && string(m.ID) == id })
		said := position(a, "agent_message_chunk", "to "+prompts[i])
		if said < last || answer < said {
			t.Errorf("%s: said at %d, answered at %d, the one before at %d", prompts[i], said, answer, last)
		}
		last = answer
	}
	for i, r := range w.requests(3) {
		if r.LastUser() != prompts[i] {
			t.Errorf("request %d is about %q", i+1, r.LastUser())
		}
		for _, earlier := range prompts[:i] {
			if !strings.Contains(string(r.Body), "to "+earlier) {
				t.Errorf("request %d does not know the answer to %q", i+1, earlier)
			}
		}
	}
}

// Two sessions go on side by side: neither waits for the other, and nothing of one is shown or told in the other.
func TestPrompt_SessionsDoNotMix(t *testing.T) {
	gate := make(chan struct{})
	w := newWorld(t, func(r fakemodel.Request) fakemodel.Reply {
		if strings.Contains(r.LastUser(), "apple") {
			return fakemodel.Reply{Steps: []fakemodel.Step{{Text: "green "}, fakemodel.Gate(gate), {Text: "and sour"}}}
		}
		return fakemodel.Text("round ", "and blue")
	})
	a := w.start()
	one, two := a.NewSession(w.work), a.NewSession(w.work)
	if one == two {
		t.Fatal("two sessions have one id")
	}
	first := a.Prompt(one, "apple")
	message(t, a, "green")
	if got := stop(t, a, a.Prompt(two, "plum")); got != "end_turn" {
		t.Errorf("the second stops with %s", got)
	}
	close(gate)
	if got := stop(t, a, first); got != "end_turn" {
		t.Errorf("the first stops with %s", got)
	}
	if a.Text(one) != "green and sour" || a.Text(two) != "round and blue" {
		t.Errorf("shown: %q and %q", a.Text(one), a.Text(two))
	}
	for _, r := range w.requests(2) {
		if strings.Contains(string(r.Body), "apple") && strings.Contains(string(r.Body), "plum") {
			t.Errorf("the model is told both: %s", r.Body)
		}
	}
}

// Every kind of block that is announced reaches the model, and comes back on replay as it was.
func TestPrompt_Blocks(t *testing.T) {
	w := newWorld(t, nil)
	a := w.start()
	session := a.NewSession(w.work)
	blocks := `[{"type":"text","text":"look at"},{"type":"resource_link","name":"notes","uri":"file:///notes.md"},` +
		`{"type":"resource","resource":{"uri":"file:///a.txt","text":"alpha beta"}}]`
	id := a.Begin("session/prompt", map[string]any{"sessionId": session, "prompt": json.RawMessage(blocks)})
	if got := stop(t, a, id); got != "end_turn" {
		t.Errorf("stopped with %s", got)
	}
	for _, part := range []string{"look at", "file:///notes.md", "file:///a.txt", "alpha beta"} {
		if got := w.requests(1)[0].LastUser(); !strings.Contains(got, part) {
			t.Errorf("the model does not get %q: %s", part, got)
		}
	}
	b := w.start()
	w.load(b, session)
	var back []string
	for _, u := range updates(t, b, session) {
		if u.Kind == "user_message_chunk" {
			back = append(back, decode[struct{ Type string }](t, u.Content).Type)
		}
	}
	if got := strings.Join(back, " "); got != "text resource_link resource" {
		t.Errorf("the replay has %q", got)
	}
}

// What the model's endpoint refuses for good ends the prompt with an error that says so, and the session stays usable.
func TestPrompt_EndpointFails(t *testing.T) { families(t, endpointFails) }

func endpointFails(t *testing.T, family string) {
	w := newWorldOf(t, family, func(r fakemodel.Request) fakemodel.Reply {
		if r.N == 1 {
			return fakemodel.Error(400, "this model cannot do that", "unsupported")
		}
		return fakemodel.Text("fine")
	})
	a := w.start()
	session := a.NewSession(w.work)
	m := a.Await(a.Prompt(session, "hi"))
	refused(t, "prompt", m.Error, -32603, "endpoint")
	if got := stop(t, a, a.Prompt(session, "again")); got != "end_turn" {
		t.Errorf("stopped with %s", got)
	}
}

// A model's refusal and an exhausted limit have their own stop reasons.
func TestPrompt_StopReasons(t *testing.T) { families(t, stopReasons) }

func stopReasons(t *testing.T, family string) {
	for finish, want := range map[string]string{"stop": "end_turn", "length": "max_tokens", "content_filter": "refusal"} {
		t.Run(finish, func(t *testing.T) {
			t.Parallel()
			w := newWorldOf(t, family, func(fakemodel.Request) fakemodel.Reply {
				r := fakemodel.Text("some words")
				r.Finish = finish
				return r
			})
			a := w.start()
			if got := stop(t, a, a.Prompt(a.NewSession(w.work), "hi")); got != want {
				t.Errorf("stopped with %s, want %s", got, want)
			}
		})
	}
}

// A request that was refused before a word came has left nothing to go on from: the model is asked the same again, and told nothing else.
func TestPrompt_RefusedRequestLeavesNoNote(t *testing.T) {
	t.Parallel()
	n := 0
	w := newWorld(t, func(fakemodel.Request) fakemodel.Reply {
		if n++; n < 3 {
			return fakemodel.Error(429, "later", "rate_limit_exceeded").With("Retry-After", "0")
		}
		return fakemodel.Text("hello")
	})
	a := w.start()
	session := a.NewSession(w.work)
	if got := stop(t, a, a.Prompt(session, "say hello")); got != "end_turn" {
		t.Errorf("stopped with %s", got)
	}
	for i, r := range w.requests(3) {
		if r.LastUser() != "say hello" {
			t.Errorf("request %d ends with %q", i+1, r.LastUser())
		}
	}
}
