// Package storage_test holds the real binary to what it promises of a store that is damaged, full, held by somebody else, or gone: every
// fault has a name and a next step, no other session pays for it, history stays, and work goes on when the fault is gone.
package storage_test

import (
	"bytes"
	"database/sql"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	_ "github.com/mattn/go-sqlite3"

	"holdfast/conformance/fakemodel"
	"holdfast/conformance/harness"
)

func TestMain(m *testing.M) {
	code := m.Run()
	harness.Cleanup()
	os.Exit(code)
}

// inNamespace is set in a test process that has mounts of its own, to the binary that was built outside.
const inNamespace = "HOLDFAST_TEST_BINARY"

// inNamespaceFaults is the same for the build with crash points.
const inNamespaceFaults = "HOLDFAST_TEST_FAULTS"

// world is one store, one work tree and one model.
type world struct {
	t          *testing.T
	home, work string
	model      *fakemodel.Server
	env        []string
}

func newWorld(t *testing.T, answer func(fakemodel.Request) fakemodel.Reply) *world {
	t.Helper()
	dir, err := os.MkdirTemp("", "hf-") // short: the path of a socket is limited
	if err != nil {
		t.Fatal(err)
	}
	if answer == nil {
		answer = func(fakemodel.Request) fakemodel.Reply { return fakemodel.Text("I see.") }
	}
	w := &world{t: t, home: filepath.Join(dir, "home"), work: filepath.Join(dir, "work"), model: fakemodel.New(answer)}
	t.Cleanup(func() {
		w.put("go")
		w.model.Close()
		harness.Eventually(t, "nothing writes there any more", func() bool { return os.RemoveAll(dir) == nil })
	})
	if err := os.Mkdir(w.work, 0o755); err != nil {
		t.Fatal(err)
	}
	w.env = []string{"HOLDFAST_HOME=" + w.home, "HOLDFAST_MODEL=openai/fake", "OPENAI_BASE_URL=" + w.model.URL()}
	return w
}

func (w *world) binary() string {
	w.t.Helper()
	if built := os.Getenv(inNamespace); built != "" {
		return built
	}
	plain, _, err := harness.Binaries()
	if err != nil {
		w.t.Fatal(err)
	}
	return plain
}

func (w *world) editor() *harness.Agent {
	w.t.Helper()
	a := harness.Start(w.t, harness.Options{Binary: w.binary(), Env: w.env, Permission: func(json.RawMessage) string { return "allow_once" }})
	a.Initialize()
	return a
}

func (w *world) load(a *harness.Agent, session string) *harness.Error {
	w.t.Helper()
	_, e := a.Call("session/load", map[string]any{"sessionId": session, "cwd": w.work, "mcpServers": []any{}})
	return e
}

// talk is a session in which something was said and answered.
func (w *world) talk(a *harness.Agent, text string) string {
	w.t.Helper()
	id := a.NewSession(w.work)
	w.say(a, id, text)
	return id
}

func (w *world) say(a *harness.Agent, session, text string) {
	w.t.Helper()
	if m := a.Await(a.Prompt(session, text)); m.Error != nil {
		w.t.Fatalf("prompt %q: %v", text, m.Error)
	}
}

func (w *world) run(args ...string) (out string, code int) {
	w.t.Helper()
	cmd := exec.Command(w.binary(), args...)
	cmd.Env, cmd.Dir = append([]string{"PATH=" + os.Getenv("PATH")}, w.env...), w.work
	var b bytes.Buffer
	cmd.Stdout, cmd.Stderr = &b, &b
	if err := cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	stop := time.AfterFunc(harness.Limit, func() { _ = cmd.Process.Kill() })
	_ = cmd.Wait() // the code says it
	if !stop.Stop() {
		w.t.Fatalf("holdfast %s did not end: %s", strings.Join(args, " "), b.String())
	}
	return b.String(), cmd.ProcessState.ExitCode()
}

// want runs a command and fails when it ends with another code.
func (w *world) want(code int, args ...string) string {
	w.t.Helper()
	out, got := w.run(args...)
	if got != code {
		w.t.Fatalf("holdfast %s ended with %d, want %d: %s", strings.Join(args, " "), got, code, out)
	}
	return out
}

// finding is one line of doctor.
type finding struct{ Check, Level, Message, Command string }

// doctor returns what doctor finds, and its exit code.
func (w *world) doctor(args ...string) ([]finding, int) {
	w.t.Helper()
	out, code := w.run(append([]string{"doctor", "--json"}, args...)...)
	var d struct {
		ExitCode int
		Findings []finding
	}
	if err := json.Unmarshal([]byte(out), &d); err != nil || d.ExitCode != code {
		w.t.Fatalf("doctor ended with %d: %v\n%s", code, err, out)
	}
	return d.Findings, code
}

// found wants a finding of a check and a level that says something, and returns it.
func (w *world) found(all []finding, check, level, says string) finding {
	w.t.Helper()
	for _, f := range all {
		if f.Check == check && f.Level == level && strings.Contains(f.Message, says) {
			return f
		}
	}
	w.t.Errorf("no finding %s %s %q in %+v", check, level, says, all)
	return finding{}
}

func (w *world) db() string { return filepath.Join(w.home, "holdfast.db") }

// edit changes a store that nobody has open, rules of the schema or not.
func (w *world) edit(statement string, args ...any) {
	w.t.Helper()
	db, err := sql.Open("sqlite3", w.db())
	if err != nil {
		w.t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	db.SetMaxOpenConns(1)
	if _, err := db.Exec("PRAGMA ignore_check_constraints=ON"); err != nil {
		w.t.Fatal(err)
	}
	res, err := db.Exec(statement, args...)
	if err != nil {
		w.t.Fatalf("%s: %v", statement, err)
	}
	if n, err := res.RowsAffected(); err != nil || n == 0 {
		w.t.Fatalf("%s: changed nothing (%v)", statement, err)
	}
}

// value reads one value of the store.
func (w *world) value(query string, args ...any) (v string) {
	w.t.Helper()
	db, err := sql.Open("sqlite3", "file:"+w.db()+"?mode=ro&_busy_timeout=5000")
	if err != nil {
		w.t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	if err := db.QueryRow(query, args...).Scan(&v); err != nil {
		w.t.Fatalf("%s: %v", query, err)
	}
	return v
}

func (w *world) put(name string) { _ = os.WriteFile(filepath.Join(w.work, name), nil, 0o600) }

func (w *world) has(name string) bool {
	_, err := os.Stat(filepath.Join(w.work, name))
	return err == nil
}

func (w *world) lines(name string) int {
	b, err := os.ReadFile(filepath.Join(w.work, name))
	if err != nil {
		return 0
	}
	return bytes.Count(b, []byte("\n"))
}

func shell(command string) fakemodel.Reply {
	args, err := json.Marshal(map[string]string{"command": command})
	if err != nil {
		panic(err)
	}
	return fakemodel.Calls(fakemodel.Call{Name: "shell", Args: string(args)})
}

// codeOf reads the code and the action of a refused request.
func codeOf(e *harness.Error) (code, action string) {
	if e == nil {
		return "", ""
	}
	var data struct{ Code, Action string }
	_ = json.Unmarshal(e.Data, &data)
	return data.Code, data.Action
}
