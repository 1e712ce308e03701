package acp_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"holdfast/conformance/fakemodel"
	"holdfast/conformance/harness"
)

// echo answers with what it was asked.
func echo(r fakemodel.Request) fakemodel.Reply {
	return fakemodel.Text("answer to " + r.LastUser() + ";")
}

// Two editors prompt one session at once: each prompt is worked on once, one after the other, in the order in which they were accepted, and
// both editors see the same stream with the prompts of the other as messages of the user.
func TestPair_PromptsInOrder(t *testing.T) {
	w := newWorld(t, echo)
	a, b := w.start(), w.start()
	session := a.NewSession(w.work)
	w.load(b, session)
	const each = 6
	ids := map[*harness.Agent][]string{}
	for i := range each { // neither waits for the other, nor for an answer
		ids[a] = append(ids[a], a.Prompt(session, fmt.Sprintf("a%d", i)))
		ids[b] = append(ids[b], b.Prompt(session, fmt.Sprintf("b%d", i)))
	}
	for agent, all := range ids {
		for _, id := range all {
			if got := stop(t, agent, id); got != "end_turn" {
				t.Errorf("stopped with %s", got)
			}
		}
	}
	w.noMore(2*each+1, time.Second, "a prompt was worked on twice")
	var order []string
	for _, r := range w.model.Requests() {
		order = append(order, r.LastUser())
	}
	for _, who := range []string{"a", "b"} {
		n := 0
		for _, p := range order {
			if strings.HasPrefix(p, who) {
				if p != fmt.Sprintf("%s%d", who, n) {
					t.Errorf("the prompts of %s ran as %v", who, order)
				}
				n++
			}
		}
	}
	said := func(x *harness.Agent) (words []string) {
		for _, u := range updates(t, x, session) {
			if u.Kind == "agent_message_chunk" {
				words = append(words, decode[struct{ Text string }](t, u.Content).Text)
			}
		}
		return words
	}
	harness.Eventually(t, "both show all of it", func() bool { return a.Text(session) == b.Text(session) && len(said(a)) >= 2*each })
	want := ""
	for _, p := range order {
		want += "answer to " + p + ";"
	}
	if a.Text(session) != want {
		t.Errorf("shown as %q, want %q", a.Text(session), want)
	}
	for agent, other := range map[*harness.Agent]string{a: "b", b: "a"} {
		for i := range each {
			message(t, agent, "user_message_chunk", fmt.Sprintf(`"%s%d"`, other, i))
		}
	}
	for _, x := range []*harness.Agent{a, b} {
		if err := x.CloseInput(); err != nil {
			t.Error(err)
		}
	}
	gapless(t, w, session)
}

// gapless looks at the log of a session, once no process has the store open: every sequence number is there once.
func gapless(t *testing.T, w *world, session string) {
	t.Helper()
	n := harness.Number(t, w.home, "SELECT count(*) FROM events WHERE session = ?", session)
	last := harness.Number(t, w.home, "SELECT coalesce(max(seq), 0) FROM events WHERE session = ?", session)
	if n == 0 || n != last {
		t.Errorf("%d events, the last is number %d", n, last)
	}
}

// What is typed in one window while a turn of the other runs is shown in both, in its place, and answered in the window it came from.
func TestPair_TypedWhileTheOtherWorks(t *testing.T) {
	gate := make(chan struct{})
	w := newWorld(t, func(r fakemodel.Request) fakemodel.Reply {
		if r.N == 1 {
			return fakemodel.Reply{Steps: []fakemodel.Step{{Text: "one "}, fakemodel.Gate(gate), {Text: "end."}}}
		}
		return echo(r)
	})
	a, b := w.start(), w.start()
	session := a.NewSession(w.work)
	w.load(b, session)
	first := a.Prompt(session, "long")
	message(t, b, "agent_message_chunk", "one")
	second := b.Prompt(session, "meanwhile")
	b.Must("session/list", map[string]any{}, nil)
	close(gate)
	if got := stop(t, a, first) + " " + stop(t, b, second); got != "end_turn end_turn" {
		t.Errorf("stopped with %s", got)
	}
	message(t, a, "agent_message_chunk", "answer to meanwhile")
	end, typed, answer := position(a, "agent_message_chunk", "end."), position(a, "user_message_chunk", "meanwhile"), position(a, "answer to meanwhile")
	if end < 0 || typed < end || answer < typed {
		t.Errorf("the end of the first stands at %d, what was typed at %d, its answer at %d", end, typed, answer)
	}
	if a.Text(session) != b.Text(session) {
		t.Errorf("one shows %q, the other %q", a.Text(session), b.Text(session))
	}
}

// One window closes the session, or dies while it waits for its answer: the other has it open, and the work goes on there.
func TestPair_OneWindowLeaves(t *testing.T) {
	for name, leave := range map[string]func(a *harness.Agent, session string){
		"closes": func(a *harness.Agent, session string) {
			a.Must("session/close", map[string]any{"sessionId": session}, nil)
		},
		"killed":     func(a *harness.Agent, _ string) { a.Kill() },
		"input ends": func(a *harness.Agent, _ string) { _ = a.CloseInput() },
	} {
		for _, owner := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, owner %v", name, owner), func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, once("echo run >> counter; while [ ! -e go ]; do sleep 0.02; done", "finished"))
				a, b := w.start(), w.start()
				leaves, stays := a, b
				if !owner {
					leaves, stays = b, a
				}
				session := a.NewSession(w.work)
				w.load(b, session)
				leaves.Prompt(session, "do it")
				w.waitFile("counter")
				leave(leaves, session)
				if err := os.WriteFile(w.path("go"), nil, 0o600); err != nil {
					t.Fatal(err)
				}
				harness.Eventually(t, "the work goes on", func() bool { return strings.HasSuffix(stays.Text(session), "finished") })
				message(t, stays, "user_message_chunk", "do it")
				if w.file("counter") != "run\n" {
					t.Errorf("the command ran as %q", w.file("counter"))
				}
				if got := stop(t, stays, stays.Prompt(session, "and now")); got != "end_turn" {
					t.Errorf("the next prompt stops with %s", got)
				}
			})
		}
	}
}
