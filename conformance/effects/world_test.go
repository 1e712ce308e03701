package effects_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"holdfast/conformance/fakemodel"
	"holdfast/conformance/harness"
)

// world is one store, one work tree and one model. They outlive the processes of a test.
type world struct {
	t               testing.TB
	dir, home, work string
	model           *fakemodel.Server
	env             []string // of the next launch, beside what it needs
	choose          func(title string) string

	mu       sync.Mutex
	turns    map[string][]fakemodel.Call // what the model calls for a prompt, one after the other
	asks     []string                    // permission requests: title and text
	together bool                        // the model makes all calls of a prompt in one answer
	busy     int                         // how many more requests are turned away, for an hour
}

func newWorld(t testing.TB, turns map[string][]fakemodel.Call) *world {
	t.Helper()
	dir, err := os.MkdirTemp("", "hf-") // short: the path of a socket is limited
	if err != nil {
		t.Fatal(err)
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, dir: dir, home: filepath.Join(dir, "home"), work: filepath.Join(dir, "work"), turns: turns}
	t.Cleanup(func() {
		if t.Failed() {
			w.explain()
		}
		harness.Eventually(t, "nothing writes there any more", func() bool { return os.RemoveAll(dir) == nil })
	})
	if err := os.Mkdir(w.work, 0o755); err != nil {
		t.Fatal(err)
	}
	w.model = fakemodel.New(w.answer)
	t.Cleanup(w.model.Close)
	t.Cleanup(func() { // before the model closes
		if err := fakemodel.ResultsPerCall(w.model.Requests()); err != nil {
			t.Errorf("the model refused the history: %v", err)
		}
	})
	return w
}

func (w *world) explain() {
	if b, err := os.ReadFile(filepath.Join(w.home, "log.jsonl")); err == nil {
		w.t.Logf("log:\n%s", b)
	}
	for _, r := range w.model.Requests() {
		w.t.Logf("request %d %s: %d messages, the last: %.800v", r.N, r.Refused, len(r.Messages), r.Messages[len(r.Messages)-1])
	}
}

// answer plays turns. A turn ends with "done PROMPT". At a goal the model only talks, until the goal blocks itself.
func (w *world) answer(r fakemodel.Request) fakemodel.Reply {
	w.mu.Lock()
	defer w.mu.Unlock()
	prompt, made := "", 0
	for _, m := range r.Messages {
		if strings.Contains(m.Content, "The user has set a goal") {
			return fakemodel.Text("Thinking about it.")
		}
		if _, ok := w.turns[m.Content]; ok && m.Role == "user" {
			prompt, made = m.Content, 0
		}
		if m.Role == "tool" {
			made++
		}
	}
	if w.busy > 0 {
		w.busy--
		r := fakemodel.Error(503, "The service is overloaded.", "overloaded")
		r.Header = http.Header{"Retry-After": {"3600"}}
		return r
	}
	if w.together && made == 0 {
		return fakemodel.Calls(w.turns[prompt]...)
	}
	if made < len(w.turns[prompt]) {
		return fakemodel.Calls(w.turns[prompt][made])
	}
	return fakemodel.Text("done " + prompt + "\n")
}

func (w *world) path(name string) string { return filepath.Join(w.dir, name) }

func (w *world) put(name, text string) string {
	w.t.Helper()
	if err := os.WriteFile(w.path(name), []byte(text), 0o644); err != nil {
		w.t.Fatal(err)
	}
	return w.path(name)
}

func (w *world) read(name string) string {
	b, err := os.ReadFile(w.path(name))
	if err != nil {
		return "(" + filepath.Base(name) + " is not there)"
	}
	return string(b)
}

func (w *world) lines(name string) int {
	b, _ := os.ReadFile(w.path(name)) // absent is none
	return bytes.Count(b, []byte("\n"))
}

// launch starts the editor's agent. crash is a crash point of the binary that has them, "" launches the released one.
func (w *world) launch(crash string) *harness.Agent {
	w.t.Helper()
	plain, faulty, err := harness.Binaries()
	if err != nil {
		w.t.Fatal(err)
	}
	env := append([]string{"HOLDFAST_HOME=" + w.home, "HOLDFAST_LOG=info"}, w.model.Env(fakemodel.Family())...)
	o := harness.Options{Binary: plain, Env: append(env, w.env...), Permission: w.permit}
	w.env = nil
	if crash != "" {
		name := "HOLDFAST_CRASH"
		if strings.HasPrefix(crash, "supervisor.") {
			name = "HOLDFAST_SUPERVISOR_CRASH"
		}
		o.Binary, o.Env = faulty, append(o.Env, name+"="+crash, name+"_LOG="+w.path("fired"))
	}
	a := harness.Start(w.t, o)
	a.Must("initialize", map[string]any{"protocolVersion": 1, "clientCapabilities": map[string]any{}}, nil)
	return a
}

func (w *world) permit(params json.RawMessage) string {
	var p struct {
		ToolCall struct {
			Title   string
			Content []struct{ Content struct{ Text string } }
		}
	}
	if err := json.Unmarshal(params, &p); err != nil {
		w.t.Error(err)
	}
	q := p.ToolCall.Title
	for _, c := range p.ToolCall.Content {
		q += "\n" + c.Content.Text
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asks = append(w.asks, q)
	if w.choose != nil {
		return w.choose(q)
	}
	return "allow_once"
}

func (w *world) asked() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]string(nil), w.asks...)
}

