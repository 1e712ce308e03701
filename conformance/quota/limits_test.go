package quota_test

import (
	"database/sql"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"holdfast/conformance/fakemodel"
	"holdfast/conformance/harness"
)

// usedUp is a refusal that says when a limit is full again.
func usedUp(header, value string, more ...string) fakemodel.Reply {
	r := fakemodel.Error(429, "You have used up what your plan holds.", "rate_limit_exceeded").With(header, value)
	for i := 0; i < len(more); i += 2 {
		r = r.With(more[i], more[i+1])
	}
	return r
}

// refuse turns requests with these last words away, always.
func (w *world) refuse(text string, r fakemodel.Reply) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.plays[text] = func(fakemodel.Request) fakemodel.Reply { return r }
}

// edit changes what is stored between two launches, as if time had passed.
func (w *world) edit(query string, args ...any) {
	w.t.Helper()
	db := w.writable()
	defer func() { _ = db.Close() }()
	res, err := db.Exec(query, args...)
	w.must(err)
	if n, _ := res.RowsAffected(); n == 0 {
		w.t.Fatalf("nothing was changed: %s", query)
	}
}

// due is in how long the model is asked again, by the store.
func (w *world) due(l left) time.Duration {
	w.t.Helper()
	ms, err := strconv.ParseInt(w.query("SELECT retry_at FROM runs WHERE session = ? AND retry_at > 0", l.id), 10, 64)
	w.must(err)
	return time.Until(time.UnixMilli(ms))
}

const notice = "The provider takes requests again at "

// notices counts what an editor that opens the session is told of the limit.
func (w *world) notices(a *harness.Agent, l left) int {
	w.t.Helper()
	w.load(a, l.id, l.cwd)
	return strings.Count(a.Text(l.id), notice)
}

// limited leaves a session behind that waits for a limit.
func (w *world) limited(r fakemodel.Reply) (*harness.Agent, left) {
	w.t.Helper()
	w.refuse("big", r)
	a := w.launch("")
	cwd := w.tree("t")
	l := left{a.NewSession(cwd), cwd, "big"}
	a.Prompt(l.id, l.text)
	harness.Eventually(w.t, "it waits", func() bool { return w.states()[l.id].ReasonCode == "model_retry" })
	return a, l
}

// A time that the provider names is kept to, in every spelling, over a restart; it is said once.
func TestLimit_NothingIsAskedBefore(t *testing.T) {
	at := time.Now().Add(5 * time.Hour)
	for _, family := range fakemodel.Families {
		for name, r := range map[string]fakemodel.Reply{
			"seconds":   usedUp("Retry-After", "18000"),
			"date":      usedUp("Retry-After", at.UTC().Format("Mon, 02 Jan 2006 15:04:05 GMT")),
			"openai":    usedUp("X-Ratelimit-Remaining-Tokens", "0", "X-Ratelimit-Reset-Tokens", "5h0m0s", "X-Ratelimit-Remaining-Requests", "12", "X-Ratelimit-Reset-Requests", "1s"),
			"anthropic": usedUp("Anthropic-Ratelimit-Tokens-Remaining", "0", "Anthropic-Ratelimit-Tokens-Reset", at.UTC().Format(time.RFC3339)),
			"gateway":   usedUp("X-Ratelimit-Remaining", "0", "X-Ratelimit-Reset", fmt.Sprint(at.UnixMilli())),
		} {
			t.Run(family+" "+name, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, apart)
				w.family = family
				a, l := w.limited(r)
				if d := w.due(l); d > 5*time.Hour || d < 4*time.Hour {
					t.Errorf("it is asked again in %s", d)
				}
				if s := w.states()[l.id]; !strings.Contains(s.Reason, "used up") || !strings.Contains(s.Reason, "not asked again before") {
					t.Errorf("it says %q", s.Reason)
				}
				harness.Eventually(t, "the editor is told", func() bool { return strings.Contains(a.Text(l.id), notice) })
				a.Kill()
				b := w.launch("")
				if n := w.notices(b, l); n != 1 {
					t.Errorf("it is said %d times", n)
				}
				w.apart(b)
				b.Kill()
				c := w.launch("")
				if n := w.notices(c, l); n != 1 || w.times("big") != 1 {
					t.Errorf("it is said %d times; asked %q", n, w.asked())
				}
			})
		}
	}
}

