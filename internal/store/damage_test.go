package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const indexedSQL = `CREATE TABLE notes (id INTEGER PRIMARY KEY, at INTEGER NOT NULL, body TEXT NOT NULL CHECK (json_valid(body))) STRICT;
CREATE INDEX notes_at ON notes (at);
CREATE TABLE tags (name TEXT PRIMARY KEY, note INTEGER NOT NULL REFERENCES notes (id)) STRICT;`

// noted makes a store with n rows and an index over them.
func noted(t testing.TB, n int) (home string) {
	t.Helper()
	home = newHome(t)
	d := open(t, options(home, indexedSQL))
	must(t, d.Commit(context.Background(), "test", func(tx *sql.Tx) error {
		for i := range n {
			if _, err := tx.Exec(`INSERT INTO notes (at, body) VALUES (?, ?)`, i*7919%100003, fmt.Sprintf(`{"text":"note %d %s"}`, i, strings.Repeat("x", 40))); err != nil {
				return err
			}
			if _, err := tx.Exec(`INSERT INTO tags (name, note) VALUES (?, ?)`, fmt.Sprintf("tag %d", i), i+1); err != nil {
				return err
			}
		}
		return nil
	}))
	must(t, d.Close())
	return home
}

// raw changes a closed store behind Holdfast's back.
func raw(t testing.TB, home string, statements ...string) {
	t.Helper()
	db, err := sql.Open("sqlite3", home+"/holdfast.db")
	must(t, err)
	db.SetMaxOpenConns(1)
	for _, s := range append([]string{"PRAGMA ignore_check_constraints=ON", "PRAGMA writable_schema=ON"}, statements...) {
		if _, err := db.Exec(s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
	must(t, db.Close())
}

// behind changes a table without its index.
func behind(t testing.TB, home, statement string) {
	t.Helper()
	var text string
	db, err := sql.Open("sqlite3", home+"/holdfast.db")
	must(t, err)
	must(t, db.QueryRow("SELECT sql FROM sqlite_schema WHERE name = 'notes_at'").Scan(&text))
	must(t, db.Close())
	page, _ := pageOf(t, home, "notes_at")
	raw(t, home, "DELETE FROM sqlite_schema WHERE name = 'notes_at'", "PRAGMA writable_schema=RESET", statement,
		"PRAGMA writable_schema=ON", fmt.Sprintf("INSERT INTO sqlite_schema VALUES ('index', 'notes_at', 'notes', %d, '%s')", page, text))
}

// pageOf returns the number of the first page of a table or an index, and the size of pages.
func pageOf(t testing.TB, home, name string) (page, size int64) {
	t.Helper()
	db, err := sql.Open("sqlite3", home+"/holdfast.db")
	must(t, err)
	must(t, db.QueryRow("SELECT rootpage FROM sqlite_schema WHERE name = ?", name).Scan(&page))
	must(t, db.QueryRow("PRAGMA page_size").Scan(&size))
	must(t, db.Close())
	return page, size
}

func scribble(t testing.TB, path string, off int64, b []byte) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	must(t, err)
	_, err = f.WriteAt(b, off)
	must(t, errors.Join(err, f.Close()))
}

func notes(t testing.TB, d *DB) (byTable, byIndex int) {
	t.Helper()
	must(t, d.Read(context.Background(), func(tx *sql.Tx) error {
		return errors.Join(tx.QueryRow(`SELECT count(*) FROM notes NOT INDEXED WHERE id > 0`).Scan(&byTable),
			tx.QueryRow(`SELECT count(*) FROM notes INDEXED BY notes_at WHERE at >= 0`).Scan(&byIndex))
	}))
	return byTable, byIndex
}

// Damage to an index alone costs nothing: it is made anew from the records when the store is opened, or by doctor.
func TestDamage_IndexIsMadeAnew(t *testing.T) {
	const rows = 3000
	for name, c := range map[string]struct {
		deep   bool // only a full check sees it
		damage func(t *testing.T, home string)
	}{
		"a page of noise": {false, func(t *testing.T, home string) {
			page, size := pageOf(t, home, "notes_at")
			scribble(t, home+"/holdfast.db", (page-1)*size, slices.Repeat([]byte{0xa5}, int(size)))
		}},
		"a hole in a page": {false, func(t *testing.T, home string) {
			page, size := pageOf(t, home, "notes_at")
			scribble(t, home+"/holdfast.db", (page-1)*size+8, make([]byte, 64))
		}},
		"a row that it does not have": {false, func(t *testing.T, home string) { behind(t, home, `INSERT INTO notes (at, body) VALUES (1, '{}')`) }},
		"a row that moved":            {true, func(t *testing.T, home string) { behind(t, home, `UPDATE notes SET at = at + 500000 WHERE id = 5`) }},
	} {
		t.Run(name, func(t *testing.T) {
			home := noted(t, rows)
			c.damage(t, home)
			d := open(t, options(home, indexedSQL))
			if c.deep {
				faults, err := d.Check(context.Background(), true)
				if err != nil || worst(faults) != FaultIndex {
					t.Fatalf("the full check says %v (%v)", faults, err)
				}
				names, err := d.Rebuild(context.Background())
				if err != nil || !slices.Equal(names, []string{"notes_at"}) {
					t.Fatalf("rebuilt %v: %v", names, err)
				}
			}
			if byTable, byIndex := notes(t, d); byTable < rows || byTable != byIndex {
				t.Errorf("%d rows, %d in the index", byTable, byIndex)
			}
			faults, err := d.Check(context.Background(), true)
			if w := worst(faults); err != nil || w != "" && w != FaultUnused {
				t.Errorf("afterwards: %v (%v)", faults, err)
			}
			must(t, d.Close())
			again := open(t, options(home, indexedSQL)) // and it stays so
			if byTable, byIndex := notes(t, again); byTable != byIndex {
				t.Errorf("%d rows, %d in the index", byTable, byIndex)
			}
		})
	}
}

// A row that breaks a rule of the schema is that row's trouble: the store opens, and a check names it.
func TestDamage_RowThatIsNotValidKeepsNothingClosed(t *testing.T) {
	home := noted(t, 10)
	raw(t, home, `UPDATE notes SET body = '{"text":' WHERE id = 3`)
	d := open(t, options(home, indexedSQL))
	faults, err := d.Check(context.Background(), false)
	if err != nil || worst(faults) != FaultRow {
		t.Errorf("the check says %v (%v)", faults, err)
	}
	must(t, d.Commit(context.Background(), "test", func(tx *sql.Tx) error {
		_, err := tx.Exec(`UPDATE notes SET body = '{}' WHERE id = 4`)
		return err
	}))
}

func TestDamage_MissingReferenceIsNamed(t *testing.T) {
	home := noted(t, 10)
	raw(t, home, `DELETE FROM notes WHERE id = 3`)
	faults, err := open(t, options(home, indexedSQL)).Check(context.Background(), true)
	if err != nil || worst(faults) != FaultReference {
		t.Errorf("the check says %v (%v)", faults, err)
	}
}

// cloneHome copies the state of a closed store.
func cloneHome(t testing.TB, home string) string {
	t.Helper()
	to := newHome(t)
	must(t, os.MkdirAll(to, 0o700))
	must(t, filepath.WalkDir(home, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || strings.HasSuffix(path, ".lock") || strings.HasSuffix(path, "-shm") {
			return err
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(to, filepath.Base(path)), b, 0o600)
	}))
	return to
}

