package history_test

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"holdfast/conformance/fakemodel"
	"holdfast/conformance/harness"
)

const (
	large   = 11_000_000 // bytes of one result
	allowed = 100_000    // bytes that a model or a client gets of one, and more than it does
)

// What a long session may cost a process over a short one, in MB. It is far from what it would cost to hold it.
const slack = 60

// prints is a command that prints so much, and no two the same.
func prints(n int) string {
	return fmt.Sprintf("head -c %d /dev/zero | tr '\\0' %c; echo end of %d", large, 'a'+n, n)
}

// Results of many megabytes are kept apart from the history: the model and a replay get their beginning and their end with the way to the
// whole, which can be fetched, and neither a later prompt nor a later launch carries them.
func TestLarge_ResultsAreKeptApart(t *testing.T) {
	t.Parallel()
	const calls = 20
	w := newWorld(t, func(r fakemodel.Request) fakemodel.Reply {
		if n := len(r.Results()); n < calls && r.LastUser() == "go" {
			return fakemodel.Calls(shell(prints(n)))
		}
		return fakemodel.Text("done")
	})
	a := w.start()
	session := a.NewSession(w.work)
	w.turn(a, session, "go")
	w.end(a)
	if n := w.number(`SELECT max(octet_length(body)) FROM items`); n > allowed {
		t.Errorf("an entry of the history holds %d bytes", n)
	}
	if n := w.number(`SELECT page_count * page_size FROM pragma_page_count, pragma_page_size`); n > large {
		t.Errorf("the store has %d bytes", n)
	}
	for i, m := range w.model.Requests() {
		if len(m.Body) > (i+1)*allowed {
			t.Errorf("request %d has %d bytes", i+1, len(m.Body))
		}
	}

	b := w.start()
	w.load(b, session)
	for _, u := range b.Updates(session) {
		if len(u) > allowed {
			t.Errorf("an update of %d bytes: %.100s", len(u), u)
		}
	}
	w.turn(b, session, "and now?")
	results := w.model.Requests()[calls+1].Results()
	if len(results) != calls {
		t.Fatalf("the model got %d results", len(results))
	}
	effects := decode[[]struct{ EffectID string }](t, w.want("effects", "list", "--limit", "0", "--json"))
	for i, r := range results {
		id := effects[calls-1-i].EffectID // the newest is first
		if !strings.HasPrefix(r.Content, strings.Repeat(string(rune('a'+i)), 100)) || !strings.Contains(r.Content, fmt.Sprintf("end of %d\n", i)) ||
			!strings.Contains(r.Content, "holdfast effects output "+id) {
			t.Errorf("result %d is %.200s ... %s", i, r.Content, r.Content[max(0, len(r.Content)-300):])
		}
		if i%7 != 0 {
			continue
		}
		whole, want := w.want("effects", "output", id), strings.Repeat(string(rune('a'+i)), large)+fmt.Sprintf("end of %d\n", i)
		if sha256.Sum256([]byte(whole)) != sha256.Sum256([]byte(want)) {
			t.Errorf("the whole result %d has %d bytes, not %d", i, len(whole), len(want))
		}
	}
	w.end(b)
}

// An edit of a large file shows what differs; both contents are kept once, and an undo gives the old one back, also after a restart.
func TestLarge_FilesAreKeptApart(t *testing.T) {
	t.Parallel()
	const edits = 5
	w := newWorld(t, func(r fakemodel.Request) fakemodel.Reply {
		if n := len(r.Results()); n < edits {
			return fakemodel.Calls(fakemodel.Call{Name: "edit", Args: encode(map[string]any{"path": "big.txt",
				"edits": []any{map[string]any{"old": fmt.Sprintf("line %d of it\n", 100_000+n), "new": fmt.Sprintf("changed %d\n", n)}}})})
		}
		return fakemodel.Text("done")
	})
	var text strings.Builder
	for i := range 600_000 {
		fmt.Fprintf(&text, "line %d of it\n", i)
	}
	path, before := filepath.Join(w.work, "big.txt"), text.String()
	if err := os.WriteFile(path, []byte(before), 0o600); err != nil {
		t.Fatal(err)
	}
	var asked int
	a := w.asking(func(params json.RawMessage) string {
		if asked++; len(params) > allowed {
			t.Errorf("a question of %d bytes", len(params))
		}
		return "allow_once"
	})
	session := a.NewSession(w.work)
	w.turn(a, session, "edit it")
	if b, err := os.ReadFile(path); err != nil || !strings.Contains(string(b), "line 99999 of it\nchanged 0\nchanged 1\n") || asked != edits {
		t.Fatalf("%d bytes, %d questions, %v", len(b), asked, err)
	}
	for _, u := range a.Updates(session) {
		if len(u) > allowed {
			t.Errorf("an update of %d bytes", len(u))
		}
	}
	if all := fmt.Sprintf("%s", a.Updates(session)); !strings.Contains(all, `"oldText":"line 99997 of it`) || !strings.Contains(all, `"newText":"line 99997 of it`) {
		t.Error("the diff does not show what was changed")
	}
	w.end(a)
	if n := w.number(`SELECT max(max(octet_length(body)), (SELECT max(octet_length(plan)) FROM effects)) FROM items`); n > allowed {
		t.Errorf("a record holds %d bytes", n)
	}
	if n := w.number(`SELECT count(*) FROM contents`); n != edits+1 {
		t.Errorf("%d contents are kept of %d", n, edits+1)
	}
	w.want("sessions", "undo", session)
	b := w.start()
	w.load(b, session)
	harness.Eventually(t, "the file is as it was", func() bool { got, err := os.ReadFile(path); return err == nil && string(got) == before })
	w.end(b)
}

