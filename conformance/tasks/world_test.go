// Package tasks_test lets the real binary do programmers' work in small repositories of several languages: rename across files, fix a failing
// test, move code between files. The model is scripted, the rest is real: the language's own tools run in the work, and the
// repository's own tests decide at the end. Each task is also done by an agent that is killed in the middle of it, again and again.
package tasks_test

import (
	"bytes"
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

// task is one piece of work.
type task struct {
	needs string            // a program without which it cannot be done here
	files map[string]string // the repository
	calls []fakemodel.Call  // what the model does, one after the other
	check string            // a command that fails before the work and succeeds after it
	gone  string            // a word that no file holds afterwards
	sees  []string          // words that the model must have been shown, in this order
}

// world is one task being done.
type world struct {
	t               *testing.T
	task            task
	dir, home, work string
	model           *fakemodel.Server

	mu     sync.Mutex
	made   int           // the most calls whose results the model has seen
	killAt int           // after so many results
	kill   chan struct{} // closed then
}

func newWorld(t *testing.T, task task) *world {
	t.Helper()
	if _, err := exec.LookPath(task.needs); err != nil {
		t.Skipf("%s is not installed; to run it, install it and: go test -run '%s' ./conformance/tasks", task.needs, t.Name())
	}
	dir, err := os.MkdirTemp("", "ht-") // short: the path of a socket is limited
	if err != nil {
		t.Fatal(err)
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, task: task, dir: dir, home: filepath.Join(dir, "home"), work: filepath.Join(dir, "work"), killAt: -1}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	for name, text := range task.files {
		path := filepath.Join(w.work, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range [][]string{{"init", "-q"}, {"add", "-A"}, {"-c", "user.name=a", "-c", "user.email=a@localhost", "commit", "-qm", "first"}} {
		c := exec.Command("git", args...)
		c.Dir = w.work
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	if out, err := w.command(task.check); err == nil {
		t.Fatalf("before the work the check succeeds: %s", out)
	}
	w.model = fakemodel.New(w.next)
	t.Cleanup(func() {
		if err := fakemodel.ResultsPerCall(w.model.Requests()); err != nil {
			t.Errorf("the model refused the history: %v", err)
		}
		w.model.Close()
	})
	return w
}

// next is the model: it goes on where the history stands.
func (w *world) next(r fakemodel.Request) fakemodel.Reply {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := len(r.Results())
	w.made = max(w.made, n)
	if n == w.killAt {
		w.killAt = -1
		close(w.kill)
		return fakemodel.Reply{End: fakemodel.EndStall}
	}
	if n < len(w.task.calls) {
		return fakemodel.Calls(w.task.calls[n])
	}
	return fakemodel.Text("done\n")
}

// command runs a command in the work tree as its owner would.
func (w *world) command(line string) (string, error) {
	c := exec.Command("sh", "-c", line)
	c.Dir, c.Env = w.work, append(os.Environ(), "GOTOOLCHAIN=local", "GOFLAGS=", "GOWORK=off")
	out, err := c.CombinedOutput()
	return string(out), err
}

func (w *world) start() *harness.Agent {
	w.t.Helper()
	plain, _, err := harness.Binaries()
	if err != nil {
		w.t.Fatal(err)
	}
	env := append([]string{"HOLDFAST_HOME=" + w.home, "OPENAI_API_KEY=k", "ANTHROPIC_API_KEY=k", "GOTOOLCHAIN=local", "GOWORK=off"}, w.model.Env(fakemodel.Family())...)
	for _, name := range []string{"GOCACHE", "GOROOT", "PYENV_ROOT", "HOME"} {
		if v := os.Getenv(name); v != "" {
			env = append(env, name+"="+v)
		}
	}
	a := harness.Start(w.t, harness.Options{Binary: plain, Env: env, Dir: w.work})
	a.Initialize()
	return a
}

// straight does the task in one go.
func (w *world) straight() {
	w.t.Helper()
	a := w.start()
	_, prompt := w.begin(a)
	if m := a.Await(prompt); m.Error != nil || !bytes.Contains(m.Result, []byte("end_turn")) {
		w.t.Fatalf("the turn ended with %v %s", m.Error, m.Result)
	}
}

// begin opens a session in which file edits are free, and prompts.
func (w *world) begin(a *harness.Agent) (session, prompt string) {
	w.t.Helper()
	session = a.NewSession(w.work)
	a.Must("session/set_mode", map[string]any{"sessionId": session, "modeId": "edit"}, nil)
	return session, a.Prompt(session, "Do the task.")
}

// killed does it with an agent that dies once the model has seen so many results, for each of these numbers. The
// next one opens the session again, so that somebody is there to be asked; the work goes on by itself.
func (w *world) killed(after ...int) {
	w.t.Helper()
	session := ""
	open := func(a *harness.Agent) {
		if session == "" {
			session, _ = w.begin(a)
			return
		}
		a.Must("session/load", map[string]any{"sessionId": session, "cwd": w.work, "mcpServers": []any{}}, nil)
	}
	for _, n := range after {
		kill := make(chan struct{})
		w.mu.Lock()
		w.killAt, w.kill = n, kill
		w.mu.Unlock()
		a := w.start()
		open(a)
		select {
		case <-kill:
		case <-a.Ended():
			w.t.Fatalf("the agent ended by itself: %s", a.Stderr())
		}
		a.Kill()
	}
	a := w.start()
	open(a)
	harness.Eventually(w.t, "the work is done", func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.made == len(w.task.calls)
	})
	_ = a.CloseInput()
}

// done checks what is there now.
func (w *world) done() {
	w.t.Helper()
	if out, err := w.command(w.task.check); err != nil {
		w.t.Errorf("the repository's own check: %v\n%s", err, out)
	}
	if w.task.gone != "" {
		if out, err := w.command("grep -rn --exclude-dir=.git --exclude-dir=__pycache__ -F '" + w.task.gone + "' ."); err == nil {
			w.t.Errorf("%s is still there:\n%s", w.task.gone, out)
		}
	}
	requests := w.model.Requests()
	var results []string
	for _, m := range requests[len(requests)-1].Results() {
		results = append(results, m.Content)
	}
	rest := strings.Join(results, "\n")
	for _, word := range w.task.sees {
		_, after, found := strings.Cut(rest, word)
		if !found {
			w.t.Errorf("the model was not shown %q in its place; it was shown\n%s", word, strings.Join(results, "\n---\n"))
		}
		rest = after
	}
	if out, _ := w.command("git status --porcelain | grep holdfast-tmp"); out != "" {
		w.t.Errorf("temporary files are left: %s", out)
	}
}

// both does a task straight and killed in the middle.
func both(t *testing.T, task task) {
	t.Run("straight", func(t *testing.T) {
		w := newWorld(t, task)
		w.straight()
		w.done()
	})
	t.Run("killed", func(t *testing.T) {
		w := newWorld(t, task)
		w.killed(1, len(task.calls)/2, len(task.calls)-1)
		w.done()
	})
}

func tool(name string, args map[string]any) fakemodel.Call {
	b, err := json.Marshal(args)
	if err != nil {
		panic(err)
	}
	return fakemodel.Call{Name: name, Args: string(b)}
}

func read(path string) fakemodel.Call { return tool("read", map[string]any{"path": path}) }

func grep(pattern string) fakemodel.Call { return tool("grep", map[string]any{"pattern": pattern}) }

func shell(line string) fakemodel.Call { return tool("shell", map[string]any{"command": line}) }

func write(path, text string) fakemodel.Call {
	return tool("write", map[string]any{"path": path, "content": text})
}

// edit replaces texts, in pairs of old and new, wherever they are.
func edit(path string, pairs ...string) fakemodel.Call {
	var edits []any
	for i := 0; i < len(pairs); i += 2 {
		edits = append(edits, map[string]any{"old": pairs[i], "new": pairs[i+1], "replace_all": true})
	}
	return tool("edit", map[string]any{"path": path, "edits": edits})
}
