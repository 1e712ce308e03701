package cli_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"holdfast/conformance/fakemodel"
	"holdfast/conformance/harness"
)

// One line says each call that is made, those of a review too, once.
func TestWork_SaysEachCall(t *testing.T) {
	t.Parallel()
	w := newWorld(t, pursuing(""))
	g := document[goal](w, "goals", "create", "--mode", "edit", "Produce out.txt.")
	r := w.want(0, "work")
	var got []string
	for _, m := range regexp.MustCompile(`(?m)^\d\d:\d\d:\d\d session (\S+) calls (.*)$`).FindAllStringSubmatch(r.out, -1) {
		if m[1] != g.SessionID {
			t.Errorf("a call in %s", m[1])
		}
		got = append(got, m[2])
	}
	const want = "write: Write out.txt; update_goal: Offer the result for review; read: Read out.txt; submit_review: Submit the review"
	if strings.Join(got, "; ") != want {
		t.Errorf("calls %q in\n%s", got, r.out)
	}
	w.want(0, "goals", "create", "--mode", "edit", "Produce out.txt.")
	if r := w.want(0, "work", "--json"); strings.Count(r.out, `"event":"call"`) != 4 || !strings.Contains(r.out, `"title":"Read out.txt"`) {
		t.Errorf("as JSON\n%s", r.out)
	}
}

// What the model's endpoint said is told, and when it is asked again.
func TestWork_SaysWhatTheEndpointSaid(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	w := newWorld(t, func(fakemodel.Request) fakemodel.Reply {
		if asked.Add(1) == 1 {
			return fakemodel.Error(503, "Overloaded just now.", "overloaded")
		}
		return fakemodel.Error(401, "Incorrect API key provided.", "invalid_api_key")
	})
	w.want(0, "goals", "create", "--mode", "edit", "Produce out.txt.")
	r := w.want(3, "work")
	for _, want := range []string{`waiting \(model_retry\): .*Overloaded just now\..*; next try at \d\d:\d\d:\d\d, goal active`,
		`blocked \(model_failed\) The model endpoint refused the request: .*Incorrect API key provided\.`} {
		if !regexp.MustCompile(want).MatchString(r.out) {
			t.Errorf("no line %s in\n%s", want, r.out)
		}
	}
}

// A signal is no stop, and what it leaves running is said.
func TestWork_SaysWhatItLeaves(t *testing.T) {
	t.Parallel()
	w := newWorld(t, pursuing(held))
	a := w.editor(allow)
	w.began(a)
	a.Kill()
	p := w.start("--watch")
	harness.Eventually(t, "it is taken up", func() bool { return strings.Contains(p.said(), "working") })
	p.signal(syscall.SIGINT)
	mustEnd(t, p, 0)
	const want = "holdfast: left; 1 command goes on (holdfast ps); holdfast work takes it up, holdfast stop --all ends it\n"
	if got := p.errs.String(); got != want {
		t.Errorf("it says %q", got)
	}
	q := w.start("--watch")
	harness.Eventually(t, "it is taken up again", func() bool { return strings.Contains(q.said(), "working") })
	w.put("go")
	harness.Eventually(t, "it has ended", func() bool { return strings.Contains(q.said(), "goal achieved") })
	q.signal(syscall.SIGINT)
	mustEnd(t, q, 0)
	if got := q.errs.String(); got != "" {
		t.Errorf("with nothing left it says %q", got)
	}
}

// A call of an external server that was in flight when its process was killed is named before any other process has looked at it.
func TestEffects_InFlightInADeadProcess(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(r fakemodel.Request) fakemodel.Reply {
		if len(r.Results()) == 0 {
			return fakemodel.Calls(fakemodel.Call{Name: "mcp__ledger__publish", Args: `{"version":"1.0"}`})
		}
		return fakemodel.Text("done")
	})
	ledger := filepath.Join(w.work, "ledger")
	w.configure("[mcp.servers.ledger]\ncommand = \"" + w.binary() + "\"\nargs = [\"demo-server\", \"" + ledger + "\"]\n")
	w.want(0, "goals", "create", "Publish it.")
	w.want(3, "work")
	asked := document[[]struct{ ApprovalID string }](w, "sessions", "approvals")
	if len(asked) != 1 {
		t.Fatalf("asked %+v", asked)
	}
	w.want(0, "sessions", "answer", asked[0].ApprovalID, "allow_once")
	p := w.start()
	harness.Eventually(t, "the call is in flight", func() bool { b, err := os.ReadFile(ledger); return err == nil && len(b) > 0 })
	if r := w.want(0, "effects"); strings.Contains(r.errs, "in flight") {
		t.Errorf("while the process lives: %q", r.errs)
	}
	p.signal(syscall.SIGKILL)
	mustEnd(t, p, -1)
	if r := w.want(0, "effects", "--unknown"); !strings.Contains(r.errs, "mcp__ledger__publish") || !strings.Contains(r.errs, "was in flight in process") {
		t.Errorf("effects says %q", r.errs)
	}
	if got := w.doctor(3).finding(t, "effect", "person"); !strings.Contains(got, "was in flight in process") || !strings.Contains(got, "holdfast work") {
		t.Errorf("doctor says %q", got)
	}
	w.want(3, "work") // it asks what became of it
	if r := w.want(0, "effects", "--unknown"); r.errs != "" || !strings.Contains(r.out, "unknown") {
		t.Errorf("afterwards: %+v", r)
	}
}
