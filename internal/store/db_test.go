package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

func init() {
	// Commits and acknowledges until it is killed.
	roles["acknowledge"] = func(home string, _ []string) error {
		d, err := Open(context.Background(), options(home))
		if err != nil {
			return err
		}
		for n := 1; ; n++ {
			if err := d.Commit(context.Background(), "test", bump("x")); err != nil {
				return err
			}
			say(strconv.Itoa(n))
		}
	}
	roles["fail commit"] = failCommit
}

func TestCommit_KilledAfterAcknowledging(t *testing.T) {
	home := newHome(t)
	d := open(t, options(home))
	total := 0
	for _, kill := range []int{1, 7, 30} {
		c := start(t, "acknowledge", home)
		for n := 1; n <= kill; n++ {
			c.line(t, strconv.Itoa(n))
		}
		c.kill()
		acknowledged := kill
		for { // what it still said before it died
			line, err := c.out.ReadString('\n')
			if err != nil {
				break
			}
			acknowledged, _ = strconv.Atoi(strings.TrimSpace(line))
		}
		total += acknowledged
		got := count(t, d, "x")
		if got != total && got != total+1 { // one commit may have been stored and not yet said
			t.Fatalf("%d commits are stored, %d were acknowledged", got, total)
		}
		total = got
	}
}

func TestCommit_ErrorStoresNothing(t *testing.T) {
	d := open(t, options(newHome(t)))
	mine := errors.New("mine")
	err := d.Commit(context.Background(), "test", func(tx *sql.Tx) error { return errors.Join(bump("x")(tx), mine) })
	if !errors.Is(err, mine) || d.Stats() != 0 || count(t, d, "x") != 0 {
		t.Errorf("got %v, %d commits, counter %d", err, d.Stats(), count(t, d, "x"))
	}
	func() {
		defer func() { _ = recover() }()
		_ = d.Commit(context.Background(), "test", func(tx *sql.Tx) error { _ = bump("x")(tx); panic("broken invariant") })
	}()
	must(t, d.Commit(context.Background(), "test", bump("x"))) // the gate and the connection are free again
	if n := count(t, d, "x"); n != 1 || d.Stats() != 1 {
		t.Errorf("counter %d, %d commits", n, d.Stats())
	}
}

// I3: once inside, a cancelled context changes nothing.
func TestCommit_CancelInsideIsTooLate(t *testing.T) {
	d := open(t, options(newHome(t)))
	ctx, cancel := context.WithCancel(context.Background())
	must(t, d.Commit(ctx, "test", func(tx *sql.Tx) error { cancel(); return bump("x")(tx) }))
	if err := d.Commit(ctx, "test", bump("x")); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if err := d.Read(ctx, func(*sql.Tx) error { return nil }); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if n := count(t, d, "x"); n != 1 {
		t.Errorf("the counter is %d", n)
	}
}

// A constraint that fails at COMMIT was refused before anything was written, so its outcome is known.
func TestCommit_DeferredConstraint(t *testing.T) {
	d := open(t, options(newHome(t), `CREATE TABLE a (id INTEGER PRIMARY KEY) STRICT;
		CREATE TABLE b (a INTEGER REFERENCES a (id) DEFERRABLE INITIALLY DEFERRED) STRICT;`))
	err := d.Commit(context.Background(), "test", func(tx *sql.Tx) error {
		_, err := tx.Exec("INSERT INTO b VALUES (1)")
		return err
	})
	if err == nil || errors.Is(err, ErrCommitUnknown) {
		t.Fatalf("got %v", err)
	}
	must(t, d.Commit(context.Background(), "test", bump("x")))
}

func TestRead_SeesOneMoment(t *testing.T) {
	d := open(t, options(newHome(t)))
	must(t, d.Read(context.Background(), func(tx *sql.Tx) error {
		must(t, d.Commit(context.Background(), "test", bump("x")))
		n, err := counter(tx, "x")
		if n != 0 {
			t.Errorf("a read that began before saw %d", n)
		}
		return err
	}))
	if n := count(t, d, "x"); n != 1 {
		t.Errorf("the counter is %d", n)
	}
}

func TestCommit_OldWriterIsRefused(t *testing.T) {
	d := open(t, options(newHome(t)))
	must(t, d.Commit(context.Background(), "test", func(tx *sql.Tx) error {
		_, err := tx.Exec("UPDATE meta SET value = '2' WHERE key = 'min_writer'")
		return err
	}))
	wantCode(t, d.Commit(context.Background(), "test", bump("x")), CodeNewer)
	if n := count(t, d, "x"); n != 0 {
		t.Errorf("the counter is %d", n)
	}
}

// I8
func TestCommit_MovedStoreIsNoticed(t *testing.T) {
	for name, replace := range map[string]bool{"moved": false, "replaced": true} {
		t.Run(name, func(t *testing.T) {
			home := newHome(t)
			d := open(t, options(home))
			must(t, d.Commit(context.Background(), "test", bump("x")))
			must(t, os.Rename(d.home.db(), d.home.db()+".old"))
			if replace {
				must(t, os.WriteFile(d.home.db(), []byte("something"), 0o600))
			}
			d.looked = time.Time{} // as if a second had passed
			wantCode(t, d.Commit(context.Background(), "test", bump("x")), CodeMoved)
			must(t, os.Rename(d.home.db()+".old", d.home.db()))
			must(t, d.Commit(context.Background(), "test", bump("x")))
			if n := count(t, d, "x"); n != 2 {
				t.Errorf("the counter is %d", n)
			}
		})
	}
}