// wholeOrNamed opens a damaged store and wants either every row as it was or a named state, with the file as it was.
func wholeOrNamed(t *testing.T, home string, rows int, allowed ...string) (code string) {
	t.Helper()
	before, err := os.ReadFile(home + "/holdfast.db")
	must(t, err)
	d, err := Open(context.Background(), options(home, indexedSQL))
	if err != nil {
		code := CodeOf(err)
		if !slices.Contains(allowed, code) {
			t.Errorf("opening says %s: %v", code, err)
		}
		var e *OpenError
		if !errors.As(err, &e) || e.Message == "" || e.Action == "" {
			t.Errorf("opening says nothing to a person: %v", err)
		}
		if after, err := os.ReadFile(home + "/holdfast.db"); err != nil || string(after) != string(before) {
			t.Errorf("a damaged store was changed (%v)", err)
		}
		return code
	}
	defer func() { must(t, d.Close()) }()
	n := 0
	err = d.Read(context.Background(), func(tx *sql.Tx) error { return tx.QueryRow(`SELECT count(*) FROM notes NOT INDEXED`).Scan(&n) })
	if err != nil || n != rows {
		t.Errorf("it opened with %d of %d rows: %v", n, rows, err)
	}
	return ""
}

// Bits flipped all over the file: it opens whole, or says that it is damaged and is left alone. It never opens with less in it.
func TestDamage_FlippedBits(t *testing.T) {
	const rows = 400
	home := noted(t, rows)
	info, err := os.Stat(home + "/holdfast.db")
	must(t, err)
	said := map[string]int{}
	stride := info.Size()/150 + 1
	if os.Getenv("HOLDFAST_CRASH_LONG") != "" {
		stride = 97
	}
	for off := int64(0); off < info.Size(); off += stride {
		one := cloneHome(t, home)
		b, err := os.ReadFile(one + "/holdfast.db")
		must(t, err)
		bit := byte(1) << (off % 8)
		scribble(t, one+"/holdfast.db", off, []byte{b[off] ^ bit})
		said[wholeOrNamed(t, one, rows, CodeCorrupt, CodeLost, CodeNewer, CodeMismatch, CodeLibrary)]++
		if t.Failed() {
			t.Fatalf("bit %d of byte %d", off%8, off)
		}
	}
	t.Logf("every %d bytes of %d: %v", stride, info.Size(), said)
	if said[CodeCorrupt] == 0 || said[""] == 0 {
		t.Errorf("the flips show nothing: %v", said)
	}
}

