package history_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"holdfast/conformance/fakemodel"
	"holdfast/conformance/harness"
)

// holding is a model that says a few words and then hangs, until free is closed.
func holding(free <-chan struct{}, words string) fakemodel.Reply {
	return fakemodel.Reply{Steps: []fakemodel.Step{{Text: words}, fakemodel.Gate(free)}, Usage: &fakemodel.Usage{Prompt: 1, Completion: 1}}
}

// A session that began with a goal, by whichever door, has a title from it and is listed, also when its process died at once.
func TestFound_SessionsThatBeginWithAGoal(t *testing.T) {
	t.Parallel()
	free := make(chan struct{})
	w := newWorld(t, func(fakemodel.Request) fakemodel.Reply { return holding(free, "thinking") })
	defer close(free)
	const objective = "Sort the attic.\nThrow nothing away."
	a := w.start()
	by := map[string]string{}
	by["method"] = a.NewSession(w.work)
	a.Must("create_goal", map[string]any{"sessionId": by["method"], "objective": objective}, nil)
	by["slash command"] = a.NewSession(w.work)
	a.Prompt(by["slash command"], "/goal "+objective)
	by["directory"] = decode[struct{ Goal struct{ SessionID string } }](t, must(t, a, "create_goal", map[string]any{"cwd": w.work, "objective": objective})).Goal.SessionID
	by["command line"] = decode[struct{ SessionID string }](t, w.want("goals", "create", "--json", "--cwd", w.work, objective)).SessionID
	harness.Eventually(t, "all are stored", func() bool { return w.number(`SELECT count(*) FROM goals`) == 4 })
	a.Kill()

	b := w.start()
	var l listed
	b.Must("session/list", map[string]any{}, &l)
	titles := map[string]string{}
	for _, s := range l.Sessions {
		titles[s.SessionID] = s.Title
	}
	for _, s := range w.sessions() {
		if titles[s.SessionID] != s.Title {
			t.Errorf("the command line calls it %q, the editor %q", s.Title, titles[s.SessionID])
		}
	}
	for door, id := range by {
		if !strings.HasPrefix(titles[id], "Sort the attic.") || strings.Contains(titles[id], "\n") {
			t.Errorf("by %s: its title is %q", door, titles[id])
		}
	}
}

func must(t testing.TB, a *harness.Agent, method string, params any) json.RawMessage {
	t.Helper()
	var raw json.RawMessage
	a.Must(method, params, &raw)
	return raw
}

// An id that names no session is refused, whatever it looks like, while another session is at work, and nothing is made of it.
func TestFound_UnknownIDs(t *testing.T) {
	t.Parallel()
	free := make(chan struct{})
	w := newWorld(t, func(fakemodel.Request) fakemodel.Reply { return holding(free, "thinking") })
	a := w.start()
	known := a.NewSession(w.work)
	prompt := a.Prompt(known, "work")
	for _, id := range []string{"01234567-none", "", "../../etc/passwd", known + "x", known[:8], strings.ToUpper(known), "%", "'; DROP TABLE sessions; --", strings.Repeat("a", 1<<20)} {
		a.Notify("session/cancel", map[string]any{"sessionId": id})
		for _, method := range []string{"session/load", "session/resume", "session/prompt", "session/set_mode", "session/close"} {
			p := w.params(id)
			p["prompt"], p["modeId"] = []any{map[string]any{"type": "text", "text": "x"}}, "ask"
			if _, e := a.Call(method, p); e == nil || e.Code != -32002 && (id != "" || e.Code != -32602) {
				t.Errorf("%s of %.40q: %v", method, id, e)
			}
		}
	}
	if got := w.sessions(); len(got) != 1 || got[0].SessionID != known || got[0].State != "working" {
		t.Errorf("there are %+v", got)
	}
	close(free)
	if m := a.Await(prompt); m.Error != nil || !strings.Contains(string(m.Result), "end_turn") {
		t.Errorf("the other session ended with %s %v", m.Result, m.Error)
	}
	w.end(a)
}

