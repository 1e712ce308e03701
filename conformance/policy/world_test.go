// Package policy_test holds the real binary to its permission policy: a model that tries everything, and what becomes of it.
package policy_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
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

// world is a store, a work tree, a home directory with a key in it, and a folder that nothing may touch.
type world struct {
	t                          *testing.T
	state, work, home, outside string
	model                      *fakemodel.Server
	a                          *harness.Agent
	session                    string
	env                        []string

	mu     sync.Mutex
	asked  []string
	answer string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, state: filepath.Join(dir, "state"), work: filepath.Join(dir, "work"), home: filepath.Join(dir, "home"), outside: filepath.Join(dir, "outside"),
		model: fakemodel.New(obeying), answer: "reject_once"}
	t.Cleanup(w.model.Close)
	for _, d := range []string{w.work, w.outside, filepath.Join(w.home, ".ssh"), w.state} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	w.write(filepath.Join(w.outside, "kept"), "kept\n")
	w.write(filepath.Join(w.home, ".ssh", "id"), "the-private-key\n")
	w.env = append(w.model.Env(fakemodel.Family()), "HOLDFAST_HOME="+w.state, "HOME="+w.home)
	return w
}

// obeying is a model that makes the one call a prompt names as "TOOL ARGS", and repeats what came of it.
func obeying(r fakemodel.Request) fakemodel.Reply {
	last := r.Messages[len(r.Messages)-1]
	for i := len(r.Messages) - 1; i > 0 && last.Role == "user" && strings.HasPrefix(last.Content, "["); i-- {
		last = r.Messages[i-1] // what Holdfast tells in between is no prompt
	}
	tool, args, _ := strings.Cut(last.Content, " ")
	if last.Role != "user" {
		return fakemodel.Text("done")
	}
	if tool == "run" {
		b, _ := json.Marshal(map[string]string{"command": args})
		tool, args = "shell", string(b)
	}
	return fakemodel.Calls(fakemodel.Call{Name: tool, Args: args})
}

func (w *world) write(path, text string) {
	w.t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
}

// launch starts the agent with a session in the mode. wall: with what confines commands, or as where there is nothing.
func (w *world) launch(mode string, wall bool) {
	w.t.Helper()
	plain, faulty, err := harness.Binaries()
	if err != nil {
		w.t.Fatal(err)
	}
	o := harness.Options{Binary: plain, Env: w.env, Permission: w.permission}
	if !wall {
		o.Binary, o.Env = faulty, append(w.env, "HOLDFAST_NO_WALL=1")
	}
	w.a = harness.Start(w.t, o)
	w.a.Initialize()
	if w.session == "" {
		w.session = w.a.NewSession(w.work)
	} else {
		w.a.Must("session/load", map[string]any{"sessionId": w.session, "cwd": w.work, "mcpServers": []any{}}, nil)
	}
	w.a.Must("session/set_mode", map[string]any{"sessionId": w.session, "modeId": mode}, nil)
}

func (w *world) permission(params json.RawMessage) string {
	var p struct{ ToolCall struct{ Title string } }
	_ = json.Unmarshal(params, &p)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asked = append(w.asked, p.ToolCall.Title)
	return w.answer
}

// outcome is what became of one call.
type outcome struct {
	Asked      bool
	Text       string // the result that the model got
	Permission string // why, as it is stored
	Title      string
}

// do has the model make a call and returns what became of it.
func (w *world) do(call string) outcome {
	w.t.Helper()
	w.mu.Lock()
	before := len(w.asked)
	w.mu.Unlock()
	id := w.a.Prompt(w.session, call)
	for range 20 { // the first build confined fills a cache of its own
		if _, ok := w.a.Find(func(m harness.Message) bool { return m.Method == "" && string(m.ID) == id }); ok {
			break
		}
	}
	w.a.Await(id)
	w.mu.Lock()
	defer w.mu.Unlock()
	reqs := w.model.Requests()
	o := outcome{Asked: len(w.asked) > before}
	if results := reqs[len(reqs)-1].Results(); len(results) > 0 {
		o.Text = results[len(results)-1].Content
	}
	return o
}

// stored is the last effect as the journal has it.
func (w *world) stored() (o struct{ Title, Permission, EffectID string }) {
	w.t.Helper()
	var list []struct{ EffectID string }
	w.cli(&list, "effects", "list", "--session", w.session)
	if len(list) == 0 {
		w.t.Fatal("there is no effect")
	}
	sort.Slice(list, func(i, j int) bool { return list[i].EffectID > list[j].EffectID })
	w.cli(&o, "effects", "show", list[0].EffectID)
	return o
}

func (w *world) cli(into any, args ...string) {
	w.t.Helper()
	plain, _, err := harness.Binaries()
	if err != nil {
		w.t.Fatal(err)
	}
	cmd := exec.Command(plain, append(args, "--json")...)
	cmd.Dir, cmd.Env = w.work, append(append([]string{}, w.env...), "PATH="+os.Getenv("PATH"))
	out, err := cmd.Output()
	if err != nil {
		w.t.Fatalf("%v: %v\n%s", args, err, out)
	}
	if err := json.Unmarshal(out, into); err != nil {
		w.t.Fatalf("%v: %v\n%s", args, err, out)
	}
}

// untouched fails when anything outside is not as it was.
func (w *world) untouched(what string) {
	w.t.Helper()
	entries, err := os.ReadDir(w.outside)
	b, e := os.ReadFile(filepath.Join(w.outside, "kept"))
	if err != nil || e != nil || len(entries) != 1 || string(b) != "kept\n" {
		w.t.Errorf("%s: the folder outside holds %v, %q, %v", what, entries, b, e)
	}
}

// needsWall skips where nothing confines commands.
func needsWall(w *world) {
	w.t.Helper()
	var d struct {
		Findings []struct{ Check, Level, Message string }
	}
	w.cli(&d, "doctor")
	for _, f := range d.Findings {
		if f.Check == "sandbox" && f.Level == "ok" {
			return
		}
	}
	w.t.Skipf("nothing confines commands here: %+v; on a Linux with Landlock or bubblewrap this runs with go test ./conformance/policy", d.Findings)
}
