package effects_test

import (
	"os"
	"strings"
	"testing"

	"holdfast/conformance/fakemodel"
	"holdfast/conformance/harness"
)

// held cancels a call that the server still has. The outcome is unknown, and a late answer may still tell.
func held(t *testing.T, crash string) (*world, *harness.Agent, string, effect) {
	t.Helper()
	w := newWorld(t, nil)
	w.turns = map[string][]fakemodel.Call{"go": {tool("mcp__x__act", map[string]any{"do": "held", "n": 0, "text": w.path("release")})},
		"next": nil, "last": nil, "write": {writing("out", "out\n")}}
	a := w.launch(crash)
	session := w.open(a)
	id := a.Prompt(session, "go")
	harness.Eventually(t, "the server has the call", func() bool { return w.lines("x.calls") == 1 })
	a.Notify("session/cancel", map[string]any{"sessionId": session})
	if m := a.Await(id); !strings.Contains(string(m.Result), "cancelled") {
		t.Fatalf("the prompt ended with %s", m.Result)
	}
	w.prompt(a, session, "next")
	e := w.effects("mcp__x__act")
	if len(e) != 1 || e[0].Fact != "unknown" || e[0].Lookup != "late_answer" || !e[0].CanSettle {
		t.Fatalf("recorded %+v", e)
	}
	return w, a, session, e[0]
}

// An answer can only come to the process that sent the call: once that is gone, nothing will tell.
func TestLookup_NoLateAnswerAfterADeath(t *testing.T) {
	t.Parallel()
	w, a, session, e := held(t, "")
	if text, _ := w.holdfast(nil, "effects", "show", e.EffectID); !strings.Contains(text, "a late answer of the server may still tell") ||
		!strings.Contains(text, "it was cancelled, and the server did not say") {
		t.Errorf("it shows %s", text)
	}
	a.Kill()
	b := w.reopen(session)
	w.prompt(b, session, "last")
	if e := w.effects("mcp__x__act"); e[0].Fact != "unknown" || e[0].Lookup != "nothing" || len(e[0].Settlements) != 1 {
		t.Errorf("recorded %+v", e)
	}
	if text, _ := w.holdfast(nil, "effects", "show", e.EffectID); !strings.Contains(text, "it is for you to say") {
		t.Errorf("it shows %s", text)
	}
}

// The question about the next call says what is unknown, and why.
func TestUnknown_QuestionSaysWhy(t *testing.T) {
	t.Parallel()
	w, a, session, _ := held(t, "")
	w.prompt(a, session, "write")
	q := w.asked()
	if last := q[len(q)-1]; !strings.Contains(last, "it was cancelled, and the server did not say what became of it") || !strings.Contains(last, "x: act") ||
		!strings.Contains(last, "A late answer of the server may still tell.") {
		t.Errorf("asked %q", last)
	}
	if r := w.results(); !strings.Contains(r[0], "it was cancelled, and the server did not say what became of it") {
		t.Errorf("the model was told %q", r)
	}
}