// After the time there is one try. When that is refused too, the work ends and says why.
func TestLimit_OneTryAfterIt(t *testing.T) {
	t.Parallel()
	w := newWorld(t, apart)
	a, l := w.limited(usedUp("Retry-After", "18000"))
	a.Kill()
	w.edit("UPDATE runs SET retry_at = 1000000 WHERE retry_at > 0")
	b := w.launch("")
	b.Must("session/list", map[string]any{}, nil)
	harness.Eventually(t, "it has ended", func() bool { return strings.HasPrefix(w.runs(l), "ended") })
	if n := w.notices(b, l); n != 1 || w.times("big") != 2 {
		t.Errorf("it is said %d times; asked %q", n, w.asked())
	}
	w.apart(b)
	if n := w.times("big"); n != 2 {
		t.Errorf("it was asked %d times", n)
	}
}

// Meanwhile the user's word counts: to ask now, and to stop.
func TestLimit_TheUsersWord(t *testing.T) {
	t.Parallel()
	w := newWorld(t, apart)
	a, l := w.limited(usedUp("Retry-After", "18000"))
	a.Prompt(l.id, "/retry") // it is answered when the work ends
	harness.Eventually(t, "it is asked once more", func() bool { return w.times("big") == 2 })
	harness.Eventually(t, "it waits anew", func() bool { return w.states()[l.id].ReasonCode == "model_retry" })
	w.holdfast(0, nil, "sessions", "retry", l.id)
	harness.Eventually(t, "and once more", func() bool { return w.times("big") == 3 })
	harness.Eventually(t, "it waits anew", func() bool { return w.states()[l.id].ReasonCode == "model_retry" })
	if m := a.Await(a.Prompt(l.id, "/stop")); m.Error != nil {
		t.Fatal(m.Error)
	}
	harness.Eventually(t, "nothing waits", func() bool { return w.states()[l.id].State == "idle" })
	a.Kill()
	w.edit("UPDATE runs SET retry_at = 1000000")
	b := w.launch("")
	w.apart(b)
	if n := w.times("big"); n != 3 {
		t.Errorf("what was stopped was asked; asked %q", w.asked())
	}
}

// A new message is answered at once, and what waited goes on after it, with the limit full again.
func TestLimit_NewMessage(t *testing.T) {
	for _, family := range fakemodel.Families {
		t.Run(family, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, apart)
			w.family = family
			a, l := w.limited(usedUp("Retry-After", "18000"))
			w.say(a, l.id, "quick other")
			if n := len(w.model.Requests()); n != 2 {
				t.Errorf("%d requests", n)
			}
			w.holdfast(0, nil, "sessions", "retry", l.id)
			harness.Eventually(t, "it is asked again", func() bool { return len(w.model.Requests()) == 3 })
			for _, r := range w.model.Requests() {
				t.Logf("%s", r.Body)
				if last := r.Messages[len(r.Messages)-1]; r.Refused != "" || last.Role != "user" {
					t.Errorf("request %d (%s) ends with what the %s said: %s", r.N, r.Refused, last.Role, last.Content)
				}
			}
		})
	}
}

// A goal waits too, says it once, and its other turns ask nothing meanwhile.
func TestLimit_Goal(t *testing.T) {
	t.Parallel()
	w := newWorld(t, apart)
	w.refuse("big", usedUp("Retry-After", "18000"))
	asks := 0
	w.model.Close()
	w.model = fakemodel.New(func(r fakemodel.Request) fakemodel.Reply {
		if strings.HasPrefix(r.LastUser(), "quick") {
			return fakemodel.Text("done")
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		asks++
		return usedUp("Retry-After", "18000")
	})
	count := func() int {
		w.mu.Lock()
		defer w.mu.Unlock()
		return asks
	}
	a := w.launch("")
	l := left{a.NewSession(w.tree("g")), w.tree("g"), ""}
	a.Must("_holdfast/create_goal", map[string]any{"sessionId": l.id, "objective": "g"}, nil)
	harness.Eventually(t, "it waits", func() bool { return strings.Contains(w.runs(l), "model_retry") })
	a.Kill()
	b := w.launch("")
	if n := w.notices(b, l); n != 1 {
		t.Errorf("it is said %d times", n)
	}
	w.apart(b)
	if d := w.due(l); count() != 1 || d < 4*time.Hour {
		t.Errorf("it was asked %d times and is asked again in %s", count(), d)
	}
	// A prompt of the same session that waits holds the goal back, too.
	w.holdfast(0, nil, "sessions", "retry", l.id)
	harness.Eventually(t, "it is asked at the user's word", func() bool { return count() == 2 })
}

func (w *world) writable() *sql.DB {
	w.t.Helper()
	db, err := sql.Open("sqlite3", "file:"+filepath.Join(w.home, "holdfast.db")+"?_busy_timeout=5000")
	w.must(err)
	return db
}
