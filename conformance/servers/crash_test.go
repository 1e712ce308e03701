package servers_test

import (
	"os"
	"strings"
	"syscall"
	"testing"

	"holdfast/conformance/harness"
)

// arrow is an instant in the life of a call at which Holdfast dies.
type arrow struct {
	point       string
	fact        string // what the next request says: answered, unknown
	least, most int    // times that the call reached the server
	edited      bool   // the call has certainly been made
}

var arrows = []arrow{
	{"effect.dispatched:before", "answered", 1, 1, true}, // it was allowed and had not begun: it begins, once
	{"effect.dispatched:after", "unknown", 0, 0, false},
	{"mcp.sending", "unknown", 0, 0, false},
	{"mcp.written", "unknown", 0, 1, false},
	{"mcp.answer_read", "unknown", 1, 1, true},
	{"effect.settled:before", "unknown", 1, 1, true},
	{"effect.settled:after", "answered", 1, 1, true},
}

// says is what a fact looks like to the model.
var says = map[string]string{"answered": "acted", "unknown": "Outcome unknown"}

// die prompts a process that dies at a point.
func (w *world) die(point, text string) string {
	w.t.Helper()
	a := w.start(point)
	session := w.open(a)
	a.Prompt(session, text)
	_ = a.Wait() // killed
	w.fired(1, point)
	return session
}

// fired checks the points that were reached so far.
func (w *world) fired(n int, point string) {
	w.t.Helper()
	b, _ := os.ReadFile(w.path("fired")) // absent is empty
	lines := strings.Split(strings.TrimSpace(string(b)), "\n")
	if len(lines) != n || !strings.HasPrefix(lines[n-1], point+" kill ") {
		w.t.Fatalf("the crash point %s did not fire: %q", point, lines)
	}
}

func TestCrash_EveryArrow(t *testing.T) {
	for _, c := range arrows {
		t.Run(c.point, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, follow(turns{"go": {tool("mcp__x__act", act("ok", 0, "acted"))}}))
			w.hostile("x", nil)
			session := w.die(c.point, "go")
			b := w.replay(session)
			said(t, b, session, "done go")
			w.outcome(c, b, session)
			if n := len(w.asked()); n != 1 {
				t.Errorf("the user was asked %d times", n)
			}
		})
	}
}

// outcome checks what became of the one call.
func (w *world) outcome(c arrow, a *harness.Agent, session string) {
	t := w.t
	t.Helper()
	if n := len(w.calls("x")); n < c.least || n > c.most {
		t.Errorf("the call reached the server %d times", n)
	}
	if r := w.results(); len(r) != 1 || !strings.Contains(r[0], says[c.fact]) {
		t.Errorf("the model was told %q, want one that is %s", r, c.fact)
	}
	idle(t, a, session)
	status := map[string]string{"answered": "completed", "unknown": "failed"}[c.fact]
	if got := shown(a, session, "x: act"); got != status {
		t.Errorf("the call is shown as %q, want %s", got, status)
	}
}

// An edit that is made twice shows in the file.
func TestCrash_EditIsNeverDoubled(t *testing.T) {
	for _, c := range arrows {
		t.Run(c.point, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, nil)
			w.peer("files", "server-filesystem", w.work)
			path := w.write("greeting", "hi\n")
			w.answer = follow(turns{"go": {tool("mcp__files__edit_file", edit(path))}})
			session := w.die(c.point, "go")
			b := w.replay(session)
			said(t, b, session, "done go")
			got := w.read("greeting")
			if got != "hi hi\n" && (c.edited || got != "hi\n") {
				t.Errorf("the file says %q", got)
			}
			idle(t, b, session)
		})
	}
}

// The second death comes while the first is recovered from.
func TestCrash_AgainInRecovery(t *testing.T) {
	for _, c := range arrows {
		for _, again := range []string{"recovery.decided:before", "recovery.decided:after"} {
			t.Run(c.point+" "+again, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, follow(turns{"go": {tool("mcp__x__act", act("ok", 0, "acted"))}, "next": nil}))
				w.hostile("x", nil)
				session := w.die(c.point, "go")
				b := w.start(again)
				b.Begin("session/load", w.params(session)) // it may die before it answers
				_ = b.Wait()
				w.fired(2, again)
				d := w.replay(session)
				w.prompt(d, session, "next")
				w.outcome(c, d, session)
			})
		}
	}
}

// The same instant comes twice.
func TestCrash_SameArrowTwice(t *testing.T) {
	t.Parallel()
	w := newWorld(t, follow(turns{"go": {tool("mcp__x__act", act("ok", 0, "acted"))}, "next": nil}))
	w.hostile("x", nil)
	c := arrows[0]
	session := w.die(c.point, "go")
	b := w.start(c.point)
	b.Begin("session/load", w.params(session))
	_ = b.Wait()
	w.fired(2, c.point)
	d := w.replay(session)
	w.prompt(d, session, "next")
	w.outcome(c, d, session)
}