// params name the session and, where the model calls it, its one external server.
func (w *world) params(session string) map[string]any {
	p := map[string]any{"cwd": w.work, "mcpServers": []any{}}
	if strings.Contains(encode(w.turns), "mcp__x__") {
		p["mcpServers"] = []any{map[string]any{"name": "x", "command": serverBinary(w.t), "env": []any{},
			"args": []string{"-plan", encode(map[string]any{"log": w.path("x.calls"), "lives": w.path("x.lives")})}}}
	}
	if session != "" {
		p["sessionId"] = session
	}
	return p
}

func (w *world) open(a *harness.Agent) string {
	w.t.Helper()
	var r struct{ SessionID string }
	a.Must("session/new", w.params(""), &r)
	return r.SessionID
}

// reopen launches the released binary and opens the session.
func (w *world) reopen(session string) *harness.Agent {
	w.t.Helper()
	a := w.launch("")
	a.Must("session/load", w.params(session), nil)
	return a
}

// die prompts a process that dies at a point.
func (w *world) die(point, text string) (session string) {
	w.t.Helper()
	a := w.launch(point)
	session = w.open(a)
	a.Prompt(session, text)
	_ = a.Wait() // killed; the log says so
	w.fired(point)
	return session
}

func (w *world) fired(point string) {
	w.t.Helper()
	b, _ := os.ReadFile(w.path("fired")) // absent is empty
	if n, _, _ := strings.Cut(point, "/"); !strings.HasPrefix(string(b), n+" kill ") || strings.Count(string(b), "\n") != 1 {
		w.t.Fatalf("the crash point %s did not fire once: %q", point, b)
	}
}

func (w *world) prompt(a *harness.Agent, session, text string) {
	w.t.Helper()
	m := a.Await(a.Prompt(session, text))
	if m.Error != nil || !strings.Contains(string(m.Result), "end_turn") {
		w.t.Fatalf("the prompt %q ended with %v %s", text, m.Error, m.Result)
	}
}

func said(t testing.TB, a *harness.Agent, session, text string) {
	t.Helper()
	harness.Eventually(t, "the agent says "+text, func() bool { return strings.Contains(a.Text(session), text) })
}

// results are what the model was told in its newest request of the conversation.
func (w *world) results() (out []string) {
	all := w.model.Requests()
	for i := len(all) - 1; i >= 0 && len(out) == 0; i-- {
		for _, m := range all[i].Results() {
			out = append(out, m.Content)
		}
	}
	return out
}

// holdfast runs the command line and decodes what it prints.
func (w *world) holdfast(v any, args ...string) (text string, code int) {
	w.t.Helper()
	plain, _, err := harness.Binaries()
	if err != nil {
		w.t.Fatal(err)
	}
	cmd := exec.Command(plain, args...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOLDFAST_HOME=" + w.home}
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	stop := time.AfterFunc(harness.Limit, func() { _ = cmd.Process.Kill() })
	err = cmd.Wait()
	stop.Stop()
	if _, exited := err.(*exec.ExitError); err != nil && !exited {
		w.t.Fatal(err)
	}
	if v != nil {
		if err := json.Unmarshal(out.Bytes(), v); err != nil {
			w.t.Fatalf("holdfast %s: %v\n%s%s", strings.Join(args, " "), err, out.String(), errs.String())
		}
	}
	return out.String() + errs.String(), cmd.ProcessState.ExitCode()
}

// effect is a journal record as the command line shows it.
type effect struct {
	EffectID, Tool, State, Fact, SettledBy, Note, Lookup string
	CanSettle                                            bool
	Settlements                                          []struct{ Fact, SettledBy, Note, Evidence, InstanceID string }
}

// effects lists the journal of one tool, newest first.
func (w *world) effects(tool string) (out []effect) {
	w.t.Helper()
	var all []effect
	w.holdfast(&all, "effects", "list", "--json")
	for _, e := range all {
		if e.Tool == tool {
			out = append(out, e)
		}
	}
	return out
}

// shown is a call as the editor shows it now.
type shown struct{ Title, Status, Text string }

// calls lists the calls of a session as they are shown now.
func calls(a *harness.Agent, session string) (out []shown) {
	at := map[string]int{}
	for _, b := range a.Updates(session) {
		var u struct {
			ToolCallID, Title, Status string
			Content                   []struct{ Content struct{ Text string } }
		}
		if json.Unmarshal(b, &u) != nil || u.ToolCallID == "" {
			continue
		}
		i, known := at[u.ToolCallID]
		if !known {
			i, out = len(out), append(out, shown{})
			at[u.ToolCallID] = i
		}
		if u.Title != "" {
			out[i].Title = u.Title
		}
		if u.Status != "" {
			out[i].Status = u.Status
		}
		if len(u.Content) > 0 {
			out[i].Text = ""
			for _, c := range u.Content {
				out[i].Text += c.Content.Text
			}
		}
	}
	return out
}

func tool(name string, args any) fakemodel.Call {
	return fakemodel.Call{Name: name, Args: encode(args)}
}

func encode(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b)
}
