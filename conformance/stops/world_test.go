// Package stops_test holds the real binary to its first promise: what the user stopped does not come back, however it was stopped, whoever
// executed it, and whatever dies meanwhile. Only the language model is played.
package stops_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"holdfast/conformance/fakemodel"
	"holdfast/conformance/harness"
)

func TestMain(m *testing.M) {
	code := m.Run()
	harness.Cleanup()
	os.Exit(code)
}

// world is one store, one work tree and one model.
type world struct {
	t          *testing.T
	dir        string
	home, work string
	model      *fakemodel.Server
	env        []string
}

func newWorld(t *testing.T) *world { t.Helper(); return worldOf(t, obedient) }

func worldOf(t *testing.T, answer func(fakemodel.Request) fakemodel.Reply) *world {
	t.Helper()
	dir, err := os.MkdirTemp("", "hf-") // short: the path of a socket is limited
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, dir: dir, home: filepath.Join(dir, "home"), work: filepath.Join(dir, "work"), model: fakemodel.New(answer).Think()}
	if err := os.Mkdir(w.work, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			b, _ := os.ReadFile(filepath.Join(w.home, "log.jsonl")) // it may not be there
			all, _, _ := w.cli("ps", "--json")
			t.Logf("log:\n%s\nwhat runs:\n%s", b, all)
		}
		if err := os.RemoveAll(dir); err != nil && !t.Failed() {
			t.Errorf("something still writes there: %v", err)
		}
	})
	t.Cleanup(w.model.Close)
	w.env = append(w.model.Env(fakemodel.Family()), "HOLDFAST_HOME="+w.home)
	t.Cleanup(func() { // nothing that a test has started outlives it
		if _, err := os.Stat(w.home); err == nil {
			_, _, _ = w.cli("stop", "--all")
		}
	})
	return w
}

// launch starts an editor's agent. more is its environment, and an armed crash point needs the binary that has them.
func (w *world) launch(more ...string) *harness.Agent {
	w.t.Helper()
	plain, faulty, err := harness.Binaries()
	if err != nil {
		w.t.Fatal(err)
	}
	if len(more) > 0 {
		plain = faulty
	}
	return w.start(plain, map[string]any{}, nil, more...)
}

// start starts an agent whose client has these capabilities, and answers questions as given; nil allows everything.
func (w *world) start(binary string, capabilities map[string]any, permission func(json.RawMessage) string, more ...string) *harness.Agent {
	w.t.Helper()
	a := harness.Start(w.t, harness.Options{Binary: binary, Env: append(more, w.env...), Permission: permission})
	a.Must("initialize", map[string]any{"protocolVersion": 1, "clientCapabilities": capabilities}, nil)
	return a
}

func (w *world) plain() string {
	w.t.Helper()
	plain, _, err := harness.Binaries()
	if err != nil {
		w.t.Fatal(err)
	}
	return plain
}

func (w *world) params(session string) map[string]any {
	return map[string]any{"sessionId": session, "cwd": w.work, "mcpServers": []any{}}
}

func (w *world) load(a *harness.Agent, session string) {
	w.t.Helper()
	a.Must("session/load", w.params(session), nil)
}

func closeSession(a *harness.Agent, session string) {
	a.Must("session/close", map[string]any{"sessionId": session}, nil)
}

func cancel(a *harness.Agent, session string) {
	a.Notify("session/cancel", map[string]any{"sessionId": session})
}

// command prepares a run of the command line.
func (w *world) command(binary string, args ...string) *exec.Cmd {
	cmd := exec.Command(binary, args...)
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH")}, w.env...)
	return cmd
}

// cli runs a command to its end.
func (w *world) cli(args ...string) (out, errs string, err error) {
	w.t.Helper()
	cmd := w.command(w.plain(), args...)
	var o, e bytes.Buffer
	cmd.Stdout, cmd.Stderr = &o, &e
	err = cmd.Run()
	return o.String(), e.String(), err
}

// document runs a command that succeeds and decodes what it prints.
func document[T any](w *world, args ...string) (v T) {
	w.t.Helper()
	out, errs, err := w.cli(append(args, "--json")...)
	if err == nil {
		err = json.Unmarshal([]byte(out), &v)
	}
	if err != nil {
		w.t.Fatalf("holdfast %s: %v\n%s%s", strings.Join(args, " "), err, out, errs)
	}
	return v
}

