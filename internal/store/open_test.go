package store

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	sqlite3 "holdfast/internal/sqlite"
)

func init() {
	roles["create"] = func(home string, _ []string) error {
		say("ready")
		hear()
		d, err := Open(context.Background(), options(home))
		if err != nil {
			return err
		}
		say(d.StoreID())
		return d.Close()
	}
	roles["try"] = func(home string, _ []string) error {
		_, err := Open(context.Background(), options(home))
		say(CodeOf(err))
		return nil
	}
}

func TestOpen_MakesPrivateHome(t *testing.T) {
	home := newHome(t)
	d := open(t, options(home))
	must(t, d.Commit(context.Background(), "test", bump("x")))
	for name, want := range map[string]fs.FileMode{"": 0o700, "run": 0o700, "holdfast.db": 0o600, "holdfast.db-wal": 0o600,
		"holdfast.db-shm": 0o600, "store.id": 0o600, "reserve": 0o600, "run/gate.lock": 0o600, "run/schema.lock": 0o600} {
		info, err := os.Stat(filepath.Join(home, name))
		must(t, err)
		if got := info.Mode().Perm(); got != want {
			t.Errorf("%q has mode %o, want %o", name, got, want)
		}
	}
	if b, _ := os.ReadFile(filepath.Join(home, "store.id")); strings.TrimSpace(string(b)) != d.StoreID() || d.StoreID() == "" {
		t.Errorf("the marker says %q, the store %q", b, d.StoreID())
	}
	if info, _ := os.Stat(filepath.Join(home, "reserve")); info.Size() != reserveSize {
		t.Errorf("the reserve has %d bytes", info.Size())
	}
}

// I1
func TestOpen_RecipeIsReadBack(t *testing.T) {
	d := open(t, options(newHome(t)))
	want := map[string]string{"synchronous": "2", "journal_mode": "wal", "foreign_keys": "1", "trusted_schema": "0",
		"cell_size_check": "1", "temp_store": "2", "cache_size": "-8000", "busy_timeout": "250", "mmap_size": "0",
		"journal_size_limit": "67108864", "application_id": fmt.Sprint(applicationID), "locking_mode": "normal"}
	for pool, queryOnly := range map[*sql.DB]string{d.writer: "0", d.readers: "1"} {
		want["query_only"] = queryOnly
		for name, value := range want {
			var got string
			if err := pool.QueryRow("PRAGMA " + name).Scan(&got); err != nil || got != value {
				t.Errorf("query_only=%s: %s = %q (%v), want %q", queryOnly, name, got, err, value)
			}
		}
	}
	if d.writer.Stats().MaxOpenConnections != 1 {
		t.Error("more than one connection may write")
	}
	if _, err := d.readers.Exec("INSERT INTO counters VALUES ('r', 1)"); err == nil {
		t.Error("a reader wrote")
	}
}

// A surprise in the settings is refused: the hook sees what the driver would have left.
func TestOpen_WeakSettingsAreRefused(t *testing.T) {
	home := created(t)
	weak := &connector{dsn: "file:" + filepath.Join(home, "holdfast.db") + "?_synchronous=NORMAL&_foreign_keys=1"}
	weak.driver = &sqlite3.SQLiteDriver{ConnectHook: func(c *sqlite3.SQLiteConn) error { return setUp(c, false) }}
	pool := sql.OpenDB(weak)
	defer func() { _ = pool.Close() }()
	wantCode(t, pool.Ping(), CodeLibrary)
}

func TestOpen_EightProcessesCreateOneStore(t *testing.T) {
	home := newHome(t)
	var all []*child
	for range 8 {
		c := start(t, "create", home)
		c.line(t, "ready")
		all = append(all, c)
	}
	for _, c := range all {
		_, _ = c.in.Write([]byte("\n"))
	}
	ids := map[string]int{}
	for _, c := range all {
		ids[c.rest(t)]++
	}
	if len(ids) != 1 {
		t.Fatalf("the processes saw the stores %v", ids)
	}
}

