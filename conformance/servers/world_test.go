// Package servers_test gives the real binary external MCP servers: the official ones from npm, and a hostile one. The servers' own logs and
// files say what reached them. Only the language model is played, by a local server that speaks the real wire.
package servers_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"holdfast/conformance/fakemodel"
	"holdfast/conformance/harness"
)

func TestMain(m *testing.M) {
	code := m.Run()
	harness.Cleanup()
	os.Exit(code)
}

// world is one store, one work tree, one set of servers and one model. They outlive the processes of a test.
type world struct {
	t               *testing.T
	dir, home, work string
	model           *fakemodel.Server
	servers         []map[string]any
	mu              sync.Mutex
	answer          func(fakemodel.Request) fakemodel.Reply
}

func newWorld(t *testing.T, answer func(fakemodel.Request) fakemodel.Reply) *world {
	t.Helper()
	dir, err := os.MkdirTemp("", "hf-") // short: the path of a socket is limited
	if err != nil {
		t.Fatal(err)
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, dir: dir, home: filepath.Join(dir, "home"), work: filepath.Join(dir, "work"), answer: answer}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Mkdir(w.work, 0o755); err != nil {
		t.Fatal(err)
	}
	w.model = fakemodel.New(func(r fakemodel.Request) fakemodel.Reply {
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.answer(r)
	})
	t.Cleanup(func() {
		if err := fakemodel.ResultsPerCall(w.model.Requests()); err != nil {
			t.Errorf("the model refused the history: %v", err)
		}
		if t.Failed() {
			w.explain()
		}
		w.model.Close()
	})
	return w
}

// explain logs what the processes and the model saw.
func (w *world) explain() {
	if b, err := os.ReadFile(filepath.Join(w.home, "log.jsonl")); err == nil {
		w.t.Logf("log:\n%s", b)
	}
	for _, r := range w.model.Requests() {
		w.t.Logf("request %d %s: %d messages, %d tools, the last: %+v", r.N, r.Refused, len(r.Messages), len(r.Tools), r.Messages[max(0, len(r.Messages)-2):])
	}
}

// serve adds a server that the editor hands over.
func (w *world) serve(name, command string, args ...string) {
	w.servers = append(w.servers, map[string]any{"name": name, "command": command, "args": append([]string{}, args...), "env": []any{}})
}

// peer adds one of the official servers.
func (w *world) peer(name, pkg string, args ...string) {
	w.t.Helper()
	w.serve(name, "node", append([]string{filepath.Join(harness.Peers(w.t, "@modelcontextprotocol/"+pkg), "dist", "index.js")}, args...)...)
}

// start launches the editor's agent. crash is a crash point of the binary that has them, "" launches the released one.
func (w *world) start(crash string, permission func(json.RawMessage) string) *harness.Agent {
	w.t.Helper()
	plain, faulty, err := harness.Binaries()
	if err != nil {
		w.t.Fatal(err)
	}
	env := []string{"HOLDFAST_HOME=" + w.home, "HOLDFAST_MODEL=openai/fake", "OPENAI_BASE_URL=" + w.model.URL(), "HOLDFAST_LOG=info"}
	o := harness.Options{Binary: plain, Env: env, Permission: permission}
	if crash != "" {
		o.Binary, o.Env = faulty, append(env, "HOLDFAST_CRASH="+crash)
	}
	a := harness.Start(w.t, o)
	a.Initialize()
	return a
}

func (w *world) params(session string) map[string]any {
	servers := w.servers
	if servers == nil {
		servers = []map[string]any{}
	}
	return map[string]any{"sessionId": session, "cwd": w.work, "mcpServers": servers}
}

func (w *world) open(a *harness.Agent) string {
	w.t.Helper()
	var r struct{ SessionID string }
	p := w.params("")
	delete(p, "sessionId")
	a.Must("session/new", p, &r)
	return r.SessionID
}

func (w *world) load(a *harness.Agent, session string) {
	w.t.Helper()
	a.Must("session/load", w.params(session), nil)
}

func (w *world) write(name, text string) string {
	w.t.Helper()
	path := filepath.Join(w.work, name)
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		w.t.Fatal(err)
	}
	return path
}

func (w *world) read(name string) string {
	b, err := os.ReadFile(filepath.Join(w.work, name))
	if err != nil {
		return ""
	}
	return string(b)
}

// once makes one call and then says what its result was.
func once(tool string, args any) func(fakemodel.Request) fakemodel.Reply {
	return func(r fakemodel.Request) fakemodel.Reply {
		if results := r.Results(); len(results) > 0 {
			return fakemodel.Text("result: " + results[len(results)-1].Content)
		}
		return fakemodel.Calls(fakemodel.Call{Name: tool, Args: encode(args)})
	}
}

func encode(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b)
}

func stop(t testing.TB, a *harness.Agent, id string) string {
	t.Helper()
	m := a.Await(id)
	if m.Error != nil {
		t.Fatalf("the prompt failed: %v", m.Error)
	}
	var r struct{ StopReason string }
	if err := json.Unmarshal(m.Result, &r); err != nil {
		t.Fatal(err)
	}
	return r.StopReason
}

func transcript(a *harness.Agent, session string) string {
	var b strings.Builder
	for _, u := range a.Updates(session) {
		fmt.Fprintf(&b, "%s\n", u)
	}
	return b.String()
}