// A store cut off at any place is damaged, and never an empty one.
func TestDamage_CutFile(t *testing.T) {
	const rows = 400
	home := noted(t, rows)
	info, err := os.Stat(home + "/holdfast.db")
	must(t, err)
	for i := range int64(41) {
		one := cloneHome(t, home)
		must(t, os.Truncate(one+"/holdfast.db", info.Size()*i/41))
		if code := wholeOrNamed(t, one, rows, CodeCorrupt, CodeLost); code == "" {
			t.Errorf("a store cut to %d of %d bytes opens", info.Size()*i/41, info.Size())
		}
	}
}

func init() { roles["three commits"] = threeCommits }

// threeCommits leaves its last three commits in the log, and dies.
func threeCommits(home string, _ []string) error {
	d, err := Open(context.Background(), options(home, indexedSQL))
	if err != nil {
		return err
	}
	for i := range 3 {
		if err := d.Commit(context.Background(), "test", func(tx *sql.Tx) error {
			_, err := tx.Exec(`INSERT INTO notes (id, at, body) VALUES (?, ?, '{}')`, 1000+i, i)
			return err
		}); err != nil {
			return err
		}
		info, err := os.Stat(home + "/holdfast.db-wal")
		if err != nil {
			return err
		}
		say(fmt.Sprint(info.Size()))
	}
	hear()
	return nil
}

// The log cut at any byte of the last three commits opens at the last complete one: everything before it is there, nothing is there by
// half, and nothing fails.
func TestDamage_CutLogOpensAtTheLastCompleteCommit(t *testing.T) {
	const rows = 50
	home := noted(t, rows)
	c := start(t, "three commits", home)
	var ends []int64
	for range 3 {
		text, err := c.out.ReadString('\n')
		must(t, err)
		var n int64
		_, err = fmt.Sscan(text, &n)
		must(t, err)
		ends = append(ends, n)
	}
	c.kill()
	if ends[0] >= ends[1] || ends[1] >= ends[2] {
		t.Fatalf("the log does not grow: %v", ends)
	}
	step := (ends[2] - 32) / 100
	if os.Getenv("HOLDFAST_CRASH_LONG") != "" {
		step = 1
	}
	cuts := []int64{0, 1, 31, 32, ends[0] - 1, ends[0], ends[1] - 1, ends[1], ends[2] - 1, ends[2]}
	for cut := int64(0); cut < ends[2]; cut += step {
		cuts = append(cuts, cut)
	}
	for _, cut := range cuts {
		one := cloneHome(t, home)
		must(t, os.Truncate(one+"/holdfast.db-wal", cut))
		want := rows
		for _, end := range ends {
			if cut >= end {
				want++
			}
		}
		d, err := Open(context.Background(), options(one, indexedSQL))
		if err != nil {
			t.Fatalf("a log cut at %d of %d: %v", cut, ends[2], err)
		}
		byTable, byIndex := notes(t, d)
		if byTable != want || byIndex != want {
			t.Errorf("a log cut at %d of %v: %d rows and %d in the index, want %d", cut, ends, byTable, byIndex, want)
		}
		must(t, d.Close())
	}
}

