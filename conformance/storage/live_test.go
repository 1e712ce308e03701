package storage_test

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"holdfast/conformance/fakemodel"
	"holdfast/conformance/harness"
)

// What happens to the store's file under a live process is named at the next change, nothing goes into a file that nobody will find, no
// empty store appears, and work goes on without a new process when the file is back.
func TestLive_StoreTakenAway(t *testing.T) {
	for name, c := range map[string]struct {
		take func(w *world) error
	}{
		"moved": {func(*world) error { return nil }},
		"replaced": {func(w *world) error {
			return os.WriteFile(w.db(), []byte(strings.Repeat("another file\n", 1000)), 0o600)
		}},
		"emptied": {func(w *world) error { return os.WriteFile(w.db(), nil, 0o600) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, nil)
			a := w.editor()
			id := w.talk(a, "first")
			aside := w.db() + ".aside"
			if err := os.Rename(w.db(), aside); err != nil {
				t.Fatal(err)
			}
			if err := c.take(w); err != nil {
				t.Fatal(err)
			}
			var refused *harness.Error
			harness.Eventually(t, "a change is refused", func() bool { // it is noticed within a second
				_, refused = a.Call("session/set_mode", map[string]any{"sessionId": id, "modeId": "edit"})
				return refused != nil
			})
			if code, action := codeOf(refused); code != "store_moved" || action == "" {
				t.Errorf("the change: %+v", refused)
			}
			if code, _ := codeOf(a.Await(a.Prompt(id, "lost?")).Error); code != "store_moved" {
				t.Errorf("the prompt is refused with %q", code)
			}
			if f, code := w.doctor(); code != 1 {
				t.Errorf("doctor ended with %d: %+v", code, f)
			} else {
				w.found(f, "store", "fault", "store_")
			}
			if out, code := w.run("sessions", "list"); code == 0 {
				t.Errorf("a listing of nothing: %s", out)
			}
			if err := os.Rename(aside, w.db()); err != nil {
				t.Fatal(err)
			}
			w.say(a, id, "again") // in the same process
			if show := w.want(0, "sessions", "show", id); !strings.Contains(show, "first") || !strings.Contains(show, "again") {
				t.Errorf("the history: %s", show)
			}
		})
	}
}

// A store that cannot be opened is tried again with the next request: the editor need not start the process anew.
func TestLive_GoesOnWhenTheFaultIsGone(t *testing.T) {
	w := newWorld(t, nil)
	a := w.editor()
	id := w.talk(a, "first")
	if err := a.CloseInput(); err != nil {
		t.Fatal(err)
	}
	aside := w.db() + ".aside"
	if err := os.Rename(w.db(), aside); err != nil {
		t.Fatal(err)
	}
	b := w.editor()
	_, e := b.Call("session/list", map[string]any{})
	if code, action := codeOf(e); code != "store_lost" || action == "" {
		t.Errorf("the list: %+v", e)
	}
	if _, err := os.Stat(w.db()); err == nil {
		t.Error("an empty store was made")
	}
	if err := os.Rename(aside, w.db()); err != nil {
		t.Fatal(err)
	}
	harness.Eventually(t, "the session opens", func() bool { return w.load(b, id) == nil })
	w.say(b, id, "second")
}

// Another program that holds SQLite's own lock holds up the work and loses none of it.
func TestLive_ForeignLock(t *testing.T) {
	var w *world
	release := make(chan func(), 1)
	w = newWorld(t, func(fakemodel.Request) fakemodel.Reply {
		select {
		case release <- w.hold():
		default:
		}
		return fakemodel.Text("I see.")
	})
	a := w.editor()
	id := a.NewSession(w.work)
	p := a.Prompt(id, "talk")
	letGo := <-release
	a.Must("session/list", map[string]any{}, nil) // reading goes on
	letGo()
	if m := a.Await(p); m.Error != nil {
		t.Error(m.Error)
	}
	if got := w.value(`SELECT body ->> 'text' FROM items WHERE kind = 'agent' AND session = ?1`, id); got != "I see." {
		t.Errorf("stored: %q", got)
	}
}

// hold takes SQLite's write lock as any other program may.
func (w *world) hold() (letGo func()) {
	db, err := sql.Open("sqlite3", "file:"+w.db()+"?_txlock=immediate&_busy_timeout=10000")
	if err != nil {
		w.t.Error(err)
		return func() {}
	}
	tx, err := db.Begin()
	if err != nil {
		w.t.Error(err)
		return func() {}
	}
	return func() { _, _ = tx.Rollback(), db.Close() }
}

