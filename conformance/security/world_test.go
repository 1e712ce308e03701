// Package security_test attacks the real binary: a fake model plays one that obeys an attacker, the repositories are hostile, and so are the
// MCP servers. Each attack has a row in docs/security.md, and each row a test.
//
// A test looks at what an attacker would want: a file outside that was written or read, a program that ran, a question that says something
// else than what happens. The words by which an attack is refused are none of its business.
package security_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"holdfast/conformance/fakemodel"
	"holdfast/conformance/harness"
)

// abreast is how many worlds run at once: they mostly wait for processes that start.
const abreast = 4

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

// modelKey is a credential that only the model's endpoint may see.
const modelKey = "sk-model-key-of-ours-4711"

// precious is what lies outside the workspace.
const precious = "precious and private\n"

// ask is one permission question as the editor got it.
type ask struct {
	Title string
	Raw   string
}

// world is one store, one work tree, a folder outside of it, and one model.
type world struct {
	t                        *testing.T
	dir, home, work, outside string
	model                    *fakemodel.Server
	servers                  []any
	env                      []string
	args                     []string
	choose                   func(ask) string // nil refuses everything

	mu   sync.Mutex
	plan [][]fakemodel.Call // one answer of the model after the other
	made int
	asks []ask
}

func newWorld(t *testing.T) *world {
	t.Helper()
	dir, err := os.MkdirTemp("", "hs-") // short: the path of a socket is limited
	if err != nil {
		t.Fatal(err)
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, dir: dir, home: filepath.Join(dir, "home"), work: filepath.Join(dir, "work"), outside: filepath.Join(dir, "outside")}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	for _, d := range []string{w.work, w.outside} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	w.put(w.outside, "secret.txt", precious)
	w.model = fakemodel.New(w.next)
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
		w.t.Logf("log:\n%s", b[max(0, len(b)-20_000):])
	}
	for i, r := range w.results() {
		w.t.Logf("result %d: %.500s", i, r)
	}
}

// next is the model: it makes the calls it was told to make, in order, and then says that it is done.
func (w *world) next(fakemodel.Request) fakemodel.Reply {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.made < len(w.plan) {
		w.made++
		return fakemodel.Calls(w.plan[w.made-1]...)
	}
	return fakemodel.Text("done\n")
}

// will adds one answer with these calls.
func (w *world) will(calls ...fakemodel.Call) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.plan = append(w.plan, calls)
}

func tool(name string, args any) fakemodel.Call {
	return fakemodel.Call{Name: name, Args: encode(args)}
}

// m is an object of JSON.
type m = map[string]any

func encode(v any) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(err)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

func (w *world) put(dir, name, text string) string {
	w.t.Helper()
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o755); err != nil { // a fixture may be a program
		w.t.Fatal(err)
	}
	return path
}

func (w *world) link(target, name string) {
	w.t.Helper()
	if err := os.Symlink(target, filepath.Join(w.work, name)); err != nil {
		w.t.Fatal(err)
	}
}

// git runs git in the work tree, with nothing of the machine's own settings.
func (w *world) git(args ...string) {
	w.t.Helper()
	c := exec.Command("git", append([]string{"-c", "user.name=a", "-c", "user.email=a@localhost", "-c", "init.defaultBranch=main"}, args...)...)
	c.Dir, c.Env = w.work, append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1")
	if out, err := c.CombinedOutput(); err != nil {
		w.t.Fatalf("git %v: %v\n%s", args, err, out)
	}
}

func (w *world) environ() []string {
	env := append([]string{"HOME=" + w.dir, "HOLDFAST_HOME=" + w.home, "HOLDFAST_LOG=info", "OPENAI_API_KEY=" + modelKey, "ANTHROPIC_API_KEY=" + modelKey},
		w.model.Env(fakemodel.Family())...)
	return append(env, w.env...)
}

func (w *world) start() *harness.Agent {
	w.t.Helper()
	plain, _, err := harness.Binaries()
	if err != nil {
		w.t.Fatal(err)
	}
	a := harness.Start(w.t, harness.Options{Binary: plain, Args: w.args, Env: w.environ(), Dir: w.work, Permission: w.permit})
	a.Initialize()
	return a
}