// A session whose process died within its first prompt was stored: the next process shows the prompt, what had been said and where it was
// cut off, and goes on with it.
func TestFound_KilledInTheFirstPrompt(t *testing.T) {
	t.Parallel()
	free := make(chan struct{})
	defer close(free)
	var n atomic.Int64
	w := newWorld(t, func(fakemodel.Request) fakemodel.Reply {
		if n.Add(1) == 1 {
			return holding(free, "I begin with the roof. ")
		}
		return fakemodel.Text("The roof is done.")
	})
	a := w.start()
	session := a.NewSession(w.work)
	a.Prompt(session, "paint the house")
	harness.Eventually(t, "some of the answer is stored", func() bool {
		return w.number(`SELECT count(*) FROM items WHERE kind = 'agent' AND body LIKE '%begin with the roof%'`) == 1
	})
	a.Kill()
	if got := w.sessions(); len(got) != 1 || got[0].Title != "paint the house" || got[0].ReasonCode != "owner_lost" {
		t.Errorf("the list says %+v", got)
	}

	b := w.start()
	w.load(b, session)
	harness.Eventually(t, "it is finished", func() bool { return strings.Contains(b.Text(session), "The roof is done.") })
	var all strings.Builder
	for _, u := range b.Updates(session) {
		all.Write(u)
	}
	prompt, said, cut, done := strings.Index(all.String(), "paint the house"), strings.Index(all.String(), "I begin with the roof."),
		strings.Index(all.String(), "interrupted"), strings.Index(all.String(), "The roof is done.")
	if prompt < 0 || said < prompt || cut < said || done < cut {
		t.Errorf("the prompt is at %d, the answer at %d, its cut at %d, the end at %d: %s", prompt, said, cut, done, all.String())
	}
	if got := strings.Count(all.String(), `"text":"paint the house"`); got != 1 {
		t.Errorf("the prompt is shown %d times", got)
	}
	w.end(b)
}

// A session whose directory is gone is listed and can be read. It says what to do instead of working elsewhere or beginning anew, and goes
// on when the directory is back.
func TestFound_DirectoryIsGone(t *testing.T) {
	for _, again := range []string{"opened", "asked"} {
		t.Run(again+" again", func(t *testing.T) { t.Parallel(); directoryIsGone(t, again) })
	}
}

func directoryIsGone(t *testing.T, again string) {
	w := newWorld(t, func(r fakemodel.Request) fakemodel.Reply {
		return fakemodel.Text("you said: " + r.LastUser())
	})
	a := w.start()
	session := a.NewSession(w.work)
	w.turn(a, session, "remember the attic")
	w.end(a)
	away := w.work + "-away"
	if err := os.Rename(w.work, away); err != nil {
		t.Fatal(err)
	}

	b := w.start()
	for _, p := range []map[string]any{{}, {"cwd": w.work}} {
		var l listed
		if b.Must("session/list", p, &l); len(l.Sessions) != 1 || l.Sessions[0].SessionID != session || l.Sessions[0].Cwd != w.work {
			t.Errorf("listed with %v is %+v", p, l)
		}
	}
	w.load(b, session)
	if got := b.Text(session); !strings.Contains(got, "you said: remember the attic") {
		t.Errorf("the history is %q", got)
	}
	m := b.Await(b.Prompt(session, "where are we?"))
	if m.Error != nil || len(w.model.Requests()) != 1 {
		t.Fatalf("the prompt ended with %s %v after %d requests", m.Result, m.Error, len(w.model.Requests()))
	}
	if got := b.Text(session); !strings.Contains(got, "is not there. ("+w.work+")") || !strings.Contains(got, "another directory") {
		t.Errorf("it does not say what it waits for: %q", got)
	}
	if s := w.sessions(); len(s) != 1 || s[0].State != "waiting" || s[0].ReasonCode != "directory_missing" || fmt.Sprint(s[0].Allowed) != "[retry end]" {
		t.Errorf("the list says %+v", s)
	}
	if _, e := b.Call("session/new", map[string]any{"cwd": w.work, "mcpServers": []any{}}); e == nil || !strings.Contains(e.Message+string(e.Data), "does not exist") {
		t.Errorf("a new session in a directory that is not there: %v", e)
	}
	if _, err := os.Stat(w.work); err == nil {
		t.Error("the directory was made")
	}
	w.end(b)
	if out, errs, code := w.run("work"); code != 3 || !strings.Contains(out+errs, filepath.Base(w.work)) {
		t.Errorf("work ends with %d: %s%s", code, out, errs)
	}

	c := w.start()
	if again == "asked" {
		w.load(c, session)
	}
	if err := os.Rename(away, w.work); err != nil {
		t.Fatal(err)
	}
	if again == "asked" {
		w.turn(c, session, "and now?")
	} else {
		w.load(c, session)
	}
	harness.Eventually(t, "what was asked meanwhile is answered", func() bool { return strings.Contains(c.Text(session), "you said: where are we?") })
	if n := w.number(`SELECT count(*) FROM sessions`); n != 1 {
		t.Errorf("there are %d sessions", n)
	}
	w.end(c)
}