// grow makes a session long with rows as older versions wrote them, with both contents of a file in each: it copies the one call that the
// session holds. It returns the titles in order.
func (w *world) grow(session string, rows, bytes int) (titles []string) {
	w.t.Helper()
	db := w.open()
	defer func() { _ = db.Close() }()
	tx, err := db.Begin()
	if err != nil {
		w.t.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }()
	var last int
	var body string
	if err := tx.QueryRow(`SELECT s.last_seq, i.body FROM sessions s JOIN items i ON i.session = s.id WHERE s.id = ? AND i.kind = 'tool'`, session).Scan(&last, &body); err != nil {
		w.t.Fatal(err)
	}
	half := strings.Repeat("0123456789abcde\n", bytes/32)
	for n := range rows {
		var v map[string]any
		if err := json.Unmarshal([]byte(body), &v); err != nil {
			w.t.Fatal(err)
		}
		tool := v["tool"].(map[string]any)
		titles = append(titles, fmt.Sprintf("Edit number %d.", n))
		v["response"], tool["callId"], tool["title"] = fmt.Sprintf("answer %d", n), fmt.Sprintf("call %d", n), titles[n]
		tool["output"] = map[string]any{"text": strings.Repeat("a line of it\n", 7000), "isError": false}
		tool["files"] = []any{map[string]any{"path": "/f", "before": "sha256:1", "after": "sha256:2", "oldText": half + "old", "newText": half + "new"}}
		if _, err := tx.Exec(`INSERT INTO items (id, session, seq, thread, run, attempt, kind, state, body, created_at)
			SELECT ?, session, ?, thread, run, attempt, kind, state, ?, created_at FROM items WHERE session = ? AND kind = 'tool' ORDER BY seq LIMIT 1`,
			fmt.Sprintf("grown-%06d", n), last+1+n, encode(v), session); err != nil {
			w.t.Fatal(err)
		}
	}
	if _, err := tx.Exec(`UPDATE sessions SET last_seq = ? WHERE id = ?`, last+rows, session); err != nil {
		w.t.Fatal(err)
	}
	if err := tx.Commit(); err != nil {
		w.t.Fatal(err)
	}
	return titles
}

// A session of a hundred megabytes is listed, replayed whole and in order, and prompted by a process that is not larger than one with a
// session of ten.
func TestLarge_MemoryDoesNotFollowTheHistory(t *testing.T) {
	peaks := map[int]int{}
	for _, rows := range []int{10, 100} {
		w := newWorld(t, func(r fakemodel.Request) fakemodel.Reply {
			if r.LastUser() == "go" && len(r.Results()) == 0 {
				return fakemodel.Calls(fakemodel.Call{Name: "write", Args: encode(map[string]string{"path": "f", "content": "x\n"})})
			}
			return fakemodel.Text("done")
		})
		a := w.start()
		session := a.NewSession(w.work)
		w.turn(a, session, "go")
		w.end(a)
		titles := w.grow(session, rows, 1<<20)

		b := w.start()
		var l listed
		b.Must("session/list", map[string]any{}, &l)
		if len(l.Sessions) != 1 || l.Sessions[0].SessionID != session {
			t.Errorf("listed is %+v", l)
		}
		w.load(b, session)
		var shown []string
		for _, raw := range b.Updates(session) {
			u := decode[struct{ Title, Status string }](t, raw)
			if strings.HasPrefix(u.Title, "Edit number") {
				shown = append(shown, u.Title)
			}
			if len(raw) > allowed {
				t.Errorf("an update of %d bytes", len(raw))
			}
		}
		if strings.Join(shown, "") != strings.Join(titles, "") {
			t.Errorf("%d calls of %d are shown, or in another order: %v", len(shown), len(titles), shown)
		}
		w.turn(b, session, "and now?")
		reqs := w.model.Requests()
		last := reqs[len(reqs)-1]
		if len(last.Results()) != rows+1 || len(last.Body) > 5_000_000 {
			t.Errorf("the model got %d results in %d bytes", len(last.Results()), len(last.Body))
		}
		old, newest := last.Results()[1].Content, last.Results()[rows].Content
		if len(newest) != 13*7000 || rows == 10 && len(old) != 13*7000 || rows == 100 && (len(old) > 2000 || !strings.Contains(old, "holdfast effects output ")) {
			t.Errorf("of %d results the oldest has %d bytes and the newest %d", rows, len(old), len(newest))
		}
		peaks[rows] = peak(t, b.PID())
		w.end(b)
	}
	t.Logf("peaks by megabytes of history: %v MB", peaks)
	if peaks[100] > peaks[10]+slack {
		t.Errorf("a history ten times as long costs %d MB instead of %d", peaks[100], peaks[10])
	}
}
