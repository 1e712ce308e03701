// Package windows_test opens two editors over one store: with other keys, endpoints, programs, modes and servers. Two model servers say
// what reached whom; files say what commands had. Only the language models are played.
package windows_test

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

// abreast is how many worlds run at once: they mostly wait.
const abreast = 4

func TestMain(m *testing.M) {
	flag.Parse()
	_ = flag.Set("test.parallel", strconv.Itoa(abreast))
	code := m.Run()
	harness.Cleanup()
	os.Exit(code)
}

// world is one store and one work tree.
type world struct {
	t               *testing.T
	dir, home, work string
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
	w := &world{t: t, dir: dir, home: filepath.Join(dir, "home"), work: filepath.Join(dir, "work")}
	t.Cleanup(func() {
		harness.Eventually(t, "nothing writes there any more", func() bool { return os.RemoveAll(dir) == nil })
	})
	t.Cleanup(func() {
		if b, err := os.ReadFile(filepath.Join(w.home, "log.jsonl")); err == nil && t.Failed() {
			t.Logf("log:\n%s", b)
		}
	})
	if err := os.Mkdir(w.work, 0o755); err != nil {
		t.Fatal(err)
	}
	return w
}

// script is what a model does for prompts: the calls, one after the other, and then "done NAME PROMPT".
type script map[string][]fakemodel.Call

// editor is one editor with an endpoint, a key, an environment and a folder of programs of its own. It may be launched several times.
type editor struct {
	w     *world
	name  string
	key   string
	model *fakemodel.Server
	env   []string
	bin   string // its folder of programs; "whose" prints the editor's name

	*harness.Agent
	mu    sync.Mutex
	gates map[string]chan struct{} // by prompt: the answer is held until it is closed
	asked int
	leave bool // questions are left open
}

func (w *world) editor(name string, s script) *editor {
	w.t.Helper()
	e := &editor{w: w, name: name, key: "sk-" + name + "-0123456789", bin: filepath.Join(w.dir, "bin-"+name), gates: map[string]chan struct{}{}}
	if err := os.Mkdir(e.bin, 0o755); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(e.bin, "whose"), []byte("#!/bin/sh\necho I am of "+name+"\n"), 0o755); err != nil {
		w.t.Fatal(err)
	}
	e.model = fakemodel.New(func(r fakemodel.Request) fakemodel.Reply { return e.answer(s, r) })
	w.t.Cleanup(e.model.Close)
	w.t.Cleanup(func() {
		for prompt := range e.gates {
			e.open(prompt)
		}
		for _, r := range e.model.Requests() {
			if w.t.Failed() {
				w.t.Logf("at %s's endpoint: %d messages, the last: %+v", name, len(r.Messages), r.Messages[len(r.Messages)-1])
			}
		}
	})
	return e
}

// like is another editor with the endpoint and the key of e.
func (e *editor) like(name string) *editor {
	f := e.w.editor(name, nil)
	f.model, f.key = e.model, e.key
	return f
}

func (e *editor) answer(s script, r fakemodel.Request) fakemodel.Reply {
	prompt, made := "", 0
	for _, m := range r.Messages {
		if m.Role == "user" && !strings.HasPrefix(m.Content, "[") {
			prompt, made = m.Content, 0
		}
		if m.Role == "tool" {
			made++
		}
	}
	if made < len(s[prompt]) {
		return fakemodel.Calls(s[prompt][made])
	}
	reply := fakemodel.Text("done " + e.name + " " + prompt + "\n")
	if g := e.gate(prompt); g != nil {
		reply.Steps = append([]fakemodel.Step{fakemodel.Gate(g)}, reply.Steps...)
	}
	return reply
}

// hold makes the last answer to a prompt wait.
func (e *editor) hold(prompt string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.gates[prompt] = make(chan struct{})
}

func (e *editor) gate(prompt string) chan struct{} {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.gates[prompt]
}

func (e *editor) open(prompt string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	select {
	case <-e.gates[prompt]:
	default:
		close(e.gates[prompt])
	}
}

// environment is what the editor passes to what it launches.
func (e *editor) environment() []string {
	env := []string{"HOLDFAST_HOME=" + e.w.home, "HOLDFAST_LOG=info", "PATH=" + e.bin + ":" + os.Getenv("PATH"), "OPENAI_API_KEY=" + e.key, "ANTHROPIC_API_KEY=" + e.key}
	return append(append(env, e.model.Env(fakemodel.Family())...), e.env...)
}

