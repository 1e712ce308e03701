// Package history_test holds the real binary to what it promises of sessions that exist: that they are listed, found and told apart after
// any end, and that how much they hold makes no difference to what can be done with them. Only the language model is played.
package history_test

import (
	"bytes"
	"database/sql"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	_ "github.com/mattn/go-sqlite3"

	"holdfast/conformance/fakemodel"
	"holdfast/conformance/harness"
)

func TestMain(m *testing.M) {
	code := m.Run()
	harness.Cleanup()
	os.Exit(code)
}

// world is one store, one work tree and one model. They outlive the processes of a test.
type world struct {
	t          testing.TB
	home, work string
	model      *fakemodel.Server
	env        []string
}

func newWorld(t testing.TB, answer func(fakemodel.Request) fakemodel.Reply) *world {
	t.Helper()
	dir, err := os.MkdirTemp("", "hf-") // short: the path of a socket is limited
	if err != nil {
		t.Fatal(err)
	}
	if answer == nil {
		answer = func(fakemodel.Request) fakemodel.Reply { return fakemodel.Text("hello") }
	}
	w := &world{t: t, home: filepath.Join(dir, "home"), work: filepath.Join(dir, "work"), model: fakemodel.New(answer)}
	t.Cleanup(func() {
		w.model.Close()
		harness.Eventually(t, "nothing writes there any more", func() bool { return os.RemoveAll(dir) == nil })
	})
	if err := os.Mkdir(w.work, 0o755); err != nil {
		t.Fatal(err)
	}
	w.env = append([]string{"HOLDFAST_HOME=" + w.home}, w.model.Env(fakemodel.Family())...)
	return w
}

func (w *world) binary() string {
	w.t.Helper()
	plain, _, err := harness.Binaries()
	if err != nil {
		w.t.Fatal(err)
	}
	return plain
}

// start starts an initialized agent, whose client allows everything.
func (w *world) start() *harness.Agent { w.t.Helper(); return w.asking(nil) }

// asking is start with a client that answers questions as given; "" leaves them open.
func (w *world) asking(permission func(json.RawMessage) string) *harness.Agent {
	w.t.Helper()
	a := harness.Start(w.t, harness.Options{Binary: w.binary(), Env: w.env, Permission: permission})
	a.Initialize()
	return a
}

// unanswered is a client that leaves questions open.
func unanswered(json.RawMessage) string { return "" }

func (w *world) params(session string) map[string]any {
	return map[string]any{"sessionId": session, "cwd": w.work, "mcpServers": []any{}}
}

func (w *world) load(a *harness.Agent, session string) {
	w.t.Helper()
	a.Must("session/load", w.params(session), nil)
}

// turn runs one prompt to its end.
func (w *world) turn(a *harness.Agent, session, text string) {
	w.t.Helper()
	if m := a.Await(a.Prompt(session, text)); m.Error != nil || !strings.Contains(string(m.Result), "end_turn") {
		w.t.Fatalf("the turn ended with %v %s", m.Error, m.Result)
	}
}

func (w *world) end(a *harness.Agent) {
	w.t.Helper()
	if err := a.CloseInput(); err != nil {
		w.t.Fatalf("the agent ended with %v: %s", err, a.Stderr())
	}
}

// run runs a command to its end and returns what it printed and its exit code.
func (w *world) run(args ...string) (out, errs string, code int) {
	w.t.Helper()
	cmd := exec.Command(w.binary(), args...)
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH")}, w.env...)
	cmd.Dir = filepath.Dir(w.home)
	var o, e bytes.Buffer
	cmd.Stdout, cmd.Stderr = &o, &e
	err := cmd.Run()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		w.t.Fatal(err)
	}
	return o.String(), e.String(), cmd.ProcessState.ExitCode()
}

// want runs a command that has to succeed.
func (w *world) want(args ...string) string {
	w.t.Helper()
	out, errs, code := w.run(args...)
	if code != 0 {
		w.t.Fatalf("holdfast %s ended with %d: %s%s", strings.Join(args, " "), code, out, errs)
	}
	return out
}

// listedSession is a session as the command line lists it.
type listedSession struct {
	SessionID, Title, State, ReasonCode, Cwd string
	Allowed                                  []string
	PendingApprovals                         int
}

func (w *world) sessions() []listedSession {
	w.t.Helper()
	return decode[[]listedSession](w.t, w.want("sessions", "list", "--json"))
}

// listed is the answer of session/list.
type listed struct {
	Sessions   []struct{ SessionID, Cwd, Title, UpdatedAt string }
	NextCursor string
}

// open opens the store with the driver; only a store that no process has open is changed.
func (w *world) open() *sql.DB {
	w.t.Helper()
	db, err := sql.Open("sqlite3", "file:"+filepath.Join(w.home, "holdfast.db")+"?_busy_timeout=10000")
	if err != nil {
		w.t.Fatal(err)
	}
	return db
}

// number reads one number of the store.
func (w *world) number(query string) (n int64) {
	w.t.Helper()
	db := w.open()
	defer func() { _ = db.Close() }()
	if err := db.QueryRow(query).Scan(&n); err != nil {
		w.t.Fatalf("%s: %v", query, err)
	}
	return n
}

// peak is the largest resident memory that a process ever had, in MB.
func peak(t testing.TB, pid int) int {
	t.Helper()
	raw, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		t.Skip("the peak is read from /proc, on Linux: go test -run Large ./conformance/history")
	}
	m := regexp.MustCompile(`VmHWM:\s+(\d+) kB`).FindSubmatch(raw)
	if m == nil {
		t.Fatal("there is no peak")
	}
	n, err := strconv.Atoi(string(m[1]))
	if err != nil {
		t.Fatal(err)
	}
	return n / 1024
}

func decode[T any, B ~string | ~[]byte](t testing.TB, raw B) (v T) {
	t.Helper()
	if err := json.Unmarshal([]byte(raw), &v); err != nil {
		t.Fatalf("decode %.500s: %v", raw, err)
	}
	return v
}

func encode(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b)
}

func shell(line string) fakemodel.Call {
	return fakemodel.Call{Name: "shell", Args: encode(map[string]string{"command": line})}
}