// Eight servers on one store at once, each with a turn that makes calls: all of them come to their end, and none dies.
func TestLive_EightServersAtOnce(t *testing.T) {
	w := newWorld(t, func(r fakemodel.Request) fakemodel.Reply {
		if n := len(r.Results()); n < 3 {
			return shell(fmt.Sprintf("echo %d >> %s", n, strings.Fields(r.LastUser())[0]))
		}
		return fakemodel.Text("All three are there.")
	})
	var agents []*harness.Agent
	for range 8 {
		agents = append(agents, harness.Start(t, harness.Options{Binary: w.binary(), Env: w.env,
			Permission: func(json.RawMessage) string { return "allow_once" }}))
	}
	var prompts, ids []string
	for i, a := range agents {
		a.Initialize()
		ids = append(ids, a.NewSession(w.work))
		prompts = append(prompts, a.Prompt(ids[i], fmt.Sprintf("file%d is yours", i)))
	}
	for i, a := range agents {
		if m := a.Await(prompts[i]); m.Error != nil {
			t.Errorf("server %d: %v", i, m.Error)
		}
		if n := w.lines(fmt.Sprintf("file%d", i)); n != 3 {
			t.Errorf("server %d: %d of 3 calls", i, n)
		}
	}
	for i, a := range agents {
		if err := a.CloseInput(); err != nil || a.Stderr() != "" {
			t.Errorf("server %d ended with %v: %s", i, err, a.Stderr())
		}
	}
	if f, code := w.doctor("--deep"); code != 0 {
		t.Errorf("doctor ended with %d: %+v", code, f)
	}
}

// Each thing that doctor can find, in a store that has it, with the exit code and a next step.
func TestDoctor_EachFinding(t *testing.T) {
	for name, c := range map[string]struct {
		damage             func(w *world, id string)
		args               []string
		check, level, says string
		code               int
	}{
		"nothing": {func(*world, string) {}, []string{"--deep"}, "integrity", "ok", "every page, index and reference", 0},
		"an index that does not match": {func(w *world, _ string) {
			w.behind("items_open", `UPDATE items SET state = 'open' WHERE kind = 'agent'`)
		},
			[]string{"--deep"}, "index", "person", "items_open", 3},
		"a missing reference": {func(w *world, id string) {
			w.edit(`UPDATE items SET run = run, session = 'nobody' WHERE session = ?1 AND kind = 'agent'`, id)
		},
			[]string{"--deep"}, "records", "person", "not there", 3},
		"a gap in the log": {func(w *world, id string) { w.edit(`DELETE FROM events WHERE session = ?1 AND seq = 2`, id) },
			[]string{"--deep"}, "records", "person", "has a gap", 3},
		"a row that is not valid":  {func(w *world, id string) { w.edit(`UPDATE sessions SET mode = 'yolo' WHERE id = ?1`, id) }, nil, "record", "person", "malformed", 3},
		"a store that is no store": {func(w *world, _ string) { w.scribble(0, "this is not a database at all, not one bit of it") }, nil, "store", "fault", "store_", 1},
		"an open directory":        {func(w *world, _ string) { _ = os.Chmod(w.home, 0o755) }, nil, "directory", "note", "could read", 0},
		"a file system":            {func(*world, string) {}, nil, "filesystem", "ok", "local", 0},
		"copies": {func(w *world, _ string) {
			_ = os.Mkdir(filepath.Join(w.home, "backups"), 0o700)
			_ = os.WriteFile(filepath.Join(w.home, "backups", "holdfast-schema1-x.db"), nil, 0o600)
		}, nil, "backups", "ok", "1 copy", 0},
		"a check in the background": {func(w *world, _ string) {
			_ = os.WriteFile(filepath.Join(w.home, "check.json"), []byte(`{"at":"`+time.Now().UTC().Format(time.RFC3339)+`","fault":"page: Tree 5 is torn"}`), 0o600)
		}, nil, "integrity", "person", "Tree 5 is torn", 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, nil)
			a := w.editor()
			id := w.talk(a, "hello")
			if err := a.CloseInput(); err != nil {
				t.Fatal(err)
			}
			c.damage(w, id)
			all, code := w.doctor(c.args...)
			f := w.found(all, c.check, c.level, c.says)
			if code != c.code || f.Command == "" && (c.level == "person" || c.level == "fault") {
				t.Errorf("doctor ended with %d: %+v", code, f)
			}
			if c.check == "index" {
				w.want(0, "doctor", "--rebuild-indexes")
				w.want(0, "doctor", "--deep")
			}
		})
	}
}

// behind changes a table without one of its indexes.
func (w *world) behind(index, statement string) {
	w.t.Helper()
	db, err := sql.Open("sqlite3", w.db())
	if err != nil {
		w.t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	db.SetMaxOpenConns(1)
	var root int
	var text, table string
	if err := db.QueryRow(`SELECT rootpage, sql, tbl_name FROM sqlite_schema WHERE name = ?1`, index).Scan(&root, &text, &table); err != nil {
		w.t.Fatal(err)
	}
	for _, s := range []string{"PRAGMA writable_schema=ON", "DELETE FROM sqlite_schema WHERE name = '" + index + "'", "PRAGMA writable_schema=RESET", statement,
		"PRAGMA writable_schema=ON", fmt.Sprintf("INSERT INTO sqlite_schema VALUES ('index', '%s', '%s', %d, '%s')", index, table, root, strings.ReplaceAll(text, "'", "''"))} {
		if _, err := db.Exec(s); err != nil {
			w.t.Fatalf("%s: %v", s, err)
		}
	}
}

func (w *world) scribble(off int64, text string) {
	w.t.Helper()
	f, err := os.OpenFile(w.db(), os.O_RDWR, 0)
	if err != nil {
		w.t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	if _, err := f.WriteAt([]byte(text), off); err != nil {
		w.t.Fatal(err)
	}
}