func TestCommit_FullUsesReserveOnce(t *testing.T) {
	d := open(t, options(newHome(t)))
	_, err := d.writer.Exec("PRAGMA max_page_count=40")
	must(t, err)
	tries := 0
	err = d.Commit(context.Background(), "test", func(tx *sql.Tx) error {
		tries++
		return fillBlob(tx, 1<<20)
	})
	wantCode(t, err, CodeFull)
	if !errors.Is(err, ErrFull) || tries != 2 {
		t.Errorf("got %v after %d tries", err, tries)
	}
	if _, err := os.Stat(d.home.reserve()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the reserve is still there: %v", err)
	}
	must(t, d.Commit(context.Background(), "test", bump("x")))
	d.reserve.used = time.Now().Add(-2 * reserveRetry) // as if that time had passed
	must(t, d.Commit(context.Background(), "test", bump("x")))
	if info, err := os.Stat(d.home.reserve()); err != nil || info.Size() != reserveSize {
		t.Errorf("the reserve did not come back: %v", err)
	}
}

func fillBlob(tx *sql.Tx, size int) error {
	_, err := tx.Exec("INSERT INTO blobs (body) VALUES (?)", make([]byte, size))
	return err
}

// I9: a limit on file sizes makes the write inside COMMIT fail in a way that is no full disk.
func TestCommit_UnknownOutcome(t *testing.T) {
	c := start(t, "fail commit", newHome(t))
	if got := c.rest(t); got != CodeUnknownOutcome+"\nstored 1" {
		t.Fatalf("the other process said %q", got)
	}
}

func failCommit(home string, _ []string) error {
	signal.Ignore(syscall.SIGXFSZ)
	d, err := Open(context.Background(), options(home))
	if err != nil {
		return err
	}
	var old syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &old); err != nil {
		return err
	}
	limit := old
	limit.Cur = 64 << 10
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		return err
	}
	err = d.Commit(context.Background(), "test", func(tx *sql.Tx) error { return fillBlob(tx, 1<<20) })
	if CodeOf(err) != CodeUnknownOutcome {
		return fmt.Errorf("commit under a limit: %w", err)
	}
	say(CodeOf(err))
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &old); err != nil {
		return err
	}
	if err := d.Commit(context.Background(), "test", func(tx *sql.Tx) error { return fillBlob(tx, 1<<20) }); err != nil {
		return fmt.Errorf("commit after the limit: %w", err)
	}
	var n int
	if err := d.Read(context.Background(), func(tx *sql.Tx) error {
		return tx.QueryRow("SELECT count(*) FROM blobs").Scan(&n)
	}); err != nil {
		return err
	}
	say(fmt.Sprint("stored ", n))
	return d.Close()
}

func TestCodeOf_EveryError(t *testing.T) {
	for want, err := range map[string]error{
		"":                 nil,
		CodeBusy:           fmt.Errorf("commit: %w", &BusyError{PID: 7, Err: context.Canceled}),
		CodeFull:           full(nil),
		CodeUnknownOutcome: errors.Join(ErrCommitUnknown, full(nil)),
		CodeClosed:         ErrClosed,
		CodeMoved:          fmt.Errorf("commit: %w", moved(nil)),
		CodeFailed:         errors.New("x"),
	} {
		if got := CodeOf(err); got != want {
			t.Errorf("%v has code %q, want %q", err, got, want)
		}
	}
}

func BenchmarkCommit(b *testing.B) {
	d := open(b, options(newHome(b)))
	body := make([]byte, 200)
	b.ResetTimer()
	for range b.N {
		if err := d.Commit(context.Background(), "test", func(tx *sql.Tx) error {
			_, err := tx.Exec("INSERT INTO blobs (body) VALUES (?)", body)
			return err
		}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkRead(b *testing.B) {
	d := open(b, options(newHome(b)))
	for range b.N {
		count(b, d, "x")
	}
}

func BenchmarkOpenExisting(b *testing.B) {
	o := options(created(b))
	for range b.N {
		d, err := Open(context.Background(), o)
		if err != nil {
			b.Fatal(err)
		}
		if err := d.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkCreate(b *testing.B) {
	dir := b.TempDir()
	for i := range b.N {
		d, err := Open(context.Background(), options(filepath.Join(dir, strconv.Itoa(i))))
		if err != nil {
			b.Fatal(err)
		}
		_ = d.Close()
	}
}

// A program that is not behind the gate is waited for and then reported as unknown. Its lock is there from BEGIN on, not from the
// first write, as ours has to be.
func TestCommit_ForeignWriter(t *testing.T) {
	d := open(t, options(newHome(t)))
	foreign, _ := newPool(d.home.db(), role{})
	defer func() { _ = foreign.Close() }()
	tx, err := foreign.BeginTx(context.Background(), nil)
	must(t, err)
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	err = d.Commit(ctx, "test", bump("x"))
	var busy *BusyError
	if !errors.As(err, &busy) || busy.PID != 0 || !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("got %v", err)
	}
	// Whoever waits behind that is told of the program, and not of this process, which waits itself.
	waiting := make(chan error)
	go func() { waiting <- d.Commit(context.Background(), "test", bump("x")) }()
	other := open(t, Options{Home: string(d.home), Now: d.o.Now, NewID: d.o.NewID, migrations: d.o.migrations, Reading: true})
	defer func() { _ = other.Close() }()
	short, done := context.WithTimeout(context.Background(), busyAfter+2*time.Second)
	defer done()
	if err := other.Commit(short, "test", bump("x")); !errors.As(err, &busy) || busy.PID != 0 || strings.Contains(busy.Error(), "suspended") {
		t.Errorf("behind it: %v", err)
	}
	must(t, tx.Rollback())
	must(t, <-waiting)
	must(t, d.Commit(context.Background(), "test", bump("x")))
	if pid, _ := d.gate.holder(); pid != os.Getpid() {
		t.Errorf("the last holder is %d", pid)
	}
}
