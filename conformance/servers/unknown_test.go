package servers_test

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"holdfast/conformance/fakemodel"
	"holdfast/conformance/harness"
)

// lost makes a call of the server x whose outcome is unknown, and goes on in a new process.
func lost(t *testing.T, more turns) (*world, *harness.Agent, string) {
	t.Helper()
	all := turns{"go": {tool("mcp__x__act", act("ok", 0, "acted"))}}
	for prompt, calls := range more {
		all[prompt] = calls
	}
	w := newWorld(t, follow(all))
	w.hostile("x", nil)
	session := w.die("mcp.answer_read", "go")
	a := w.replay(session)
	said(t, a, session, "done go")
	if r := w.results(); len(r) != 1 || !strings.Contains(r[0], says["unknown"]) {
		t.Fatalf("the model was told %q", r)
	}
	w.mu.Lock()
	w.asks = nil
	w.mu.Unlock()
	return w, a, session
}

// named tells whether a question names the unknown operation and offers to settle it.
func (q ask) named() bool {
	return strings.Contains(q.Text, "x: act") && strings.Contains(q.Title, "x: act") &&
		slices.Contains(q.Options, "it_happened") && slices.Contains(q.Options, "it_did_not")
}

var writing = []fakemodel.Call{tool("write", map[string]string{"path": "out", "content": "written\n"})}

func TestUnknown_ReadersAreFree(t *testing.T) {
	t.Parallel()
	w, a, session := lost(t, turns{"look": {tool("read", map[string]string{"path": "here"})}})
	w.write("here", "plain to see\n")
	w.prompt(a, session, "look")
	if q := w.asked(); len(q) != 0 || !strings.Contains(w.result(), "plain to see") {
		t.Errorf("asked %v, result %q", q, w.result())
	}
}

// No mode waives the question, which is asked once and names what is unknown. Settling it lifts it, and what the model was told is replaced.
func TestUnknown_SettledEachWay(t *testing.T) {
	for option, word := range map[string]string{"it_happened": "says that it happened", "it_did_not": "says that it did not happen"} {
		t.Run(option, func(t *testing.T) {
			t.Parallel()
			w, a, session := lost(t, turns{"write": writing, "again": {tool("write", map[string]string{"path": "more", "content": "more\n"})}})
			a.Must("session/set_mode", map[string]any{"sessionId": session, "modeId": "edit"}, nil)
			w.choose = func(q ask) string {
				if q.named() {
					return option
				}
				return "reject_once"
			}
			w.prompt(a, session, "write")
			q := w.asked()
			if len(q) != 1 || !q[0].named() {
				t.Fatalf("asked %+v", q)
			}
			if got := w.read("out"); got != "written\n" {
				t.Errorf("the file says %q", got)
			}
			r := w.results()
			if len(r) != 2 || !strings.Contains(r[0], word) || strings.Contains(r[0], says["unknown"]) {
				t.Errorf("the model was told %q", r)
			}
			w.prompt(a, session, "again")
			if n := len(w.asked()); n != 1 || w.read("more") != "more\n" {
				t.Errorf("asked %d times, the file says %q", n, w.read("more"))
			}
			if n := len(w.calls("x")); n != 1 {
				t.Errorf("the call reached the server %d times", n)
			}
			idle(t, a, session)
		})
	}
}

func TestUnknown_RejectingLeavesIt(t *testing.T) {
	t.Parallel()
	w, a, session := lost(t, turns{"write": writing, "again": writing})
	a.Must("session/set_mode", map[string]any{"sessionId": session, "modeId": "edit"}, nil)
	w.choose = func(ask) string { return "reject_once" }
	w.prompt(a, session, "write")
	w.prompt(a, session, "again")
	q := w.asked()
	if len(q) != 2 || !q[0].named() || !q[1].named() {
		t.Errorf("asked %+v", q)
	}
	if got := w.read("out"); got != "" {
		t.Errorf("the file says %q", got)
	}
	if r := w.results(); len(r) != 3 || !strings.Contains(r[0], says["unknown"]) {
		t.Errorf("the model was told %q", r)
	}
}

// Allowing once lets that call run and settles nothing.
func TestUnknown_SameCallAgainIsTheUsersChoice(t *testing.T) {
	t.Parallel()
	w, a, session := lost(t, turns{"repeat": {tool("mcp__x__act", act("ok", 0, "acted"))}})
	w.prompt(a, session, "repeat")
	q := w.asked()
	if len(q) != 1 || !q[0].named() {
		t.Errorf("asked %+v", q)
	}
	if n := len(w.calls("x")); n != 2 {
		t.Errorf("the calls reached the server %d times", n)
	}
}