// I5: what a creator that died left behind is neither used nor in the way.
func TestOpen_UnfinishedBuildIsReplaced(t *testing.T) {
	home := newHome(t)
	must(t, os.MkdirAll(home, 0o700))
	for _, name := range []string{"holdfast.db.new", "holdfast.db.new-wal", "holdfast.db.new-shm"} {
		must(t, os.WriteFile(filepath.Join(home, name), []byte("half"), 0o600))
	}
	d := open(t, options(home))
	must(t, d.Commit(context.Background(), "test", bump("x")))
	if left, _ := filepath.Glob(filepath.Join(home, "holdfast.db.new*")); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

// I6
func TestOpen_NamesWhatIsWrong(t *testing.T) {
	db := func(home string) string { return filepath.Join(home, "holdfast.db") }
	edit := func(t *testing.T, home, statement string) {
		pool, err := sql.Open("sqlite3", db(home))
		must(t, err)
		_, err = pool.Exec(statement)
		must(t, errors.Join(err, pool.Close()))
	}
	write := func(t *testing.T, home string, off int64, body string) {
		f, err := os.OpenFile(db(home), os.O_WRONLY, 0)
		must(t, err)
		_, err = f.WriteAt([]byte(body), off)
		must(t, errors.Join(err, f.Close()))
	}
	size := func(home string) int64 { info, _ := os.Stat(db(home)); return info.Size() }
	cases := []struct {
		name, code string
		damage     func(t *testing.T, home string)
	}{
		{"missing", CodeLost, func(t *testing.T, h string) { must(t, os.Remove(db(h))) }},
		{"missing with its log left", CodeLost, func(t *testing.T, h string) {
			must(t, errors.Join(os.Remove(db(h)), os.Remove(filepath.Join(h, "store.id")), os.WriteFile(db(h)+"-wal", []byte("x"), 0o600)))
		}},
		{"missing, marker empty", CodeLost, func(t *testing.T, h string) {
			must(t, errors.Join(os.Remove(db(h)), os.Truncate(filepath.Join(h, "store.id"), 0)))
		}},
		{"zero length", CodeLost, func(t *testing.T, h string) { must(t, os.Truncate(db(h), 0)) }},
		{"zero length, no marker", CodeLost, func(t *testing.T, h string) {
			must(t, errors.Join(os.Truncate(db(h), 0), os.Remove(filepath.Join(h, "store.id"))))
		}},
		{"without its id", CodeLost, func(t *testing.T, h string) { edit(t, h, "DELETE FROM meta WHERE key='store_id'") }},
		{"without its tables", CodeLost, func(t *testing.T, h string) { edit(t, h, "DROP TABLE meta") }},
		{"another store", CodeLost, func(t *testing.T, h string) { edit(t, h, "UPDATE meta SET value='other' WHERE key='store_id'") }},
		{"another database", CodeLost, func(t *testing.T, h string) { edit(t, h, "PRAGMA application_id=7") }},
		{"another database, no marker", CodeCorrupt, func(t *testing.T, h string) {
			edit(t, h, "PRAGMA application_id=7")
			must(t, os.Remove(filepath.Join(h, "store.id")))
		}},
		{"garbage", CodeCorrupt, func(t *testing.T, h string) {
			must(t, os.WriteFile(db(h), []byte(strings.Repeat("garbage!", 1000)), 0o600))
		}},
		{"cut in half", CodeCorrupt, func(t *testing.T, h string) { must(t, os.Truncate(db(h), size(h)/2)) }},
		{"one damaged page", CodeCorrupt, func(t *testing.T, h string) { write(t, h, size(h)-4096, strings.Repeat("\x55", 4096)) }},
		{"a folder", CodeCorrupt, func(t *testing.T, h string) { must(t, errors.Join(os.Remove(db(h)), os.Mkdir(db(h), 0o700))) }},
		{"newer", CodeNewer, func(t *testing.T, h string) { edit(t, h, "PRAGMA user_version=9") }},
		{"changed step", CodeMismatch, func(t *testing.T, h string) { edit(t, h, "UPDATE schema_migrations SET checksum='0'") }},
		{"forgotten step", CodeMismatch, func(t *testing.T, h string) { edit(t, h, "DELETE FROM schema_migrations") }},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			home := created(t)
			c.damage(t, home)
			before := digests(t, home)
			for range 2 { // the second start must not find it better
				_, err := Open(context.Background(), options(home))
				wantCode(t, err, c.code)
				var open *OpenError
				if !errors.As(err, &open) || open.Message == "" || open.Action == "" {
					t.Fatalf("no sentence for people in %#v", err)
				}
			}
			if after := digests(t, home); after != before {
				t.Errorf("files changed:\n%s\nbefore:\n%s", after, before)
			}
		})
	}
}

// digests names everything in a home beside the run folder and the files SQLite makes while it looks.
func digests(t *testing.T, home string) string {
	t.Helper()
	entries, err := os.ReadDir(home)
	must(t, err)
	var all strings.Builder
	for _, e := range entries {
		if e.IsDir() || strings.HasSuffix(e.Name(), "-shm") {
			continue
		}
		b, err := os.ReadFile(filepath.Join(home, e.Name()))
		must(t, err)
		fmt.Fprintf(&all, "%s %x\n", e.Name(), sha256.Sum256(b))
	}
	return all.String()
}

func TestOpen_MarkerIsWrittenAgain(t *testing.T) {
	for name, damage := range map[string]func(string) error{
		"missing": os.Remove,
		"emptied": func(p string) error { return os.Truncate(p, 0) },
	} {
		t.Run(name, func(t *testing.T) {
			home := created(t)
			must(t, damage(filepath.Join(home, "store.id")))
			d := open(t, options(home))
			if mark, err := readMarker(d.home.marker()); err != nil || mark.id != d.StoreID() {
				t.Errorf("the marker says %+v (%v), the store %q", mark, err, d.StoreID())
			}
			if n := count(t, d, "x"); n != 1 {
				t.Errorf("the counter is %d", n)
			}
		})
	}
}