// The server dies, Holdfast does not.
func TestServerDies_EveryArrow(t *testing.T) {
	for _, c := range []struct {
		do    string
		fact  string
		calls int
	}{
		{"vanish", "unknown", 0},
		{"exit", "unknown", 1},
		{"half", "unknown", 1},
		{"answer_exit", "answered", 1},
	} {
		t.Run(c.do, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, follow(turns{"go": {tool("mcp__x__act", act(c.do, 0, ""))}, "next": nil}))
			w.hostile("x", nil)
			a := w.start("")
			session := w.open(a)
			w.prompt(a, session, "go")
			want := map[string]string{"unknown": says["unknown"], "answered": "last words"}[c.fact]
			if r := w.results(); len(r) != 1 || !strings.Contains(r[0], want) {
				t.Errorf("the model was told %q, want %q", r, want)
			}
			if n := len(w.calls("x")); n != c.calls {
				t.Errorf("the server acted %d times", n)
			}
			idle(t, a, session)
			w.prompt(a, session, "next") // which must not send anything again
			if n := len(w.calls("x")); n != c.calls {
				t.Errorf("the server acted %d times in the end", n)
			}
		})
	}
}

// The servers of a session are stored, and their tools; a session whose process dies there can be used all the same.
func TestCrash_WhileServersAreStored(t *testing.T) {
	for _, point := range []string{"servers.supplied:before", "servers.supplied:after", "servers.listed:before", "servers.listed:after"} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, follow(turns{"go": {tool("mcp__x__act", act("ok", 0, "acted"))}}))
			w.hostile("x", nil)
			a := w.start(point)
			a.Begin("session/new", w.params(""))
			_ = a.Wait() // killed; the tools are listed without a prompt
			w.fired(1, point)
			b := w.start("")
			var r struct{ Sessions []struct{ SessionID string } }
			b.Must("session/list", map[string]any{}, &r)
			if len(r.Sessions) != 1 {
				t.Fatalf("%d sessions", len(r.Sessions))
			}
			session := r.Sessions[0].SessionID
			w.load(b, session)
			w.prompt(b, session, "go")
			w.outcome(arrow{point: point, fact: "answered", least: 1, most: 1}, b, session)
		})
	}
}

// A late answer is stored, or it is lost and the outcome stays unknown.
func TestCrash_WhileALateAnswerIsStored(t *testing.T) {
	for point, want := range map[string]string{"send.resolved:before": says["unknown"], "send.resolved:after": "held and answered"} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			w, a, session := hold(t, point, nil)
			w.prompt(a, session, "next")
			w.touch("release")
			_ = a.Wait()
			w.fired(1, point)
			b := w.replay(session)
			w.prompt(b, session, "last")
			if r := w.results(); len(r) != 1 || !strings.Contains(r[0], want) {
				t.Errorf("the model was told %q, want %q", r, want)
			}
			if n := len(w.calls("x")); n != 1 {
				t.Errorf("the call reached the server %d times", n)
			}
			idle(t, b, session)
		})
	}
}

// deaf begins a call that is too long for the pipe of a server that does not read.
func deaf(t *testing.T) (*world, *harness.Agent, string, string) {
	t.Helper()
	w := newWorld(t, follow(turns{"go": {tool("mcp__x__act", act("ok", 0, strings.Repeat("a", 1<<20)))}, "next": nil}))
	w.hostile("x", plan{"deaf": true})
	a := w.start("")
	session := w.open(a)
	id := a.Prompt(session, "go")
	harness.Eventually(t, "the call is dispatched", func() bool { return shown(a, session, "x: act") == "in_progress" })
	return w, a, session, id
}

func TestServerDies_BeforeReading(t *testing.T) {
	t.Parallel()
	w, a, session, id := deaf(t)
	if err := syscall.Kill(w.lives("x")[0], syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if got := stop(t, a, id); got != "end_turn" {
		t.Errorf("stopped with %s", got)
	}
	w.outcome(arrow{fact: "unknown"}, a, session)
}

func TestCrash_InTheMiddleOfAWrite(t *testing.T) {
	t.Parallel()
	w, a, session, _ := deaf(t)
	a.Kill()
	b := w.replay(session)
	said(t, b, session, "done go")
	w.outcome(arrow{fact: "unknown"}, b, session)
}

// What session/resume hands over is as good as what session/load does.
func TestCrash_ResumedSessionHasItsServers(t *testing.T) {
	t.Parallel()
	w := newWorld(t, follow(turns{"go": {tool("mcp__x__act", act("ok", 0, "acted"))}}))
	w.hostile("x", nil)
	session := w.die("effect.dispatched:before", "go")
	b := w.start("")
	b.Must("session/resume", w.params(session), nil)
	said(t, b, session, "done go")
	if n := len(w.calls("x")); n != 1 || !strings.Contains(w.result(), "acted") {
		t.Errorf("%d calls, the model was told %q", n, w.result())
	}
}
