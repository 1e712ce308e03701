// Package kill_test kills the real binary with SIGKILL at its named points and checks from outside that the work goes on to its end,
// with nothing done twice and nothing lost. Only the language model is scripted: a local server that speaks the real wire.
package kill_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
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

// world is one store, one work tree and one model, that outlive the processes of a test.
type world struct {
	t     *testing.T
	home  string
	work  string
	model *fakemodel.Server
	fired string // the crash log

	mu    sync.Mutex
	gates map[string]chan struct{}
}

func newWorld(t *testing.T) *world {
	t.Helper()
	dir := t.TempDir()
	w := &world{t: t, home: filepath.Join(dir, "home"), work: filepath.Join(dir, "work"), fired: filepath.Join(dir, "fired"), gates: map[string]chan struct{}{}}
	if err := os.Mkdir(w.work, 0o755); err != nil {
		t.Fatal(err)
	}
	w.model = fakemodel.New(w.answer)
	t.Cleanup(w.model.Close)
	t.Cleanup(w.openGates) // before the model closes
	return w
}

func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), harness.Limit)
	t.Cleanup(cancel)
	return ctx
}

// gate holds whatever answer names it, until it is opened.
func (w *world) gate(name string) chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.gates[name] == nil {
		w.gates[name] = make(chan struct{})
	}
	return w.gates[name]
}

func (w *world) openGates() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for name, g := range w.gates {
		close(g)
		delete(w.gates, name)
	}
}

// command appends to the counter, so that a second run shows.
const command = "echo run >> counter; while [ -e hold ]; do sleep 0.02; done; exit 0"

// answer is the scripted model: it looks at the real state that the request shows, as a careful model would.
func (w *world) answer(r fakemodel.Request) fakemodel.Reply {
	review := false
	for _, t := range r.Tools {
		review = review || t.Name == "submit_review"
	}
	switch {
	case review:
		return w.review(r)
	case strings.Contains(r.LastUser(), "tell a story"), strings.Contains(all(r), "tell a story") && !strings.Contains(all(r), "[Goal]"):
		return w.story(r)
	}
	done := map[string]bool{}
	for _, m := range r.Messages {
		for _, c := range m.ToolCalls {
			done[c.Name] = true
		}
	}
	switch {
	case !done["shell"]:
		return fakemodel.Calls(fakemodel.Call{Name: "shell", Args: encode(map[string]string{"command": command})})
	case !w.appears("counter"): // the command never began: do it
		return fakemodel.Calls(fakemodel.Call{Name: "shell", Args: encode(map[string]string{"command": command})})
	case !w.has("out.txt"):
		return fakemodel.Calls(fakemodel.Call{Name: "write", Args: encode(map[string]string{"path": "out.txt", "content": "result\n"})})
	case !strings.Contains(lastCall(r), "candidate"):
		return fakemodel.Calls(fakemodel.Call{Name: "update_goal", Args: `{"action":"candidate","text":"done"}`})
	}
	return fakemodel.Text("All done.")
}

func (w *world) review(r fakemodel.Request) fakemodel.Reply {
	for i := len(r.Messages) - 1; i >= 0; i-- {
		for _, c := range r.Messages[i].ToolCalls {
			if c.Name == "read" {
				return fakemodel.Calls(fakemodel.Call{Name: "submit_review", Args: encode(map[string]any{"requirements": []any{
					map[string]any{"id": "objective", "result": "met", "evidence": []string{c.ID}, "reason": "read it"}}})})
			}
		}
	}
	return fakemodel.Calls(fakemodel.Call{Name: "read", Args: `{"path":"out.txt"}`})
}

// story streams text that is held in the middle once.
func (w *world) story(r fakemodel.Request) fakemodel.Reply {
	if strings.Contains(all(r), "Once upon") {
		return fakemodel.Text("and they lived happily ever after.")
	}
	return fakemodel.Reply{Steps: []fakemodel.Step{{Text: "Once upon "}, {Text: "a time "}, fakemodel.Gate(w.gate("story")), {Text: "never sent"}}}
}

func all(r fakemodel.Request) string {
	var b strings.Builder
	for _, m := range r.Messages {
		b.WriteString(m.Content + "\n")
	}
	return b.String()
}

func lastCall(r fakemodel.Request) string {
	for i := len(r.Messages) - 1; i >= 0; i-- {
		if n := len(r.Messages[i].ToolCalls); n > 0 {
			return r.Messages[i].ToolCalls[n-1].Args
		}
		if r.Messages[i].Role == "user" {
			return ""
		}
	}
	return ""
}

func encode(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b)
}

