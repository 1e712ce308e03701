// Package servers_test gives the real binary external MCP servers: the official ones from npm, and a hostile one. The servers' own logs and
// files say what reached them. Only the language model is played, by a local server that speaks the real wire.
package servers_test

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"

	"holdfast/conformance/fakemodel"
	"holdfast/conformance/harness"
)

// abreast is how many worlds run at once: they mostly wait for processes that start.
const abreast = 6

func TestMain(m *testing.M) {
	flag.Parse()
	_ = flag.Set("test.parallel", strconv.Itoa(abreast))
	code := m.Run()
	harness.Cleanup()
	if hostile.dir != "" {
		_ = os.RemoveAll(hostile.dir)
	}
	os.Exit(code)
}

// world is one store, one work tree, one set of servers and one model. They outlive the processes of a test.
type world struct {
	t               *testing.T
	dir, home, work string
	model           *fakemodel.Server
	servers         []map[string]any
	entries         []json.RawMessage // more of them, as they are
	env             []string          // of the agent, beside what it needs
	choose          func(ask) string
	capabilities    map[string]any

	mu     sync.Mutex
	answer func(fakemodel.Request) fakemodel.Reply
	asks   []ask
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
func (w *world) start(crash string) *harness.Agent {
	w.t.Helper()
	plain, faulty, err := harness.Binaries()
	if err != nil {
		w.t.Fatal(err)
	}
	env := append([]string{"HOLDFAST_HOME=" + w.home, "HOLDFAST_LOG=info", "OPENAI_API_KEY=" + modelKey, "ANTHROPIC_API_KEY=" + modelKey}, w.model.Env(fakemodel.Family())...)
	o := harness.Options{Binary: plain, Env: append(env, w.env...), Permission: w.permit}
	if crash != "" {
		o.Binary, o.Env = faulty, append(o.Env, "HOLDFAST_CRASH="+crash, "HOLDFAST_CRASH_LOG="+filepath.Join(w.dir, "fired"))
	}
	a := harness.Start(w.t, o)
	capabilities := w.capabilities
	if capabilities == nil {
		capabilities = map[string]any{}
	}
	a.Must("initialize", map[string]any{"protocolVersion": 1, "clientCapabilities": capabilities}, nil)
	return a
}

// modelKey is a credential of ours that no server may see.
const modelKey = "sk-model-key-of-ours"

func (w *world) params(session string) map[string]any {
	servers := []any{}
	for _, s := range w.servers {
		servers = append(servers, s)
	}
	for _, e := range w.entries {
		servers = append(servers, e)
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

// turns are the calls that the model makes for a prompt, one after the other.
type turns map[string][]fakemodel.Call

// follow plays turns. A turn ends with "done PROMPT".
func follow(t turns) func(fakemodel.Request) fakemodel.Reply {
	return func(r fakemodel.Request) fakemodel.Reply {
		prompt, made := "", 0
		for _, m := range r.Messages {
			if _, ok := t[m.Content]; ok && m.Role == "user" {
				prompt, made = m.Content, 0
			}
			if m.Role == "tool" {
				made++
			}
		}
		if made < len(t[prompt]) {
			return fakemodel.Calls(t[prompt][made])
		}
		return fakemodel.Text("done " + prompt + "\n")
	}
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