func (w *world) permit(params json.RawMessage) string {
	var p struct{ ToolCall struct{ Title string } }
	if err := json.Unmarshal(params, &p); err != nil {
		w.t.Error(err)
	}
	q := ask{Title: p.ToolCall.Title, Raw: string(params)}
	w.mu.Lock()
	w.asks = append(w.asks, q)
	w.mu.Unlock()
	if w.choose == nil {
		return "reject_once"
	}
	return w.choose(q)
}

func (w *world) asked() []ask {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]ask(nil), w.asks...)
}

func (w *world) open(a *harness.Agent, cwd string) string {
	w.t.Helper()
	servers := w.servers
	if servers == nil {
		servers = []any{}
	}
	var r struct{ SessionID string }
	a.Must("session/new", m{"cwd": cwd, "mcpServers": servers}, &r)
	return r.SessionID
}

// attack lets the model do what it was told in a fresh session, in a mode, and waits for the end of the turn.
func (w *world) attack(mode string) (*harness.Agent, string) {
	w.t.Helper()
	a := w.start()
	id := w.open(a, w.work)
	w.mode(a, id, mode)
	w.prompt(a, id)
	return a, id
}

func (w *world) mode(a *harness.Agent, id, mode string) {
	w.t.Helper()
	if mode != "ask" {
		a.Must("session/set_mode", m{"sessionId": id, "modeId": mode}, nil)
	}
}

func (w *world) prompt(a *harness.Agent, id string) {
	w.t.Helper()
	w.ended(a, a.Prompt(id, "go"))
}

// ended waits for the end of a turn, which must not be an error.
func (w *world) ended(a *harness.Agent, prompt string) {
	w.t.Helper()
	if msg := a.Await(prompt); msg.Error != nil || !bytes.Contains(msg.Result, []byte("end_turn")) {
		w.t.Fatalf("the turn ended with %v %s", msg.Error, msg.Result)
	}
}

// run is the command line.
func (w *world) run(dir string, args ...string) string {
	w.t.Helper()
	plain, _, err := harness.Binaries()
	if err != nil {
		w.t.Fatal(err)
	}
	c := exec.Command(plain, args...)
	c.Dir, c.Env = dir, append([]string{"PATH=" + os.Getenv("PATH")}, w.environ()...)
	out, _ := c.CombinedOutput() // what it says and does is looked at, not how it ends
	return string(out)
}

// results are what the model was told, all of them.
func (w *world) results() []string {
	all := w.model.Requests()
	if len(all) == 0 {
		return nil
	}
	var out []string
	for _, r := range all[len(all)-1].Results() {
		out = append(out, r.Content)
	}
	return out
}

// safe checks that nothing outside was changed, added or read.
func (w *world) safe() {
	w.t.Helper()
	if b, err := os.ReadFile(filepath.Join(w.outside, "secret.txt")); err != nil || string(b) != precious {
		w.t.Errorf("the file outside holds %q, %v", b, err)
	}
	entries, err := os.ReadDir(w.outside)
	if err != nil || len(entries) != 1 {
		w.t.Errorf("outside are %v, %v", entries, err)
	}
	for _, r := range w.model.Requests() {
		if bytes.Contains(r.Body, []byte(strings.TrimSpace(precious))) {
			w.t.Errorf("request %d tells the model what is outside", r.N)
		}
	}
}

// absent checks that an attacker's program left no mark.
func (w *world) absent(path, what string) {
	w.t.Helper()
	if _, err := os.Lstat(path); err == nil {
		w.t.Errorf("%s: %s is there", what, path)
	}
}

// unchanged checks one file.
func (w *world) unchanged(path, want string) {
	w.t.Helper()
	if b, err := os.ReadFile(path); err != nil || string(b) != want {
		w.t.Errorf("%s holds %q, %v; want %q", path, b, err, want)
	}
}

// outputs are all bytes that the agent sent to the editor and to the model.
func (w *world) outputs(a *harness.Agent) []string {
	var out []string
	for _, msg := range a.Log() {
		out = append(out, string(msg.Raw))
	}
	for _, r := range w.model.Requests() {
		out = append(out, string(r.Body))
	}
	return out
}
