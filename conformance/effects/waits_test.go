package effects_test

import (
	"database/sql"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	_ "github.com/mattn/go-sqlite3"

	"holdfast/conformance/fakemodel"
	"holdfast/conformance/harness"
)

// edit changes the stored times between two launches, as if a clock had been set or time had passed.
func (w *world) edit(query string, args ...any) {
	w.t.Helper()
	db, err := sql.Open("sqlite3", w.path("home/holdfast.db"))
	w.must(err)
	res, err := db.Exec(query, args...)
	if err == nil {
		if n, _ := res.RowsAffected(); n == 0 {
			w.t.Fatalf("nothing was changed: %s", query)
		}
	}
	w.must(err)
	w.must(db.Close())
}

// told is how many requests the model got whose last word of the user is this.
func (w *world) told(text string) (n int) {
	for _, r := range w.model.Requests() {
		for i := len(r.Messages) - 1; i >= 0; i-- {
			if m := r.Messages[i]; m.Role == "user" && !strings.HasPrefix(m.Content, "[") {
				if m.Content == text {
					n++
				}
				break
			}
		}
	}
	return n
}

// overloaded leaves a prompt that waits an hour for the model, in a store that no process has open.
func overloaded(t *testing.T) (*world, string) {
	t.Helper()
	w := newWorld(t, map[string][]fakemodel.Call{"go": nil, "other": nil})
	w.must(os.Mkdir(w.home, 0o700))
	w.must(os.WriteFile(filepath.Join(w.home, "config.toml"), []byte("[[models]]\nname = \"openai/apart\"\nimages = true\n[[models]]\nname = \"anthropic/apart\"\nimages = true\n"), 0o600))
	w.busy = 1
	a := w.launch("")
	session := w.open(a)
	a.Prompt(session, "go")
	harness.Eventually(t, "the wait is stored", func() bool {
		var all []struct{ ReasonCode string }
		w.holdfast(&all, "sessions", "list", "--json")
		return len(all) == 1 && all[0].ReasonCode == "model_retry"
	})
	a.Kill()
	return w, session
}

// aside has the process work on something else, with another model, which no wait is for, so that it has had the time to do what it should not.
func (w *world) aside(a *harness.Agent) {
	w.t.Helper()
	name := "openai/apart"
	if fakemodel.Family() == "anthropic" {
		name = "anthropic/apart"
	}
	session := w.open(a)
	a.Must("session/set_config_option", map[string]any{"sessionId": session, "configId": "model", "value": name}, nil)
	w.prompt(a, session, "other")
}

func TestTimer_NotDueMakesNoRequest(t *testing.T) {
	t.Parallel()
	w, session := overloaded(t)
	a := w.reopen(session)
	w.aside(a)
	if n := w.told("go"); n != 1 {
		t.Errorf("the model was asked %d times", n)
	}
}

const past, future = int64(1_000_000), int64(4_000_000_000_000) // milliseconds: 1970, 2096

// A wait that was due while no process ran ends at the launch, once, without a client that opens its session.
func TestTimer_OverdueFiresOnce(t *testing.T) {
	for _, crash := range []string{"", "recovery.decided:before", "recovery.decided:after", "request.started:before"} {
		t.Run(crash, func(t *testing.T) {
			t.Parallel()
			w, session := overloaded(t)
			w.edit("UPDATE runs SET retry_at = ? WHERE retry_at > 0", past)
			if crash != "" {
				a := w.launch(crash)
				a.Begin("session/list", map[string]any{})
				_ = a.Wait()
				w.fired(crash)
			}
			a := w.launch("")
			a.Must("session/list", map[string]any{}, nil)
			harness.Eventually(t, "the model is asked again", func() bool { return w.told("go") == 2 })
			w.aside(a)
			a.Must("session/load", w.params(session), nil)
			said(t, a, session, "done go")
			if n := w.told("go"); n != 2 {
				t.Errorf("the model was asked %d times", n)
			}
		})
	}
}

