// Package acp_test holds the real binary to the protocol, message by message, as an editor sees it. Only the language model is played, by a
// local server that speaks the real wire.
package acp_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
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

// world is one store, one work tree and one model. They outlive the processes of a test.
type world struct {
	t          *testing.T
	home, work string
	model      *fakemodel.Server
	env        []string // what a launch gets besides PATH and HOLDFAST_HOME
}

func newWorld(t *testing.T, answer func(fakemodel.Request) fakemodel.Reply) *world {
	t.Helper()
	return newWorldOf(t, fakemodel.Family(), answer)
}

// families runs a test on each model family.
func families(t *testing.T, test func(t *testing.T, family string)) {
	for _, family := range fakemodel.Families {
		t.Run(family, func(t *testing.T) { test(t, family) })
	}
}

// newWorldOf is newWorld with a model of that family.
func newWorldOf(t *testing.T, family string, answer func(fakemodel.Request) fakemodel.Reply) *world {
	t.Helper()
	if answer == nil {
		answer = func(fakemodel.Request) fakemodel.Reply { return fakemodel.Text("hello") }
	}
	dir := t.TempDir()
	w := &world{t: t, home: filepath.Join(dir, "home"), work: filepath.Join(dir, "work"), model: fakemodel.New(answer).Think()}
	if err := os.Mkdir(w.work, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := fakemodel.ResultsPerCall(w.model.Requests()); err != nil {
			t.Errorf("the model refused the history: %v", err)
		}
		w.model.Close()
	})
	w.env = w.model.Env(family)
	return w
}

// raw starts an agent that has been told nothing.
func (w *world) raw(permission func(json.RawMessage) string) *harness.Agent {
	w.t.Helper()
	plain, _, err := harness.Binaries()
	if err != nil {
		w.t.Fatal(err)
	}
	a := harness.Start(w.t, harness.Options{Binary: plain, Env: append([]string{"HOLDFAST_HOME=" + w.home}, w.env...), Permission: permission})
	w.t.Cleanup(func() { // runs before the harness kills it
		if err := a.CloseInput(); err == nil && a.Stderr() != "" {
			w.t.Errorf("stderr: %s", a.Stderr())
		}
	})
	return a
}

// start starts an initialized agent, whose client allows everything.
func (w *world) start() *harness.Agent { w.t.Helper(); return w.asking(nil) }

// asking is start with a client that answers questions as given; "" leaves them open.
func (w *world) asking(permission func(json.RawMessage) string) *harness.Agent {
	w.t.Helper()
	a := w.raw(permission)
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

func (w *world) path(name string) string { return filepath.Join(w.work, name) }

func (w *world) file(name string) string {
	b, err := os.ReadFile(w.path(name))
	if err != nil {
		return ""
	}
	return string(b)
}

// waitFile waits until a command has written a whole line.
func (w *world) waitFile(name string) string {
	w.t.Helper()
	harness.Eventually(w.t, name+" is written", func() bool { return strings.HasSuffix(w.file(name), "\n") })
	return strings.TrimSpace(w.file(name))
}

// requests waits until the model has got n requests.
func (w *world) requests(n int) []fakemodel.Request {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), harness.Limit)
	defer cancel()
	reqs, err := w.model.Wait(ctx, n)
	if err != nil {
		w.t.Fatal(err)
	}
	return reqs
}

// noMore fails when the model gets an n-th request while d passes.
func (w *world) noMore(n int, d time.Duration, why string) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), d)
	defer cancel()
	if reqs, err := w.model.Wait(ctx, n); !errors.Is(err, context.DeadlineExceeded) {
		w.t.Errorf("%s: request %d has %s", why, n, reqs[n-1].Body)
	}
}

// update is one session/update as a client reads it.
type update struct {
	Kind       string          `json:"sessionUpdate"`
	ToolCallID string          `json:"toolCallId"`
	Title      string          `json:"title"`
	Status     string          `json:"status"`
	MessageID  string          `json:"messageId"`
	ModeID     string          `json:"currentModeId"`
	Content    json.RawMessage `json:"content"`
	Raw        string          `json:"-"`
}

func updates(t testing.TB, a *harness.Agent, session string) []update {
	t.Helper()
	var out []update
	for _, raw := range a.Updates(session) {
		out = append(out, decode[update](t, raw))
		out[len(out)-1].Raw = string(raw)
	}
	return out
}

func decode[T any](t testing.TB, raw json.RawMessage) (v T) {
	t.Helper()
	if err := json.Unmarshal(raw, &v); err != nil {
		t.Fatalf("decode %s: %v", raw, err)
	}
	return v
}

// message waits for the first message whose bytes hold all of these.
func message(t testing.TB, a *harness.Agent, parts ...string) harness.Message {
	t.Helper()
	m, ok := a.Find(func(m harness.Message) bool { return holds(m.Raw, parts) })
	if !ok {
		t.Fatalf("no message holds %q; got %s", parts, sent(a))
	}
	return m
}

func holds(raw []byte, parts []string) bool {
	for _, p := range parts {
		if !strings.Contains(string(raw), p) {
			return false
		}
	}
	return true
}

// sent is all that the agent sent, for a failure.
func sent(a *harness.Agent) string {
	var b strings.Builder
	for _, m := range a.Log() {
		b.WriteString(string(m.Raw) + "\n")
	}
	return b.String()
}

// stop waits for the answer to a prompt and returns its stop reason.
func stop(t testing.TB, a *harness.Agent, id string) string {
	t.Helper()
	m := a.Await(id)
	if m.Error != nil {
		t.Fatalf("the prompt failed: %v", m.Error)
	}
	return decode[struct{ StopReason string }](t, m.Result).StopReason
}

// refused checks an error answer by its code and words, and returns its data.
func refused(t testing.TB, what string, e *harness.Error, code int, words ...string) map[string]any {
	t.Helper()
	if e == nil {
		t.Errorf("%s: no error", what)
		return nil
	}
	if e.Code != code || !holds([]byte(e.Message+string(e.Data)), words) {
		t.Errorf("%s: got %v, want code %d with %q", what, e, code, words)
	}
	if len(e.Data) == 0 {
		return nil
	}
	return decode[map[string]any](t, e.Data)
}

// command is the answer with one shell command.
func command(line string) fakemodel.Reply {
	return fakemodel.Calls(fakemodel.Call{Name: "shell", Args: encode(map[string]string{"command": line})})
}

// once answers with the command, and with words when its result is there.
func once(line, words string) func(fakemodel.Request) fakemodel.Reply {
	return func(r fakemodel.Request) fakemodel.Reply {
		if len(r.Results()) == 0 {
			return command(line)
		}
		return fakemodel.Text(words)
	}
}

func encode(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b)
}
