// Package owners_test checks whose work runs where when processes are suspended, die again and again, only look, or belong to another
// machine. It drives the real binary and looks at it from outside.
package owners_test

import (
	"bytes"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
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

type world struct {
	t          *testing.T
	home, work string
	model      *fakemodel.Server
	env        []string
}

func newWorld(t *testing.T, answer func(fakemodel.Request) fakemodel.Reply) *world {
	t.Helper()
	dir := t.TempDir()
	w := &world{t: t, home: filepath.Join(dir, "home"), work: filepath.Join(dir, "work"), model: fakemodel.New(answer).Think()}
	w.must(os.Mkdir(w.work, 0o755))
	t.Cleanup(w.model.Close)
	w.env = w.model.Env(fakemodel.Family())
	t.Cleanup(func() { // nothing that a test has started outlives it
		if _, err := os.Stat(filepath.Join(w.home, "holdfast.db")); err == nil {
			w.holdfast(nil, "stop", "--all", "--json")
		}
	})
	return w
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// start launches an agent without a word; extra is added to its environment, and makes it the build with crash points.
func (w *world) start(extra ...string) *harness.Agent {
	w.t.Helper()
	plain, faulty, err := harness.Binaries()
	w.must(err)
	if len(extra) > 0 {
		plain = faulty
	}
	return harness.Start(w.t, harness.Options{Binary: plain, Env: append(append([]string{"HOLDFAST_HOME=" + w.home}, w.env...), extra...)})
}

func (w *world) launch(extra ...string) *harness.Agent {
	w.t.Helper()
	a := w.start(extra...)
	a.Initialize()
	return a
}

func (w *world) load(a *harness.Agent, session string) {
	w.t.Helper()
	a.Must("session/load", w.opening(session), nil)
}

func (w *world) opening(session string) any {
	return map[string]any{"sessionId": session, "cwd": w.work, "mcpServers": []any{}}
}

// holdfast runs a command line. With v it decodes the document that it prints.
func (w *world) holdfast(v any, args ...string) (all string, code int) {
	w.t.Helper()
	return w.holdfastWith(nil, v, args...)
}

func (w *world) holdfastWith(extra []string, v any, args ...string) (all string, code int) {
	w.t.Helper()
	plain, faulty, err := harness.Binaries()
	w.must(err)
	if len(extra) > 0 {
		plain = faulty
	}
	cmd := exec.Command(plain, args...)
	cmd.Env = append(append([]string{"PATH=" + os.Getenv("PATH"), "HOLDFAST_HOME=" + w.home}, w.env...), extra...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err = cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		w.t.Fatal(err)
	}
	if v != nil {
		if err := json.Unmarshal(out.Bytes(), v); err != nil {
			w.t.Fatalf("holdfast %s: %v\n%s%s", strings.Join(args, " "), err, out.String(), errs.String())
		}
	}
	return out.String() + errs.String(), cmd.ProcessState.ExitCode()
}

// edit changes the store as no product would, between two launches or beside one.
func (w *world) edit(query string, args ...any) {
	w.t.Helper()
	db, err := sql.Open("sqlite3", filepath.Join(w.home, "holdfast.db")+"?_busy_timeout=5000")
	w.must(err)
	res, err := db.Exec(query, args...)
	w.must(err)
	if n, _ := res.RowsAffected(); n == 0 {
		w.t.Fatalf("nothing was changed: %s", query)
	}
	w.must(db.Close())
}

// number reads one number out of the store.
func (w *world) number(query string, args ...any) int {
	w.t.Helper()
	return int(harness.Number(w.t, w.home, query, args...))
}

func (w *world) lines(name string) int {
	b, err := os.ReadFile(filepath.Join(w.work, name))
	if err != nil {
		return 0
	}
	return bytes.Count(b, []byte("\n"))
}

func (w *world) put(name string) {
	w.t.Helper()
	w.must(os.WriteFile(filepath.Join(w.work, name), nil, 0o600))
}

func (w *world) wait(n int) {
	w.t.Helper()
	harness.Eventually(w.t, fmt.Sprintf("%d requests", n), func() bool { return len(w.model.Requests()) >= n })
}

// told waits until a client was shown something that holds all of these.
func told(t *testing.T, a *harness.Agent, what string, parts ...string) {
	t.Helper()
	if _, ok := a.Find(func(m harness.Message) bool { return m.Method == "session/update" && holds(string(m.Params), parts...) }); !ok {
		t.Errorf("%s: nobody said %q", what, parts)
	}
}

func holds(s string, parts ...string) bool {
	for _, p := range parts {
		if !strings.Contains(s, p) {
			return false
		}
	}
	return true
}

func pid(a *harness.Agent) string { return fmt.Sprint(a.PID()) }

// suspend stops a process and waits until the system says that it is.
func suspend(t *testing.T, a *harness.Agent) {
	t.Helper()
	a.Signal(syscall.SIGSTOP)
	stopped(t, a)
	t.Cleanup(func() { _ = syscall.Kill(a.PID(), syscall.SIGKILL) })
}

func stopped(t *testing.T, a *harness.Agent) {
	t.Helper()
	harness.Eventually(t, "it is stopped", func() bool {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", a.PID()))
		if err != nil {
			return false
		}
		fields := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
		return len(fields) > 0 && fields[0] == "T"
	})
}

// reply is how a prompt ended.
func reply(t *testing.T, a *harness.Agent, id string) string {
	t.Helper()
	m := a.Await(id)
	var r struct{ StopReason string }
	if m.Error != nil || json.Unmarshal(m.Result, &r) != nil {
		t.Fatalf("the prompt ended with %s %v", m.Result, m.Error)
	}
	return r.StopReason
}

// once answers with one command and then with a word.
func once(command string) func(fakemodel.Request) fakemodel.Reply {
	args, err := json.Marshal(map[string]string{"command": command})
	if err != nil {
		panic(err)
	}
	return func(r fakemodel.Request) fakemodel.Reply {
		if len(r.Results()) == 0 && strings.Contains(r.LastUser(), "run it") {
			return fakemodel.Calls(fakemodel.Call{Name: "shell", Args: string(args)})
		}
		return fakemodel.Text("finished well")
	}
}

const held = "echo run >> counter; while [ ! -e go ]; do sleep 0.02; done; echo end >> counter"

func talk(fakemodel.Request) fakemodel.Reply { return fakemodel.Text("finished well") }
