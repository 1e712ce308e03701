// Package acpx_test uses the real acpx, from its npm package, as the client of the real binary. Only the model is played.
//
// acpx leaves a process behind, which owns the session and the agent and takes what later invocations say. A test that wants a new agent has
// to end that process.
package acpx_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"holdfast/conformance/fakemodel"
	"holdfast/conformance/harness"
)

func TestMain(m *testing.M) {
	code := m.Run()
	harness.Cleanup()
	os.Exit(code)
}

// A conversation goes on in a second invocation with a new agent, although the first agent is gone with the process that owned it.
func TestACPX_PromptAndResumeInANewProcess(t *testing.T) {
	w := newWorld(t, func(r fakemodel.Request) fakemodel.Reply {
		switch {
		case strings.Contains(r.LastUser(), "please recall"):
			return fakemodel.Text("You ", "wanted a command.")
		case len(r.Results()) == 0:
			return fakemodel.Calls(fakemodel.Call{Name: "shell", Args: `{"command":"echo once >> out.txt"}`})
		}
		return fakemodel.Text("It ", "ran.")
	})
	w.acpx("sessions", "new")
	first := w.acpx("prompt", "please run a command")
	if first.stop != "end_turn" || first.text != "It ran." || w.file("out.txt") != "once\n" {
		t.Fatalf("stopped with %q, said %q, wrote %q:\n%s", first.stop, first.text, w.file("out.txt"), first.raw)
	}
	owner, agent := w.owner(), w.agents()
	w.end(owner)
	harness.Eventually(t, "the agent ends with its client", func() bool { return !alive(agent[len(agent)-1]) })

	second := w.acpx("prompt", "please recall what I wanted")
	if second.stop != "end_turn" || second.text != "You wanted a command." {
		t.Errorf("stopped with %q, said %q:\n%s", second.stop, second.text, second.raw)
	}
	again := w.agents()
	if len(again) != len(agent)+1 || slices.Contains(agent, again[len(again)-1]) {
		t.Errorf("the agents were %v, then %v: no new one was started", agent, again)
	}
	if now := w.owner(); now == owner {
		t.Errorf("process %d still owns the session", owner)
	}
	if second.session == "" || second.session != first.session {
		t.Errorf("the conversation went from session %q to %q", first.session, second.session)
	}
	if !second.sent("session/resume") || second.sent("session/new") {
		t.Errorf("acpx did not resume:\n%s", second.raw)
	}
	reqs := w.model.Requests()
	var said []string
	for _, m := range reqs[len(reqs)-1].Messages {
		said = append(said, m.Role+" "+m.Content)
	}
	for _, want := range []string{"user please run a command", "assistant It ran.", "user please recall what I wanted"} {
		if !slices.Contains(said, want) {
			t.Errorf("the model was not told %q: %q", want, said)
		}
	}
}

// A Goal set as a command is pursued to its end while acpx waits, and a later invocation with a new agent knows how it ended.
func TestACPX_Goal(t *testing.T) {
	w := newWorld(t, pursuing)
	w.acpx("sessions", "new")
	done := w.acpx("prompt", "/goal Produce out.txt.")
	if done.stop != "end_turn" || !strings.Contains(done.text, "Goal achieved") || w.file("out.txt") != "result\n" {
		t.Fatalf("stopped with %q, said %q, wrote %q:\n%s", done.stop, done.text, w.file("out.txt"), done.raw)
	}
	agents := w.agents()
	w.end(w.owner())
	asked := len(w.model.Requests())
	later := w.acpx("prompt", "/status")
	if later.stop != "end_turn" || !strings.Contains(later.text, "Goal achieved") {
		t.Errorf("the status stops with %q and says %q:\n%s", later.stop, later.text, later.raw)
	}
	if now := w.agents(); len(now) != len(agents)+1 {
		t.Errorf("the agents were %v, then %v", agents, now)
	}
	if n := len(w.model.Requests()); n != asked {
		t.Errorf("an achieved goal made %d more model requests", n-asked)
	}
}
