// Package edits_test holds the real binary to what it promises about changing files: every byte that was not named stays, what somebody else
// saved is never lost, several files change together or not at all, a death is told from the files, and what lies outside the workspace, what a
// program obeys by itself and what may hold secrets is asked about. Only the language model is played.
package edits_test

import (
	"encoding/json"
	"os"
	"os/exec"
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

// world is one store, one workspace and one model. The model makes the calls of a prompt one after the other.
type world struct {
	t               *testing.T
	dir, home, work string
	model           *fakemodel.Server

	mu     sync.Mutex
	calls  map[string][]fakemodel.Call
	asks   []question
	answer func(question) string // option id; nil allows once
}

// question is what the editor was asked, as far as these tests look.
type question struct {
	Title   string
	Paths   []string
	Diffs   []diff
	Options []string
}

type diff struct {
	Path    string
	OldText *string
	NewText string
	Meta    map[string]map[string]any `json:"_meta"`
}

func newWorld(t *testing.T) *world {
	t.Helper()
	dir, err := os.MkdirTemp("", "hf-") // short: the path of a socket is limited
	if err != nil {
		t.Fatal(err)
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, dir: dir, home: filepath.Join(dir, "home"), work: filepath.Join(dir, "work"), calls: map[string][]fakemodel.Call{}}
	w.must(os.Mkdir(w.work, 0o755))
	w.model = fakemodel.New(w.play)
	t.Cleanup(func() {
		w.explain()
		w.model.Close()
		harness.Eventually(t, "nothing writes there any more", func() bool { return os.RemoveAll(dir) == nil })
	})
	return w
}

func (w *world) explain() {
	if !w.t.Failed() {
		return
	}
	if b, err := os.ReadFile(filepath.Join(w.home, "log.jsonl")); err == nil {
		w.t.Logf("log:\n%s", b)
	}
	for _, r := range w.model.Requests() {
		w.t.Logf("request %d %s: the last of %d messages: %.600v", r.N, r.Refused, len(r.Messages), r.Messages[len(r.Messages)-1])
	}
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) play(r fakemodel.Request) fakemodel.Reply {
	w.mu.Lock()
	defer w.mu.Unlock()
	prompt, made := "", 0
	for _, m := range r.Messages {
		if _, ok := w.calls[m.Content]; ok && m.Role == "user" {
			prompt, made = m.Content, 0
		}
		if m.Role == "tool" {
			made++
		}
	}
	if made < len(w.calls[prompt]) {
		return fakemodel.Calls(w.calls[prompt][made])
	}
	return fakemodel.Text("done " + prompt + "\n")
}

// on says what the model calls for a prompt.
func (w *world) on(prompt string, calls ...fakemodel.Call) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.calls[prompt] = calls
}

func tool(name string, args any) fakemodel.Call {
	b, err := json.Marshal(args)
	if err != nil {
		panic(err)
	}
	return fakemodel.Call{Name: name, Args: string(b)}
}

type object = map[string]any

func editing(path, old, now string) fakemodel.Call {
	return tool("edit", object{"path": path, "edits": []any{object{"old": old, "new": now}}})
}

func patching(patch string) fakemodel.Call { return tool("apply_patch", object{"patch": patch}) }

// launch starts the agent; crash is a crash point of the binary that has them.
func (w *world) launch(crash string) *harness.Agent {
	w.t.Helper()
	plain, faulty, err := harness.Binaries()
	w.must(err)
	o := harness.Options{Binary: plain, Env: append([]string{"HOLDFAST_HOME=" + w.home, "HOLDFAST_LOG=info"}, w.model.Env(fakemodel.Family())...), Permission: w.permit}
	if crash != "" {
		o.Binary, o.Env = faulty, append(o.Env, "HOLDFAST_CRASH="+crash, "HOLDFAST_CRASH_LOG="+w.path("fired"))
	}
	a := harness.Start(w.t, o)
	a.Must("initialize", map[string]any{"protocolVersion": 1, "clientCapabilities": map[string]any{}}, nil)
	return a
}

func (w *world) permit(params json.RawMessage) string {
	var p struct {
		ToolCall struct {
			Title     string
			Content   []json.RawMessage
			Locations []struct{ Path string }
		}
		Options []struct{ OptionID string }
	}
	if err := json.Unmarshal(params, &p); err != nil {
		w.t.Error(err)
	}
	q := question{Title: p.ToolCall.Title, Diffs: diffsOf(p.ToolCall.Content)}
	for _, l := range p.ToolCall.Locations {
		q.Paths = append(q.Paths, l.Path)
	}
	for _, o := range p.Options {
		q.Options = append(q.Options, o.OptionID)
	}
	w.mu.Lock()
	w.asks = append(w.asks, q)
	answer := w.answer
	w.mu.Unlock()
	if answer != nil {
		return answer(q)
	}
	return "allow_once"
}