// Two processes find the same overdue wait.
func TestTimer_TwoProcessesFireItOnce(t *testing.T) {
	t.Parallel()
	w, session := overloaded(t)
	w.edit("UPDATE runs SET retry_at = ? WHERE retry_at > 0", past)
	a, b := w.launch(""), w.launch("")
	ids := []string{a.Begin("session/list", map[string]any{}), b.Begin("session/list", map[string]any{})}
	a.Await(ids[0])
	b.Await(ids[1])
	harness.Eventually(t, "the model is asked again", func() bool { return w.told("go") == 2 })
	w.aside(a)
	w.aside(b)
	b.Must("session/load", w.params(session), nil)
	said(t, b, session, "done go")
	if n := w.told("go"); n != 2 {
		t.Errorf("the model was asked %d times", n)
	}
}

// A clock that was put back does not make a wait longer than it is.
func TestTimer_ClockPutBack(t *testing.T) {
	t.Parallel()
	w, session := overloaded(t)
	w.edit("UPDATE runs SET retry_at = ?, retry_wait = 300 WHERE retry_at > 0", future)
	before := time.Now()
	a := w.reopen(session)
	harness.Eventually(t, "the model is asked again", func() bool { return w.told("go") == 2 })
	if took := time.Since(before); took < 300*time.Millisecond {
		t.Errorf("it waited %s", took)
	}
	said(t, a, session, "done go")
}

// What a wait was shortened to is stored: it does not begin anew in each process.
func TestTimer_ClockPutBackIsStored(t *testing.T) {
	t.Parallel()
	w, session := overloaded(t)
	w.edit("UPDATE runs SET retry_at = ? WHERE retry_at > 0", future)
	due := func() int64 { return harness.Number(t, w.path("home"), "SELECT max(retry_at) FROM runs") }
	a := w.reopen(session)
	harness.Eventually(t, "the wait ends within its length", func() bool { return due() <= time.Now().Add(time.Hour+time.Minute).UnixMilli() })
	first := due()
	a.Kill()
	b := w.reopen(session)
	w.aside(b)
	if now := due(); now != first {
		t.Errorf("it is due %d ms later in the next process", now-first)
	}
	if n := w.told("go"); n != 1 {
		t.Errorf("the model was asked %d times", n)
	}
}

// A question is consumed once, whoever answers it and wherever the process dies: the answer is still there, or it has been used up.
func TestQuestion_ConsumedOnce(t *testing.T) {
	for point, ran := range map[string]int{"effect.dispatched:before": 1, "effect.dispatched:after": 0} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, map[string][]fakemodel.Call{"go": {tool("shell", map[string]string{"command": waits})}})
			w.choose = func(string) string { return "" }
			a := w.launch("")
			session := w.open(a)
			a.Prompt(session, "go")
			harness.Eventually(t, "the question comes", func() bool { return len(w.asked()) == 1 })
			a.Kill()
			requests := len(w.model.Requests())
			w.edit("UPDATE approvals SET asked_at = asked_at - 86400000") // a day goes by
			id := w.answerIt()
			if n := len(w.model.Requests()); n != requests {
				t.Errorf("%d requests were made while it waited", n-requests)
			}
			b := w.launch(point)
			b.Begin("session/list", map[string]any{})
			_ = b.Wait()
			w.fired(point)
			c := w.reopen(session)
			said(t, c, session, "done go")
			if e := w.effects("shell"); len(e) != 1 || e[0].State != "settled" || w.lines("counter") != ran || len(w.asked()) != 1 {
				t.Errorf("ran %d times, asked %d times, recorded %+v", w.lines("counter"), len(w.asked()), e)
			}
			if text, code := w.holdfast(nil, "sessions", "answer", id, "reject_once"); code == 0 {
				t.Errorf("a consumed question took another answer: %s", text)
			}
			if w.holdfast(nil, "sessions", "answer", id, "allow_once"); w.lines("counter") != ran {
				t.Error("the same answer once more made it run again")
			}
		})
	}
}

// answerIt answers the one open question from the command line, and once more, which is refused.
func (w *world) answerIt() string {
	w.t.Helper()
	var open []struct{ ApprovalID string }
	w.holdfast(&open, "sessions", "approvals", "--json")
	if len(open) != 1 {
		w.t.Fatalf("open questions: %+v", open)
	}
	if text, code := w.holdfast(nil, "sessions", "answer", open[0].ApprovalID, "allow_once"); code != 0 {
		w.t.Fatal(text)
	}
	if text, code := w.holdfast(nil, "sessions", "answer", open[0].ApprovalID, "reject_once"); code == 0 || !strings.Contains(text, "already answered") {
		w.t.Errorf("a second answer: %d %s", code, text)
	}
	return open[0].ApprovalID
}