// hold cancels a call that the server holds, and checks that the editor has its answer while the server still has the call.
func hold(t *testing.T, crash string, more turns) (*world, *harness.Agent, string) {
	t.Helper()
	w := newWorld(t, nil)
	all := turns{"go": {tool("mcp__x__act", act("held", 0, w.path("release")))}, "next": nil, "last": nil}
	for prompt, calls := range more {
		all[prompt] = calls
	}
	w.answer = follow(all)
	w.hostile("x", nil)
	a := w.start(crash)
	session := w.open(a)
	id := a.Prompt(session, "go")
	w.begun("x", 1)
	a.Notify("session/cancel", map[string]any{"sessionId": session})
	if got := stop(t, a, id); got != "cancelled" {
		t.Errorf("stopped with %s", got)
	}
	harness.Eventually(t, "the server hears of the cancel", func() bool { return len(w.lines("x.calls.cancelled")) == 1 })
	return w, a, session
}

// settled waits until no call of the session is open in the journal.
func (w *world) settled(session string) {
	w.t.Helper()
	plain, _, err := harness.Binaries()
	if err != nil {
		w.t.Fatal(err)
	}
	harness.Eventually(w.t, "the journal has every outcome", func() bool {
		cmd := exec.Command(plain, "effects", "list", "--session", session, "--open", "--json")
		cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOLDFAST_HOME=" + w.home}
		out, err := cmd.Output()
		return err == nil && strings.TrimSpace(string(out)) == "[]"
	})
}

// An answer soon after the cancel is the outcome.
func TestLate_AnswerAfterCancelIsRecorded(t *testing.T) {
	t.Parallel()
	w, a, session := hold(t, "", nil)
	w.touch("release")
	w.settled(session)
	w.prompt(a, session, "next")
	if r := w.results(); len(r) != 1 || !strings.Contains(r[0], "held and answered") {
		t.Errorf("the model was told %q", r)
	}
	b := w.replay(session)
	if got := shown(b, session, "x: act"); got != "completed" {
		t.Errorf("the call is shown as %q", got)
	}
}

// An answer that comes when the outcome was already given as unknown replaces that, and takes back the question that named it.
func TestLate_AnswerReplacesUnknown(t *testing.T) {
	t.Parallel()
	w, a, session := hold(t, "", turns{"write": writing})
	w.prompt(a, session, "next")
	if r := w.results(); len(r) != 1 || !strings.Contains(r[0], says["unknown"]) {
		t.Fatalf("the model was told %q", r)
	}
	w.choose = func(q ask) string {
		if q.named() {
			return "" // nobody answers
		}
		return "allow_once"
	}
	id := a.Prompt(session, "write")
	harness.Eventually(t, "the question comes", func() bool { return len(w.asked()) == 2 }) // the first let the call run
	w.touch("release")
	if got := stop(t, a, id); got != "end_turn" {
		t.Errorf("stopped with %s", got)
	}
	q := w.asked()
	if len(q) != 3 || !q[1].named() || q[2].named() || slices.Contains(q[2].Options, "it_happened") {
		t.Errorf("asked %+v", q)
	}
	if _, ok := a.Find(func(m harness.Message) bool { return m.Method == "$/cancel_request" }); !ok {
		t.Error("the question was not withdrawn")
	}
	if r := w.results(); len(r) != 2 || !strings.Contains(r[0], "held and answered") {
		t.Errorf("the model was told %q", r)
	}
	if n := len(w.calls("x")); n != 1 {
		t.Errorf("the call reached the server %d times", n)
	}
	idle(t, w.replay(session), session)
}

// A call that is not answered in time is unknown, with the reason; the server is told, and its answer is taken when it comes.
func TestLate_AnswerAfterTheTimeLimit(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.configure("[mcp.limits]\nidle_seconds = 1\n")
	w.answer = follow(turns{"go": {tool("mcp__x__act", act("held", 0, w.path("release")))}, "next": nil})
	w.hostile("x", nil)
	a := w.start("")
	session := w.open(a)
	w.prompt(a, session, "go")
	if r := w.results(); len(r) != 1 || !strings.Contains(r[0], says["unknown"]) {
		t.Fatalf("the model was told %q", r)
	}
	harness.Eventually(t, "the server hears of it", func() bool { return len(w.lines("x.calls.cancelled")) == 1 })
	w.touch("release")
	w.settled(session)
	w.prompt(a, session, "next")
	if r := w.results(); len(r) != 1 || !strings.Contains(r[0], "held and answered") {
		t.Errorf("the model was told %q", r)
	}
	if n := len(w.calls("x")); n != 1 {
		t.Errorf("the call reached the server %d times", n)
	}
}
