package store

import (
	"bufio"
	"context"
	"database/sql"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"
)

// Tests that need another process start this binary again; the role says what it does there.
const roleVariable = "HOLDFAST_STORE_TEST_ROLE"

var roles = map[string]func(home string, args []string) error{}

func TestMain(m *testing.M) {
	if role := os.Getenv(roleVariable); role != "" {
		if err := roles[role](os.Args[1], os.Args[2:]); err != nil {
			fmt.Println("ERROR", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// child is another process with this store open. It talks in lines.
type child struct {
	*exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

func newChild(t *testing.T, role, home string, args ...string) *child {
	t.Helper()
	c := &child{Cmd: exec.Command("/proc/self/exe", append([]string{home}, args...)...)}
	if _, err := os.Stat(c.Path); err != nil {
		c.Path = os.Args[0]
	}
	c.Env = append(os.Environ(), roleVariable+"="+role)
	c.Stderr = os.Stderr
	in, err := c.StdinPipe()
	must(t, err)
	out, err := c.StdoutPipe()
	must(t, err)
	c.in, c.out = in, bufio.NewReader(out)
	return c
}

func start(t *testing.T, role, home string, args ...string) *child {
	t.Helper()
	c := newChild(t, role, home, args...)
	c.begin(t)
	return c
}

func (c *child) begin(t *testing.T) {
	t.Helper()
	must(t, c.Start())
	t.Cleanup(func() {
		_ = c.Process.Kill()
		_ = c.Wait()
	})
}

// line waits for the next line and wants it to be this.
func (c *child) line(t *testing.T, want string) {
	t.Helper()
	got, err := c.out.ReadString('\n')
	if got = strings.TrimSpace(got); got != want {
		t.Fatalf("the other process said %q (%v), want %q", got, err, want)
	}
}

// rest waits for the end of a process and returns what it still said.
func (c *child) rest(t *testing.T) string {
	t.Helper()
	_ = c.in.Close()
	b, err := io.ReadAll(c.out)
	must(t, err)
	if err := c.Wait(); err != nil {
		t.Fatalf("the other process failed: %v: %s", err, b)
	}
	return strings.TrimSpace(string(b))
}

// kill ends the process violently and waits until it is gone.
func (c *child) kill() {
	_ = c.Process.Kill()
	_ = c.Wait()
}

func say(line string) { fmt.Println(line) }

// hear blocks until the test says something or goes away.
func hear() { _, _ = bufio.NewReader(os.Stdin).ReadString('\n') }

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wantCode(t *testing.T, err error, code string) {
	t.Helper()
	if got := CodeOf(err); got != code {
		t.Fatalf("got code %q (%v), want %q", got, err, code)
	}
}

// until polls for something that another process does.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline := time.After(20 * time.Second)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("never happened: %s", what)
		}
	}
}

const countersSQL = `CREATE TABLE counters (name TEXT PRIMARY KEY, n INTEGER NOT NULL) STRICT;
CREATE TABLE blobs (id INTEGER PRIMARY KEY, body BLOB NOT NULL) STRICT;`

// ladder is a small schema with further steps on request.
func ladder(more ...string) fstest.MapFS {
	files := fstest.MapFS{}
	for i, text := range append([]string{countersSQL}, more...) {
		files[fmt.Sprintf("migrations/%04d_step.sql", i+1)] = &fstest.MapFile{Data: []byte(text)}
	}
	return files
}

func options(home string, more ...string) Options {
	return Options{Home: home, BinaryVersion: "test", migrations: ladder(more...)}
}

func newHome(t testing.TB) string { return filepath.Join(t.TempDir(), "home") }

func open(t testing.TB, o Options) *DB {
	t.Helper()
	d, err := Open(context.Background(), o)
	must(t, err)
	t.Cleanup(func() { _ = d.Close() })
	return d
}

// created makes a store with one counter in it and closes it again.
func created(t testing.TB, more ...string) (home string) {
	t.Helper()
	home = newHome(t)
	d := open(t, options(home, more...))
	must(t, d.Commit(context.Background(), "test", bump("x")))
	must(t, d.Close())
	return home
}

// bump raises a counter the way that loses updates without a write lock taken first: read, then write.
func bump(name string) func(*sql.Tx) error {
	return func(tx *sql.Tx) error {
		n, err := counter(tx, name)
		if err != nil {
			return err
		}
		_, err = tx.Exec("INSERT INTO counters (name, n) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET n = excluded.n", name, n+1)
		return err
	}
}

func counter(tx *sql.Tx, name string) (n int, err error) {
	err = tx.QueryRow("SELECT coalesce(max(n), 0) FROM counters WHERE name = ?", name).Scan(&n)
	return n, err
}

func count(t testing.TB, d *DB, name string) (n int) {
	t.Helper()
	must(t, d.Read(context.Background(), func(tx *sql.Tx) (err error) {
		n, err = counter(tx, name)
		return err
	}))
	return n
}
