package storage_test

import (
	"encoding/json"
	"strings"
	"testing"

	"holdfast/conformance/fakemodel"
	"holdfast/conformance/harness"
)

// listed is what the listing says of a session.
type listed struct{ SessionID, State, ReasonCode, Cwd string }

func (w *world) list() map[string]listed {
	w.t.Helper()
	var all []listed
	if err := json.Unmarshal([]byte(w.want(0, "sessions", "list", "--json")), &all); err != nil {
		w.t.Fatal(err)
	}
	out := map[string]listed{}
	for _, s := range all {
		out[s.SessionID] = s
	}
	return out
}

// busy answers with a command that is held, and then with a word.
func busy(r fakemodel.Request) fakemodel.Reply {
	if len(r.Results()) == 0 && strings.Contains(r.LastUser(), "work") {
		return shell("echo run >> counter; touch begun; while [ ! -e go ]; do sleep 0.02; done")
	}
	return fakemodel.Text("I see.")
}

// A record that is not valid costs its own session and nothing else: the list is whole, the others work, the session is shown with its
// code, nothing of it is executed, the user can stop it, and what was stored stays as it was.
func TestRecord_NotValidCostsItsOwnSession(t *testing.T) {
	for name, c := range map[string]struct {
		change string // of the session ?1, in which a command was running
		keeps  string // what must not change
		hidden bool   // nothing of it is seen before the session is used
	}{
		"the history, no JSON":    {`UPDATE items SET body = '{"text":' WHERE session = ?1 AND kind = 'user'`, `SELECT body FROM items WHERE session = ?1 AND kind = 'user'`, true},
		"the history, other JSON": {`UPDATE items SET body = '["x"]' WHERE session = ?1 AND kind = 'user'`, `SELECT body FROM items WHERE session = ?1 AND kind = 'user'`, true},
		"an open entry":           {`UPDATE items SET body = '{}' WHERE session = ?1 AND kind = 'tool'`, `SELECT body FROM items WHERE session = ?1 AND kind = 'tool'`, true},
		"a kind nobody knows":     {`UPDATE items SET kind = 'song' WHERE session = ?1 AND kind = 'user'`, `SELECT body FROM items WHERE session = ?1 AND kind = 'song'`, true},
		"the input":               {`UPDATE runs SET input = '{' WHERE session = ?1`, `SELECT input FROM runs WHERE session = ?1`, false},
		"what is wanted":          {`UPDATE runs SET kind = 'dance' WHERE session = ?1`, `SELECT kind FROM runs WHERE session = ?1`, false},
		"the plan of a call":      {`UPDATE effects SET plan = 'x' WHERE session = ?1`, `SELECT plan FROM effects WHERE session = ?1`, true},
		"the class of a call":     {`UPDATE effects SET class = 'harmless' WHERE session = ?1`, `SELECT class FROM effects WHERE session = ?1`, true},
		"the directories":         {`UPDATE sessions SET roots = '[' WHERE id = ?1`, `SELECT roots FROM sessions WHERE id = ?1`, false},
		"no directories":          {`UPDATE sessions SET roots = '[]' WHERE id = ?1`, `SELECT roots FROM sessions WHERE id = ?1`, false},
		"the mode":                {`UPDATE sessions SET mode = 'yolo' WHERE id = ?1`, `SELECT mode FROM sessions WHERE id = ?1`, false},
		"the profile":             {`UPDATE sessions SET profile = 'nothing' WHERE id = ?1`, `SELECT profile FROM sessions WHERE id = ?1`, false},
		"an attempt's state":      {`UPDATE attempts SET state = 'lost' WHERE run IN (SELECT id FROM runs WHERE session = ?1)`, `SELECT state FROM attempts`, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, busy)
			a := w.editor()
			broken := a.NewSession(w.work)
			a.Prompt(broken, "work")
			harness.Eventually(t, "the command runs", func() bool { return w.has("begun") })
			sound := w.talk(a, "hello")
			a.Kill()
			w.put("go")
			w.edit(c.change, broken)
			before := w.value(c.keeps, broken)

			b := w.editor()
			w.say(b, w.talk(b, "a new one"), "and more")
			if e := w.load(b, sound); e != nil {
				t.Fatalf("the sound session: %v", e)
			}
			w.say(b, sound, "still there?")
			harness.Eventually(t, "the session is shown as malformed", func() bool { return w.list()[broken].ReasonCode == "malformed" })
			all := w.list()
			if len(all) != 3 || all[sound].ReasonCode != "" {
				t.Errorf("the list: %+v", all)
			}
			if n := w.lines("counter"); n != 1 {
				t.Errorf("the command ran %d times", n)
			}
			if e := w.load(b, broken); e != nil {
				t.Errorf("the history cannot be opened: %v", e)
			} else if text := b.Text(broken); strings.Contains(c.change, "UPDATE items") && !strings.Contains(text, "[An entry of the history is not valid") {
				t.Errorf("nothing stands in the place of the entry: %q", text)
			}
			show := w.want(0, "sessions", "show", broken)
			if !strings.Contains(show, "malformed") {
				t.Errorf("sessions show: %s", show)
			}
			f, code := w.doctor("--deep")
			if found := w.found(f, "record", "person", broken); code != 3 || found.Command == "" {
				t.Errorf("doctor ended with %d: %+v", code, found)
			}
			w.want(0, "stop", broken)
			harness.Eventually(t, "it was stopped", func() bool {
				return w.value(`SELECT count(*) FROM runs WHERE session = ?1 AND desired = 'run' AND phase <> 'ended'`, broken) == "0"
			})
			if err := b.CloseInput(); err != nil || b.Stderr() != "" {
				t.Errorf("ended with %v, stderr %q", err, b.Stderr())
			}
			if after := w.value(c.keeps, broken); after != before {
				t.Errorf("what was stored became %q, was %q", after, before)
			}
			if n := w.lines("counter"); n != 1 {
				t.Errorf("the command ran %d times", n)
			}
		})
	}
}

