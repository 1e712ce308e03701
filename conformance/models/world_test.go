// Package models_test holds the real binary to what it promises of models: whichever wire it speaks, whatever the endpoint takes back or
// refuses, and whoever is asked next, a session goes on with what was said and done. Only the language model is played.
package models_test

import (
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

func TestMain(m *testing.M) {
	code := m.Run()
	harness.Cleanup()
	os.Exit(code)
}

// world is one store, one work tree and one model.
type world struct {
	t               *testing.T
	dir, home, work string
	model           *fakemodel.Server
	env             []string // beside the state directory: which model it is

	mu     sync.Mutex
	answer func(r fakemodel.Request) fakemodel.Reply
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
	w := &world{t: t, dir: dir, home: filepath.Join(dir, "home"), work: filepath.Join(dir, "work"), answer: said}
	w.model = fakemodel.New(func(r fakemodel.Request) fakemodel.Reply {
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.answer(r)
	})
	t.Cleanup(func() {
		w.explain()
		w.model.Close()
		harness.Eventually(t, "nothing writes there any more", func() bool { return os.RemoveAll(dir) == nil })
	})
	for _, d := range []string{w.work, w.home} {
		if err := os.Mkdir(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return w
}

// said repeats what the user said last.
func said(r fakemodel.Request) fakemodel.Reply {
	return fakemodel.Text("You said: " + r.LastUser())
}

func (w *world) set(fn func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	fn()
}

func (w *world) explain() {
	if !w.t.Failed() {
		return
	}
	if b, err := os.ReadFile(filepath.Join(w.home, "log.jsonl")); err == nil {
		w.t.Logf("log:\n%s", b)
	}
	for _, r := range w.model.Requests() {
		w.t.Logf("request %d %s to %s, refused %q: %.300s", r.N, r.Family, r.Model, r.Refused, r.Body)
	}
}

func (w *world) configure(text string) {
	w.t.Helper()
	if err := os.WriteFile(filepath.Join(w.home, "config.toml"), []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) write(name, text string) {
	w.t.Helper()
	if err := os.WriteFile(filepath.Join(w.work, name), []byte(text), 0o644); err != nil {
		w.t.Fatal(err)
	}
}

// launch starts an agent in which everything is allowed. With a point it dies there.
func (w *world) launch(point string) *harness.Agent {
	w.t.Helper()
	plain, faulty, err := harness.Binaries()
	if err != nil {
		w.t.Fatal(err)
	}
	bin, env := plain, append([]string{"HOLDFAST_HOME=" + w.home, "HOLDFAST_LOG=info"}, w.env...)
	if point != "" {
		bin = faulty
		env = append(env, "HOLDFAST_CRASH="+point, "HOLDFAST_CRASH_LOG="+filepath.Join(w.dir, "fired"))
	}
	a := harness.Start(w.t, harness.Options{Binary: bin, Env: env})
	a.Initialize()
	return a
}

// dies waits until an agent has died at its point.
func (w *world) dies(a *harness.Agent, point string) {
	w.t.Helper()
	select {
	case <-a.Ended():
	case <-time.After(harness.Limit):
	}
	if b, _ := os.ReadFile(filepath.Join(w.dir, "fired")); !strings.HasPrefix(string(b), point+" kill ") {
		w.t.Fatalf("the crash point did not fire: %q", b)
	}
}

// load opens a session that was there before.
func (w *world) load(a *harness.Agent, session string) {
	w.t.Helper()
	a.Must("session/load", map[string]any{"sessionId": session, "cwd": w.work, "mcpServers": []any{}}, nil)
}

// say prompts and waits for the end of the turn. It returns what the agent said meanwhile.
func (w *world) say(a *harness.Agent, session, text string) string {
	w.t.Helper()
	before := len(a.Text(session))
	m := a.Await(a.Prompt(session, text))
	if m.Error != nil {
		w.t.Fatalf("%.80s: %v", text, m.Error)
	}
	return a.Text(session)[before:]
}

// command runs the binary to its end.
func (w *world) command(args ...string) string {
	w.t.Helper()
	plain, _, err := harness.Binaries()
	if err != nil {
		w.t.Fatal(err)
	}
	cmd := exec.Command(plain, args...)
	cmd.Env, cmd.Dir = append([]string{"PATH=" + os.Getenv("PATH"), "HOLDFAST_HOME=" + w.home}, w.env...), w.work
	cmd.WaitDelay = time.Second
	out, err := cmd.Output()
	if err != nil {
		w.t.Fatalf("holdfast %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// states are those of all requests on record, in their order.
func (w *world) states() []string {
	w.t.Helper()
	return harness.Rows(w.t, w.home, "SELECT state || ' ' || (input_tokens + output_tokens) FROM requests ORDER BY started_at, id")
}

// thoughts are all that a request holds of earlier reasoning.
func thoughts(r fakemodel.Request) (all []string) {
	for _, m := range r.Messages {
		all = append(all, m.Thoughts...)
	}
	return all
}
