package crash_test

import (
	"encoding/json"
	"strings"

	"holdfast/conformance/fakemodel"
	"holdfast/conformance/harness"
)

// transcript is what a fresh process shows of the session: what the agent said, and what the user did.
func (u *user) transcript() (agent, person string) {
	u.w.t.Helper()
	u.launch("")
	u.must(u.hello())
	_, err := u.open()
	u.must(err)
	var b strings.Builder
	for _, raw := range u.a.Updates(u.session) {
		var c struct {
			SessionUpdate string
			Content       struct{ Text string }
		}
		if json.Unmarshal(raw, &c) == nil && c.SessionUpdate == "user_message_chunk" {
			b.WriteString(c.Content.Text + "\n")
		}
	}
	agent = u.a.Text(u.session)
	u.must(u.leave())
	return agent, b.String()
}

// honest checks what the model was shown: each call has one result.
func (u *user) honest() {
	u.w.t.Helper()
	if err := fakemodel.ResultsPerCall(u.w.model.Requests()); err != nil {
		u.w.t.Error(err)
	}
}

// achieved checks a Goal's end from outside.
func achieved(u *user) { u.achieved(exitCode) }

func (u *user) achieved(code int) {
	t := u.w.t
	t.Helper()
	u.honest()
	u.w.look()
	if n := u.w.lines("counter"); n != 1 {
		t.Errorf("the command ran %d times", n)
	}
	// A review that was told to begin anew collects its evidence anew.
	if n := u.w.lines("checks"); n < 1 || n > 1+u.retries {
		t.Errorf("the requirement's command ran %d times", n)
	}
	said, _ := u.transcript()
	if n := strings.Count(said, "Goal achieved"); n != 1 {
		t.Errorf("the transcript has %d records of the goal's end", n)
	}
	u.launch("")
	u.must(u.hello())
	g, err := u.goal()
	u.must(err)
	if g.Status != "achieved" {
		t.Errorf("the goal is %s (%s %s)", g.Status, g.ReasonCode, g.Reason)
	}
	ran := map[string]int{}
	for _, m := range g.History {
		if m.What != "effect" {
			continue
		}
		if m.State != "settled" {
			t.Errorf("the call %q is %s at the end", m.Title, m.State)
		}
		if m.Fact == "completed" {
			ran[m.Kind]++
			ran[m.Kind+" "+m.Title]++
		}
		if code != 0 && m.Fact == "completed" && m.Title == command && (m.ExitCode == nil || *m.ExitCode != code) {
			t.Errorf("the exit code of the command is %v, settled by %s", m.ExitCode, m.SettledBy)
		}
	}
	if ran["write"] != 1 || ran["shell "+command] != 1 {
		t.Errorf("the command and the write are not in the history as completed once: %v", ran)
	}
	u.must(u.leave())
}

// answered checks that each prompt is in the transcript once, and that the command ran so many times.
func answered(commands int, prompts ...string) func(*user) {
	return func(u *user) {
		t := u.w.t
		t.Helper()
		u.honest()
		u.w.look()
		_, person := u.transcript()
		for _, p := range prompts {
			if n := strings.Count(person, p+"\n"); n != 1 {
				t.Errorf("the prompt %q is in the transcript %d times", p, n)
			}
		}
		if n := u.w.lines("counter"); n != commands {
			t.Errorf("the command ran %d times, want %d", n, commands)
		}
	}
}

// stopped checks that a stop that was stored is one: what it stopped is never asked of the model again.
func stopped(u *user) {
	t := u.w.t
	answered(0, "please hang", "please go on")(u)
	want := 1
	if u.died == "cancel.accepted:before" {
		want = 2 // it was not stored, so the work went on until the user said it again
	}
	if n := u.w.seen("hang"); n != want {
		t.Errorf("the stopped prompt was put to the model %d times, want %d", n, want)
	}
	if n := u.w.seen("wait"); n != 0 {
		t.Errorf("the prompt that waited was put to the model %d times", n)
	}
}

// find waits for a message of the agent.
func (u *user) find(what string, want func(harness.Message) bool) harness.Message {
	u.w.t.Helper()
	m, ok := u.a.Find(want)
	if !ok {
		u.w.t.Fatalf("it did not come: %s", what)
	}
	return m
}