// A log that is gone leaves the store as of the last checkpoint, whole.
func TestDamage_RemovedLog(t *testing.T) {
	home := noted(t, 50)
	c := start(t, "three commits", home)
	for range 3 {
		_, err := c.out.ReadString('\n')
		must(t, err)
	}
	c.kill()
	must(t, errors.Join(os.Remove(home+"/holdfast.db-wal"), os.Remove(home+"/holdfast.db-shm")))
	if code := wholeOrNamed(t, home, 50); code != "" {
		t.Errorf("it opens as %s", code)
	}
	if at, _, err := LogLost(home); err != nil || at == "" {
		t.Errorf("that the log is gone is not remembered (%v)", err)
	}
}

// A log that is gone in order, because the last process has folded it in, or is still there after a death, is not missed.
func TestDamage_LogThatIsNotMissed(t *testing.T) {
	home := noted(t, 5)
	for range 3 { // two processes that end at once, then one that dies, then one that only looks
		a, b := open(t, options(home, indexedSQL)), open(t, options(home, indexedSQL))
		for _, d := range []*DB{a, b} {
			must(t, d.Commit(context.Background(), "test", func(tx *sql.Tx) error { _, err := tx.Exec(`UPDATE notes SET body = body`); return err }))
		}
		done := make(chan error)
		go func() { done <- a.Close() }()
		must(t, errors.Join(b.Close(), <-done))
		c := start(t, "three commits", home)
		_, err := c.out.ReadString('\n')
		must(t, err)
		c.kill()
		must(t, open(t, options(home, indexedSQL)).Close())
	}
	if at, _, err := LogLost(home); err != nil || at != "" {
		t.Errorf("a log is missed that nobody took: %s (%v)", at, err)
	}
	if marked, err := exists(home + "/log.mark"); err != nil || marked {
		t.Errorf("the mark stays: %v (%v)", marked, err)
	}
}

// A store too large to be checked at every opening is checked in the background, and what was found is kept for doctor.
func TestDamage_LargeStoreIsCheckedInTheBackground(t *testing.T) {
	home := noted(t, 50)
	d := open(t, options(home, indexedSQL))
	ctx := context.Background()
	must(t, d.CheckLarge(ctx))
	if k, err := d.LastCheck(); err != nil || !k.At.IsZero() {
		t.Errorf("a small store was checked: %+v (%v)", k, err)
	}
	must(t, d.Commit(ctx, "test", func(tx *sql.Tx) error { return fillBlob(tx, checkBelow+1) }))
	must(t, d.Commit(ctx, "test", func(tx *sql.Tx) error {
		_, err := tx.Exec(`INSERT INTO notes (at, body) SELECT at + 500, body FROM notes`)
		return err
	}))
	must(t, d.Close())
	page, size := pageOf(t, home, "notes")
	scribble(t, home+"/holdfast.db", (page-1)*size+2, []byte{0xff, 0xff})
	d = open(t, options(home, indexedSQL))
	must(t, d.CheckLarge(ctx))
	k, err := d.LastCheck()
	if err != nil || k.At.IsZero() || !strings.HasPrefix(k.Fault, "page: ") {
		t.Fatalf("the check found %+v (%v)", k, err)
	}
	must(t, d.CheckLarge(ctx))
	if again, err := d.LastCheck(); err != nil || !again.At.Equal(k.At) {
		t.Errorf("it was checked again at once: %+v (%v)", again, err)
	}
}