// launch starts the editor's agent. It opens nothing.
func (e *editor) launch() *editor {
	e.w.t.Helper()
	plain, _, err := harness.Binaries()
	if err != nil {
		e.w.t.Fatal(err)
	}
	e.Agent = harness.Start(e.w.t, harness.Options{Binary: plain, Env: e.environment(), Permission: func(json.RawMessage) string {
		e.mu.Lock()
		defer e.mu.Unlock()
		if e.asked++; e.leave {
			return ""
		}
		return "allow_once"
	}})
	e.Must("initialize", map[string]any{"protocolVersion": 1, "clientCapabilities": map[string]any{}, "clientInfo": map[string]any{"name": e.name, "version": "7"}}, nil)
	return e
}

func (e *editor) load(session string, servers ...any) {
	e.w.t.Helper()
	e.Must("session/load", map[string]any{"sessionId": session, "cwd": e.w.work, "mcpServers": append([]any{}, servers...)}, nil)
}

// say prompts and waits for the answer.
func (e *editor) say(session, prompt string) string {
	e.w.t.Helper()
	return e.ended(e.Prompt(session, prompt))
}

func (e *editor) ended(id string) string {
	e.w.t.Helper()
	m := e.Await(id)
	if m.Error != nil {
		e.w.t.Fatalf("the prompt failed: %v", m.Error)
	}
	var r struct{ StopReason string }
	if err := json.Unmarshal(m.Result, &r); err != nil {
		e.w.t.Fatal(err)
	}
	return r.StopReason
}

func (e *editor) questions() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.asked
}

// shows waits until the editor has shown the text.
func (e *editor) shows(session, text string) {
	e.w.t.Helper()
	harness.Eventually(e.w.t, e.name+" shows "+text, func() bool { return strings.Contains(e.Text(session), text) })
}

// received waits until so many requests have reached the editor's endpoint.
func (e *editor) received(n int) {
	e.w.t.Helper()
	harness.Eventually(e.w.t, strconv.Itoa(n)+" requests at "+e.name+"'s endpoint", func() bool { return len(e.model.Requests()) >= n })
}

// only fails unless exactly so many requests have reached the endpoint, all with the editor's key.
func (e *editor) only(n int) {
	e.w.t.Helper()
	got := e.model.Requests()
	if len(got) != n {
		e.w.t.Errorf("%d requests reached %s's endpoint, want %d", len(got), e.name, n)
	}
	for _, r := range got {
		if key := r.Header.Get("Authorization") + r.Header.Get("X-Api-Key"); !strings.Contains(key, e.key) {
			e.w.t.Errorf("%s's endpoint got another key", e.name)
		}
	}
}

// cli runs a command in the editor's environment.
func (e *editor) cli(args ...string) string {
	e.w.t.Helper()
	cmd := exec.Command(e.binary(), args...)
	cmd.Env, cmd.Dir = e.environment(), e.w.work
	out, err := cmd.CombinedOutput()
	if _, exited := err.(*exec.ExitError); err != nil && !exited {
		e.w.t.Fatal(err)
	}
	return string(out)
}

func (e *editor) binary() string {
	plain, _, err := harness.Binaries()
	if err != nil {
		e.w.t.Fatal(err)
	}
	return plain
}

// view is a session as the command line shows it.
type view struct {
	State, ReasonCode, Reason, Mode string
	OwnerPid                        int
	Windows                         []struct {
		Pid                              int
		Client, Version, Model, Endpoint string
		Answers                          bool
		Environment                      string
	}
}

func (e *editor) view(session string) (v view) {
	e.w.t.Helper()
	out := e.cli("sessions", "show", session, "--json")
	var doc struct{ Session view }
	if err := json.Unmarshal([]byte(out), &doc); err != nil {
		e.w.t.Fatalf("sessions show: %v: %s", err, out)
	}
	return doc.Session
}

// waits waits until the session is shown as waiting for that reason.
func (e *editor) waits(session, code string) view {
	e.w.t.Helper()
	var v view
	harness.Eventually(e.w.t, "the session waits: "+code, func() bool { v = e.view(session); return v.ReasonCode == code })
	return v
}

// shell is a call that appends what a command line prints to a file.
func shell(command string) fakemodel.Call {
	b, err := json.Marshal(map[string]any{"command": "{ " + command + "; } >> said"})
	if err != nil {
		panic(err)
	}
	return fakemodel.Call{Name: "shell", Args: string(b)}
}

func (w *world) said() string {
	b, _ := os.ReadFile(filepath.Join(w.work, "said")) // it may not be there yet
	return string(b)
}

// stores fails when a file of the state directory holds the text.
func (w *world) stores(text string) (found []string) {
	w.t.Helper()
	err := filepath.WalkDir(w.home, func(path string, d os.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return nil // removed meanwhile
		}
		if b, err := os.ReadFile(path); err == nil && bytes.Contains(b, []byte(text)) {
			found = append(found, path)
		}
		return nil
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return found
}