func diffsOf(content []json.RawMessage) (out []diff) {
	for _, c := range content {
		var d struct {
			Type string
			diff
		}
		if json.Unmarshal(c, &d) == nil && d.Type == "diff" {
			out = append(out, d.diff)
		}
	}
	return out
}

func (w *world) asked() []question {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]question(nil), w.asks...)
}

// run launches the agent, in a mode where one is named, and makes the calls of one prompt. It returns what the model was told.
func (w *world) run(mode string, calls ...fakemodel.Call) []string {
	w.t.Helper()
	w.on("go", calls...)
	a := w.launch("")
	s := a.NewSession(w.work)
	if mode != "" {
		a.Must("session/set_mode", object{"sessionId": s, "modeId": mode}, nil)
	}
	w.say(a, s, "go")
	r := w.results()
	if len(r) != len(calls) {
		w.t.Fatalf("%d calls have the results %q", len(calls), r)
	}
	return r
}

func (w *world) say(a *harness.Agent, session, text string) {
	w.t.Helper()
	if m := a.Await(a.Prompt(session, text)); m.Error != nil || !strings.Contains(string(m.Result), "end_turn") {
		w.t.Fatalf("the prompt %q ended with %v %s", text, m.Error, m.Result)
	}
}

// results are what the model was told in its newest request.
func (w *world) results() (out []string) {
	all := w.model.Requests()
	for i := len(all) - 1; i >= 0 && len(out) == 0; i-- {
		for _, m := range all[i].Results() {
			out = append(out, m.Content)
		}
	}
	return out
}

// die prompts a process that dies at a point, and launches the next one, which tells what became of the call.
func (w *world) die(point string, calls ...fakemodel.Call) string {
	w.t.Helper()
	w.on("go", calls...)
	a := w.launch(point)
	s := a.NewSession(w.work)
	a.Prompt(s, "go")
	_ = a.Wait() // killed; the log says so
	if b, _ := os.ReadFile(w.path("fired")); !strings.HasPrefix(string(b), strings.TrimSuffix(point, ":after")) {
		w.t.Fatalf("the crash point %s did not fire: %q", point, b)
	}
	b := w.launch("")
	b.Must("session/load", object{"sessionId": s, "cwd": w.work, "mcpServers": []any{}}, nil)
	harness.Eventually(w.t, "the turn ends", func() bool { return strings.Contains(b.Text(s), "done go") })
	r := w.results()
	if len(r) != len(calls) {
		w.t.Fatalf("the model was told %q", r)
	}
	w.clean()
	return r[0]
}

func (w *world) path(name string) string { return filepath.Join(w.dir, name) }

// put writes a file of the workspace; a name with .. lies outside.
func (w *world) put(name, text string) {
	w.t.Helper()
	path := filepath.Join(w.work, name)
	w.must(os.MkdirAll(filepath.Dir(path), 0o755))
	w.must(os.WriteFile(path, []byte(text), 0o644))
}

// holds compares a file; "<absent>" is none.
func (w *world) holds(name, want string) {
	w.t.Helper()
	got := "<absent>"
	b, err := os.ReadFile(filepath.Join(w.work, name))
	if err == nil {
		got = string(b)
	}
	if got != want {
		w.t.Errorf("%s holds %q, want %q", name, got, want)
	}
}

// clean says that nothing temporary was left.
func (w *world) clean() {
	w.t.Helper()
	w.must(filepath.WalkDir(w.work, func(path string, _ os.DirEntry, err error) error {
		if strings.Contains(path, ".holdfast-tmp-") {
			w.t.Errorf("left behind: %s", path)
		}
		return err
	}))
}

func (w *world) contains(text string, wants ...string) {
	w.t.Helper()
	for _, want := range wants {
		if !strings.Contains(text, want) {
			w.t.Errorf("%q is missing in %q", want, text)
		}
	}
}

// facts lists what the journal says of the calls of a tool.
func (w *world) facts(tool string) (out []string) {
	w.t.Helper()
	plain, _, err := harness.Binaries()
	w.must(err)
	cmd := exec.Command(plain, "effects", "list", "--json")
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOLDFAST_HOME=" + w.home}
	b, err := cmd.Output()
	w.must(err)
	var all []struct{ Tool, Fact, SettledBy string }
	w.must(json.Unmarshal(b, &all))
	for _, e := range all {
		if e.Tool == tool {
			out = append(out, e.Fact+" by "+e.SettledBy)
		}
	}
	return out
}