func TestOpen_WideFolderIsTightenedOnlyWhenOurs(t *testing.T) {
	home := created(t)
	must(t, os.Chmod(home, 0o755))
	must(t, os.Chmod(filepath.Join(home, "holdfast.db"), 0o644))
	open(t, options(home))
	for name, want := range map[string]fs.FileMode{"": 0o700, "holdfast.db": 0o600} {
		if info, err := os.Stat(filepath.Join(home, name)); err != nil || info.Mode().Perm() != want {
			t.Errorf("%q has mode %v (%v), want %o", name, info.Mode(), err, want)
		}
	}
	shared := t.TempDir()
	must(t, os.Chmod(shared, 0o755))
	must(t, os.WriteFile(filepath.Join(shared, "thesis.txt"), nil, 0o644))
	_, err := Open(context.Background(), options(shared))
	wantCode(t, err, CodeUnwritable)
	if info, _ := os.Stat(shared); info.Mode().Perm() != 0o755 {
		t.Errorf("a folder that is not ours was changed to %v", info.Mode())
	}
}

func TestOpen_NetworkFileSystemIsRefused(t *testing.T) {
	o := options(newHome(t))
	o.fsType = func(string) (string, error) { return "NFS", nil }
	_, err := Open(context.Background(), o)
	wantCode(t, err, CodeNetwork)
	if _, err := os.Stat(filepath.Join(o.Home, "holdfast.db")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a store was made all the same: %v", err)
	}
}

func TestOpen_ReadOnlyHome(t *testing.T) {
	// Not under t.TempDir: another user has to reach it.
	parent, err := os.MkdirTemp("", "holdfast")
	must(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(parent) })
	must(t, os.Chmod(parent, 0o755))
	home := filepath.Join(parent, "home")
	d := open(t, options(home))
	must(t, d.Close())
	as := lockOut(t, home)
	if got := tryAs(t, home, as); got != CodeUnwritable {
		t.Errorf("an existing store gave %q", got)
	}
	empty := filepath.Join(parent, "empty")
	must(t, os.Mkdir(empty, 0o700))
	as = lockOut(t, empty)
	if got := tryAs(t, empty, as); got != CodeUnwritable {
		t.Errorf("a fresh folder gave %q", got)
	}
}

// lockOut takes write permission from a folder. The superuser is not bound by it, so it is tried as somebody else then.
func lockOut(t *testing.T, home string) *syscall.Credential {
	t.Helper()
	var as *syscall.Credential
	if os.Getuid() == 0 {
		as = &syscall.Credential{Uid: 65534, Gid: 65534}
		must(t, filepath.WalkDir(home, func(p string, _ fs.DirEntry, _ error) error { return os.Chown(p, 65534, 65534) }))
	}
	must(t, filepath.WalkDir(home, func(p string, e fs.DirEntry, _ error) error {
		if e.IsDir() {
			return os.Chmod(p, 0o500)
		}
		return os.Chmod(p, 0o400)
	}))
	t.Cleanup(func() { _ = os.Chmod(home, 0o700) })
	return as
}

func tryAs(t *testing.T, home string, as *syscall.Credential) string {
	t.Helper()
	c := newChild(t, "try", home)
	c.Dir = "/"
	if as != nil {
		c.SysProcAttr = &syscall.SysProcAttr{Credential: as}
	}
	c.begin(t)
	return c.rest(t)
}

// A copy made by SQLite is in another journal mode; putting it back is the documented way out of damage.
func TestOpen_RestoredCopyIsAccepted(t *testing.T) {
	home := created(t)
	copied := filepath.Join(t.TempDir(), "copy.db")
	d := open(t, options(home))
	_, err := d.writer.Exec("VACUUM INTO ?", copied)
	must(t, errors.Join(err, d.Close()))
	must(t, os.Rename(copied, filepath.Join(home, "holdfast.db")))
	d = open(t, options(home))
	if n := count(t, d, "x"); n != 1 {
		t.Errorf("the counter is %d", n)
	}
}

func TestOpen_OddPath(t *testing.T) {
	home := filepath.Join(t.TempDir(), "a?b #c+d %41 ü")
	d := open(t, options(home))
	must(t, d.Commit(context.Background(), "test", bump("x")))
	if _, err := os.Stat(filepath.Join(home, "holdfast.db")); err != nil {
		t.Error(err)
	}
}

func TestRemoteFS_NamesNumbers(t *testing.T) {
	if name, err := remoteFS(t.TempDir()); err != nil || name != "" {
		t.Errorf("the test folder is on %q (%v)", name, err)
	}
	if _, err := remoteFS(filepath.Join(t.TempDir(), "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing folder gave %v", err)
	}
}