// What really came of a call goes over a person's word: both are kept, the journal shows the real one, and it is said once.
func TestSettled_LateAnswerAfterAWord(t *testing.T) {
	for _, crash := range []string{"", "send.resolved:before", "send.resolved:after"} {
		t.Run(crash, func(t *testing.T) {
			t.Parallel()
			w, a, session, e := held(t, crash)
			if text, code := w.holdfast(nil, "effects", "settle", e.EffectID, "--did-not-happen", "--note", "I looked"); code != 0 {
				t.Fatal(text)
			}
			w.put("release", "")
			if crash != "" {
				_ = a.Wait()
				w.fired(crash)
				a = w.reopen(session)
			} else {
				harness.Eventually(t, "the answer is recorded", func() bool { return w.effects("mcp__x__act")[0].SettledBy == "receipt" })
			}
			w.prompt(a, session, "last")
			got := w.effects("mcp__x__act")[0]
			if crash == "send.resolved:before" { // it was lost with its process: the word stands
				if got.Fact != "not_started" || got.SettledBy != "person" || len(got.Settlements) != 2 {
					t.Errorf("recorded %+v", got)
				}
				return
			}
			want := []string{"unknown result", "not_started person", "completed receipt"}
			for i, s := range got.Settlements {
				if i >= len(want) || s.Fact+" "+s.SettledBy != want[i] || s.InstanceID == "" {
					t.Errorf("settlement %d is %+v", i, s)
				}
			}
			if got.Fact != "completed" || got.SettledBy != "receipt" || len(got.Settlements) != 3 || !strings.Contains(got.Settlements[1].Note, "I looked") ||
				got.Settlements[2].Evidence == "" {
				t.Errorf("recorded %+v", got)
			}
			if text, _ := w.holdfast(nil, "effects", "show", e.EffectID); !strings.Contains(text, "I looked") || !strings.Contains(text, "completed, by receipt") {
				t.Errorf("it shows %s", text)
			}
			w.prompt(a, session, "next")
			told := 0
			all := w.model.Requests()
			for _, m := range all[len(all)-1].Messages {
				told += strings.Count(m.Content, "the user said that it did not happen; a receipt says: it was answered")
			}
			if r := w.results(); told != 1 || r[0] != "held and answered" {
				t.Errorf("the model was told %d times, the result is %q", told, r)
			}
			b := w.reopen(session)
			harness.Eventually(t, "the session is shown", func() bool { return strings.Contains(b.Text(session), "done next") })
			if n := strings.Count(b.Text(session), "the user said that it did not happen"); n != 1 {
				t.Errorf("the user was told %d times: %s", n, b.Text(session))
			}
			if n := w.lines("x.calls"); n != 1 {
				t.Errorf("the call reached the server %d times", n)
			}
		})
	}
}

// A file that cannot be looked at is looked at again before anything is asked.
func TestLookup_FileIsLookedAtAgain(t *testing.T) {
	for _, crash := range []string{"", "effect.looked_up:before", "effect.looked_up:after"} {
		t.Run(crash, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, map[string][]fakemodel.Call{"go": {editing("d/f")}, "blind": {writing("out", "out\n")}, "seeing": {writing("out", "out\n")}})
			w.must(os.Mkdir(w.path("work/d"), 0o755))
			w.must(os.Mkdir(w.path("work/e"), 0o755))
			w.put("work/d/f", "old\n")
			session := w.die("tools.renamed", "go")
			w.must(os.Remove(w.path("fired")))
			w.must(os.Rename(w.path("work/d"), w.path("work/away")))
			w.must(os.Symlink("e", w.path("work/d")))
			w.choose = func(q string) string {
				if strings.Contains(q, "unknown") {
					return "reject_once"
				}
				return "allow_once"
			}
			a := w.launch(crash)
			a.Must("session/load", w.params(session), nil)
			w.prompt(a, session, "blind")
			q := w.asked()
			if last := q[len(q)-1]; len(q) != 2 || !strings.Contains(last, "a link was put in its way") || !strings.Contains(last, "looked at again") {
				t.Errorf("asked %q", q)
			}
			if e := w.effects("edit"); e[0].Fact != "unknown" || e[0].Lookup != "file" || w.read("work/out") == "out\n" {
				t.Errorf("recorded %+v", e)
			}
			w.must(os.Remove(w.path("work/d")))
			w.must(os.Rename(w.path("work/away"), w.path("work/d")))
			id := a.Prompt(session, "seeing")
			if crash == "" {
				a.Await(id)
			} else {
				_ = a.Wait()
				w.fired(crash)
				a = w.reopen(session)
			}
			said(t, a, session, "done seeing")
			if q := w.asked(); len(q) != 3 || strings.Contains(q[2], "unknown") {
				t.Errorf("asked %q", q)
			}
			e := w.effects("edit")[0]
			if e.Fact != "completed" || e.SettledBy != "probe" || len(e.Settlements) != 2 || e.Lookup != "" || w.read("work/out") != "out\n" {
				t.Errorf("recorded %+v", e)
			}
			if r := w.results(); len(r) != 3 || !strings.Contains(r[0], "proven by its digest") {
				t.Errorf("the model was told %q", r)
			}
			w.clean()
		})
	}
}