// stopped is what became of a stop.
type stopped struct {
	SessionID, GoalID, State string
	PID                      int
}

// running lists the commands that run.
func (w *world) running() (names []string) {
	w.t.Helper()
	for _, c := range document[struct{ Commands []struct{ Command string } }](w, "ps").Commands {
		names = append(names, c.Command)
	}
	return names
}

// state is where a session stands, as the list shows it.
func (w *world) state(session string) string {
	w.t.Helper()
	return document[struct{ Session struct{ State string } }](w, "sessions", "show", session).Session.State
}

// goal is the state of a session's goal.
func (w *world) goal(a *harness.Agent, session string) (status, code string) {
	w.t.Helper()
	var r struct {
		Goal struct{ Status, ReasonCode string }
	}
	a.Must("_holdfast/get_goal", map[string]any{"sessionId": session}, &r)
	return r.Goal.Status, r.Goal.ReasonCode
}

func (w *world) path(name string) string { return filepath.Join(w.work, name) }

func (w *world) put(name string) {
	w.t.Helper()
	if err := os.WriteFile(w.path(name), nil, 0o600); err != nil {
		w.t.Fatal(err)
	}
}

// lines counts the lines of a file; 0 without one.
func (w *world) lines(name string) int {
	b, err := os.ReadFile(w.path(name))
	if err != nil {
		return 0
	}
	return bytes.Count(b, []byte("\n"))
}

// begun waits until a command has written its line.
func (w *world) begun(name string) {
	w.t.Helper()
	harness.Eventually(w.t, name+" is written", func() bool { return w.lines(name) > 0 })
}

func (w *world) asked() int { return len(w.model.Requests()) }

// requests waits until the model has got n requests.
func (w *world) requests(n int) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), harness.Limit)
	defer cancel()
	if _, err := w.model.Wait(ctx, n); err != nil {
		w.t.Fatalf("%d requests: %v", w.asked(), err)
	}
}

// silent fails when the model is asked once more while d passes.
func (w *world) silent(n int, d time.Duration, why string) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), d)
	defer cancel()
	if reqs, err := w.model.Wait(ctx, n+1); !errors.Is(err, context.DeadlineExceeded) {
		w.t.Errorf("%s: request %d has %s", why, n+1, reqs[n].Body)
	}
}

// say prompts and returns how the prompt ended.
func say(t testing.TB, a *harness.Agent, session, text string) string {
	t.Helper()
	return ended(t, a, a.Prompt(session, text))
}

// ended waits for the answer to a prompt.
func ended(t testing.TB, a *harness.Agent, id string) string {
	t.Helper()
	m := a.Await(id)
	var r struct{ StopReason string }
	if m.Error != nil || json.Unmarshal(m.Result, &r) != nil {
		t.Fatalf("the prompt failed: %s %v", m.Result, m.Error)
	}
	return r.StopReason
}

// answered tells whether a prompt has its answer.
func answered(a *harness.Agent, id string) bool {
	for _, m := range a.Log() {
		if m.Method == "" && string(m.ID) == id {
			return true
		}
	}
	return false
}

// message waits for the first message that holds all of these.
func message(t testing.TB, a *harness.Agent, parts ...string) {
	t.Helper()
	if _, ok := a.Find(func(m harness.Message) bool { return holds(m.Raw, parts) }); !ok {
		t.Fatalf("no message holds %q", parts)
	}
}

func holds(raw []byte, parts []string) bool {
	for _, p := range parts {
		if !bytes.Contains(raw, []byte(p)) {
			return false
		}
	}
	return true
}

// suspend stops a process outside of a write.
func (w *world) suspend(pid int) { w.t.Helper(); harness.Suspend(w.t, w.home, pid) }

func wake(t *testing.T, pid int) {
	t.Helper()
	if err := syscall.Kill(pid, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
}

func (w *world) read(name string) string {
	b, err := os.ReadFile(w.path(name))
	if err != nil {
		return ""
	}
	return string(b)
}
