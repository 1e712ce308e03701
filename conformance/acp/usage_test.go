package acp_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"holdfast/conformance/fakemodel"
	"holdfast/conformance/harness"
)

// meters are the usage updates of a session, in order: "used/size", and behind it the cost, and what is not in it. The harness holds each to
// the protocol's schema.
func meters(t *testing.T, a *harness.Agent, session string) (out []string) {
	for _, raw := range a.Updates(session) {
		u := decode[struct {
			SessionUpdate string
			Used, Size    int64
			Cost          *struct {
				Amount   float64
				Currency string
				Meta     struct {
					Holdfast struct{ EstimatedMicros, UnknownCostRequests int64 }
				} `json:"_meta"`
			}
		}](t, raw)
		if u.SessionUpdate != "usage_update" {
			continue
		}
		s := fmt.Sprintf("%d/%d", u.Used, u.Size)
		if c := u.Cost; c != nil {
			s += fmt.Sprintf(" %g %s", c.Amount, c.Currency)
			if h := c.Meta.Holdfast; h.EstimatedMicros+h.UnknownCostRequests > 0 {
				s += fmt.Sprintf(" (+ %d estimated, %d unknown)", h.EstimatedMicros, h.UnknownCostRequests)
			}
		}
		out = append(out, s)
	}
	return out
}

// Each editor that has a session open is told, behind each settled request and before the turn's end, how full the context is and what the session has
// cost; one that opens it later, in another process, is told the same once. Without a known context nothing is told.
func TestUsageUpdates(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(r fakemodel.Request) fakemodel.Reply {
		reply := fakemodel.Text("yes")
		switch r.LastUser() {
		case "read":
			if r.Messages[len(r.Messages)-1].Role != "tool" {
				reply = fakemodel.Calls(fakemodel.Call{Name: "read", Args: `{"path":"a"}`})
			}
		case "uncounted":
			reply.Usage = nil
			return reply
		}
		reply.Usage = &fakemodel.Usage{Prompt: 1000, Completion: 100}
		return reply
	})
	if err := os.MkdirAll(w.home, 0o700); err != nil {
		t.Fatal(err)
	}
	configure := func(text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(w.home, "config.toml"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	name := strings.TrimPrefix(w.env[0], "HOLDFAST_MODEL=")
	if err := os.WriteFile(w.path("a"), []byte("a\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	configure("")
	a := w.start()
	s := a.NewSession(w.work)
	a.Await(a.Prompt(s, "read"))
	if got := meters(t, a, s); len(got) != 0 {
		t.Errorf("of a model of which nothing is known it told %q", got)
	}
	if err := a.CloseInput(); err != nil {
		t.Fatal(err)
	}
	// 1000 at 3 and 100 at 15 for each request; the two before have no price
	configure(fmt.Sprintf("[[models]]\nname = %q\ncontext_tokens = 200000\nprice_input = 3\nprice_output = 15\n", name))
	a = w.start()
	w.load(a, s)
	a.Await(a.Prompt(s, "read"))
	want := []string{"1100/200000", "1100/200000 0.0045 USD (+ 0 estimated, 2 unknown)", "1100/200000 0.009 USD (+ 0 estimated, 2 unknown)"}
	if got := meters(t, a, s); !slices.Equal(got, want) {
		t.Errorf("it told %q; want %q", got, want)
	}
	b := w.start() // another window
	w.load(b, s)
	told := func(want ...string) func() bool { return func() bool { return slices.Equal(meters(t, b, s), want) } }
	harness.Eventually(t, "the other window is told how things stand", told(want[2]))
	a.Await(a.Prompt(s, "uncounted"))
	last := "1100/200000 0.009 USD (+ 0 estimated, 3 unknown)"
	if got := meters(t, a, s); got[len(got)-1] != last {
		t.Errorf("behind an uncounted answer it told %q; want %q at the end", got, last)
	}
	harness.Eventually(t, "the other window is told", told(want[2], last))
}