// A prompt in a session whose history has a hole is answered with the reason, and the model is not asked: it must not go on from something
// that it cannot see.
func TestRecord_PromptIsAnsweredWithTheReason(t *testing.T) {
	w := newWorld(t, nil)
	a := w.editor()
	id := w.talk(a, "hello")
	if err := a.CloseInput(); err != nil {
		t.Fatal(err)
	}
	w.edit(`UPDATE items SET body = '{"text":' WHERE session = ?1 AND kind = 'agent'`, id)
	asked := len(w.model.Requests())
	b := w.editor()
	if e := w.load(b, id); e != nil {
		t.Fatal(e)
	}
	w.say(b, id, "go on")
	if text := b.Text(id); !strings.Contains(text, "A record of this session is not valid.") {
		t.Errorf("the user was told %q", text)
	}
	if n := len(w.model.Requests()); n != asked {
		t.Errorf("the model was asked %d times", n-asked)
	}
	w.talk(b, "elsewhere")
}

// pursued answers as a worker that is held in a command.
func pursued(r fakemodel.Request) fakemodel.Reply {
	if len(r.Results()) == 0 && !strings.Contains(r.LastUser(), "hello") && !strings.Contains(r.LastUser(), "still") {
		return shell("echo run >> counter; touch begun; while [ ! -e go ]; do sleep 0.02; done")
	}
	return fakemodel.Text("Nothing more.")
}

// The same of a goal: it is listed with the others, does not go on, and can be stopped.
func TestRecord_GoalThatIsNotValid(t *testing.T) {
	for name, c := range map[string]struct{ change, keeps string }{
		"the grants":      {`UPDATE goals SET grants = '[[' WHERE session = ?1`, `SELECT grants FROM goals WHERE session = ?1`},
		"the status":      {`UPDATE goals SET status = 'glorious' WHERE session = ?1`, `SELECT status FROM goals WHERE session = ?1`},
		"the requirement": {`UPDATE requirements SET evidence = '{}' WHERE goal IN (SELECT id FROM goals WHERE session = ?1)`, `SELECT evidence FROM requirements LIMIT 1`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, pursued)
			a := w.editor()
			broken, sound := a.NewSession(w.work), w.talk(a, "hello")
			a.Must("create_goal", map[string]any{"sessionId": broken, "objective": "Do it."}, nil)
			harness.Eventually(t, "the command runs", func() bool { return w.has("begun") })
			a.Kill()
			w.put("go")
			w.edit(c.change, broken)
			before := w.value(c.keeps, broken)
			b := w.editor()
			if e := w.load(b, sound); e != nil {
				t.Fatal(e)
			}
			w.say(b, sound, "still there?")
			harness.Eventually(t, "the session waits", func() bool { return w.list()[broken].ReasonCode == "malformed" })
			if out := w.want(0, "goals", "list"); !strings.Contains(out, "malformed") {
				t.Errorf("the goals: %s", out)
			}
			f, code := w.doctor()
			if w.found(f, "record", "person", broken); code != 3 {
				t.Errorf("doctor ended with %d", code)
			}
			w.want(0, "stop", broken)
			harness.Eventually(t, "it was stopped", func() bool {
				return w.value(`SELECT count(*) FROM runs WHERE session = ?1 AND desired = 'run' AND phase <> 'ended'`, broken) == "0"
			})
			if after := w.value(c.keeps, broken); after != before || w.lines("counter") != 1 {
				t.Errorf("stored: %q, was %q; the command ran %d times", after, before, w.lines("counter"))
			}
		})
	}
}