func (w *world) has(name string) bool {
	_, err := os.Stat(filepath.Join(w.work, name))
	return err == nil
}

// appears gives a command that was just started, and whose supervisor is gone, a moment to show itself.
func (w *world) appears(name string) bool {
	for range 100 {
		if w.has(name) {
			return true
		}
		<-time.After(10 * time.Millisecond)
	}
	return false
}

func (w *world) count(name string) int {
	b, err := os.ReadFile(filepath.Join(w.work, name))
	if err != nil {
		return 0
	}
	return strings.Count(string(b), "\n")
}

// launch starts an agent that dies at the point, "" for one that does not.
func (w *world) launch(point string, permission func(json.RawMessage) string) *harness.Agent {
	w.t.Helper()
	plain, faulty, err := harness.Binaries()
	if err != nil {
		w.t.Fatal(err)
	}
	env := []string{"HOLDFAST_HOME=" + w.home, "HOLDFAST_MODEL=openai/fake", "OPENAI_BASE_URL=" + w.model.URL() + "/v1", "HOLDFAST_LOG=info"}
	bin := plain
	if point != "" {
		bin = faulty
		name := "HOLDFAST_CRASH"
		if strings.HasPrefix(point, "supervisor.") {
			name = "HOLDFAST_SUPERVISOR_CRASH"
		}
		env = append(env, name+"="+point, name+"_LOG="+w.fired)
	}
	a := harness.Start(w.t, harness.Options{Binary: bin, Env: env, Permission: permission})
	a.Initialize()
	return a
}

// mustHaveFired fails when the crash point was not reached, or more than once.
func (w *world) mustHaveFired(point string) {
	w.t.Helper()
	b, err := os.ReadFile(w.fired)
	name, _, _ := strings.Cut(point, "/")
	if err != nil || strings.Count(string(b), "\n") != 1 || !strings.HasPrefix(string(b), name+" ") {
		w.t.Fatalf("the crash point %s did not fire exactly once: %q, %v", point, b, err)
	}
}

type goal struct {
	GoalID, Status, Phase, ReasonCode, Reason string
	History                                   []struct {
		What, Kind, State, Mode, Rule, Title, Effect, Fact, SettledBy string
		ExitCode                                                      *int
		Generation                                                    int
	}
}

func (w *world) goal(a *harness.Agent, session string) goal {
	w.t.Helper()
	var r struct{ Goal goal }
	a.Must("get_goal", map[string]any{"sessionId": session, "history": true}, &r)
	return r.Goal
}

// create sets the Goal of the scenarios.
func (w *world) create(a *harness.Agent) string {
	w.t.Helper()
	session := a.NewSession(w.work)
	a.Begin("create_goal", map[string]any{"sessionId": session, "objective": "Produce out.txt with the command's help.", "idempotencyKey": "one",
		"requirements": []any{map[string]any{"kind": "file", "path": "out.txt", "pattern": "result"}, map[string]any{"kind": "command", "command": "test -s out.txt"}}})
	return session
}

// finish opens the session and waits for the Goal's end.
func (w *world) finish(a *harness.Agent, session string) {
	w.t.Helper()
	a.Must("session/load", map[string]any{"sessionId": session, "cwd": w.work, "mcpServers": []any{}}, nil)
	harness.Eventually(w.t, "the goal ends", func() bool { return w.goal(a, session).Status != "active" })
}

// check looks at everything from outside.
func (w *world) check(a *harness.Agent, session string) {
	w.t.Helper()
	g := w.goal(a, session)
	if g.Status != "achieved" {
		w.t.Errorf("the goal is %s (%s %s)", g.Status, g.ReasonCode, g.Reason)
	}
	if n := w.count("counter"); n != 1 {
		w.t.Errorf("the command ran %d times", n)
	}
	if err := fakemodel.ResultsPerCall(w.model.Requests()); err != nil {
		w.t.Error(err)
	}
	for _, r := range w.model.Requests() {
		if r.Refused != "" {
			w.t.Errorf("the model refused request %d: %s", r.N, r.Refused)
		}
	}
	if n := strings.Count(w.replay(session), "Goal achieved"); n != 1 {
		w.t.Errorf("the transcript has %d goal records", n)
	}
}

// replay is what a fresh process tells a client of the session.
func (w *world) replay(session string) string {
	w.t.Helper()
	a := w.launch("", nil)
	a.Must("session/load", map[string]any{"sessionId": session, "cwd": w.work, "mcpServers": []any{}}, nil)
	text := a.Text(session)
	if err := a.CloseInput(); err != nil {
		w.t.Errorf("the agent ended with %v: %s", err, a.Stderr())
	}
	return text
}
