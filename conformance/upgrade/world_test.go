// Package upgrade_test holds two releases of the real binary to what they promise of one store: the newer waits for the older and says so,
// the older is never harmed and never writes behind a newer schema, and no work is lost on the way. The newer one is the same tree with one
// more schema step. Only the language model is played.
package upgrade_test

import (
	"bytes"
	"database/sql"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	_ "github.com/mattn/go-sqlite3"

	"holdfast/conformance/fakemodel"
	"holdfast/conformance/harness"
)

// nextVersion is what the newer release calls itself.
const nextVersion = "9.9.9"

var build struct {
	once sync.Once
	dir  string
	err  error
}

func TestMain(m *testing.M) {
	code := m.Run()
	if build.dir != "" {
		_ = os.RemoveAll(build.dir)
	}
	os.Exit(code)
}

// binaries builds both releases; the newer one has crash points.
func binaries(t testing.TB) (old, next string) {
	t.Helper()
	build.once.Do(func() {
		if build.dir, build.err = os.MkdirTemp("", "holdfast-bin-"); build.err != nil {
			return
		}
		for name, args := range map[string][]string{"old": nil, "next": {"-tags", "faultpoints,nextschema", "-ldflags", "-X main.version=" + nextVersion}} {
			cmd := exec.Command("go", append(append([]string{"build", "-o", filepath.Join(build.dir, name)}, args...), "holdfast/cmd/holdfast")...)
			if out, err := cmd.CombinedOutput(); err != nil {
				build.err = fmt.Errorf("build %s: %w\n%s", name, err, out)
				return
			}
		}
	})
	if build.err != nil {
		t.Fatal(build.err)
	}
	return filepath.Join(build.dir, "old"), filepath.Join(build.dir, "next")
}

// world is one store, one work tree, one model and both releases.
type world struct {
	t               *testing.T
	dir, home, work string
	old, next       string
	model           *fakemodel.Server
	env             []string
}

func newWorld(t *testing.T, answer func(fakemodel.Request) fakemodel.Reply) *world {
	t.Helper()
	if answer == nil {
		answer = func(r fakemodel.Request) fakemodel.Reply { return fakemodel.Text("you said " + r.LastUser()) }
	}
	dir, err := os.MkdirTemp("", "hf-") // short: the path of a socket is limited
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, dir: dir, home: filepath.Join(dir, "home"), work: filepath.Join(dir, "work"), model: fakemodel.New(answer)}
	w.old, w.next = binaries(t)
	t.Cleanup(func() {
		if b, err := os.ReadFile(filepath.Join(w.home, "log.jsonl")); err == nil && t.Failed() {
			t.Logf("log:\n%s", b)
		}
		w.letGo()
		w.model.Close()
		harness.Eventually(t, "nothing writes there any more", func() bool { return os.RemoveAll(dir) == nil })
	})
	if err := os.Mkdir(w.work, 0o755); err != nil {
		t.Fatal(err)
	}
	w.env = []string{"HOLDFAST_HOME=" + w.home, "HOLDFAST_MODEL=openai/fake", "OPENAI_BASE_URL=" + w.model.URL()}
	return w
}

// editor launches an agent of one release.
func (w *world) editor(binary string, env ...string) *harness.Agent {
	w.t.Helper()
	a := harness.Start(w.t, harness.Options{Binary: binary, Env: append(env, w.env...)})
	a.Initialize()
	return a
}

// used makes a store with one conversation in it, by the older release, and returns the session.
func (w *world) used() string {
	w.t.Helper()
	a := w.editor(w.old)
	s := a.NewSession(w.work)
	w.says(a, s, "first")
	w.end(a)
	return s
}

// says sends a prompt and wants it answered.
func (w *world) says(a *harness.Agent, session, text string) {
	w.t.Helper()
	if m := a.Await(a.Prompt(session, text)); m.Error != nil {
		w.t.Fatalf("prompt: %v", m.Error)
	}
}

func (w *world) end(a *harness.Agent) {
	w.t.Helper()
	if err := a.CloseInput(); err != nil || a.Stderr() != "" {
		w.t.Errorf("it ended with %v, stderr %q", err, a.Stderr())
	}
}

// whole wants the conversation of used in the history of a session.
func (w *world) whole(a *harness.Agent, session string) {
	w.t.Helper()
	a.Must("session/load", w.params(session), nil)
	harness.Eventually(w.t, "the history is whole", func() bool { return strings.Contains(a.Text(session), "you said first") })
}

func (w *world) params(session string) map[string]any {
	return map[string]any{"sessionId": session, "cwd": w.work, "mcpServers": []any{}}
}

// refused wants every session request refused with a code and words.
func (w *world) refused(a *harness.Agent, session, code string, words ...string) {
	w.t.Helper()
	prompt := []any{map[string]any{"type": "text", "text": "hi"}}
	for method, params := range map[string]any{"session/new": map[string]any{"cwd": w.work, "mcpServers": []any{}}, "session/list": map[string]any{},
		"session/load": w.params(session), "session/resume": w.params(session), "session/prompt": map[string]any{"sessionId": session, "prompt": prompt}} {
		_, e := a.Call(method, params)
		w.told(method, e, code, words...)
	}
}

// told wants an error that names a code and says all of these words.
func (w *world) told(what string, e *harness.Error, code string, words ...string) {
	w.t.Helper()
	if e == nil {
		w.t.Errorf("%s: no error", what)
		return
	}
	var data struct{ Code, Action string }
	if err := json.Unmarshal(e.Data, &data); err != nil || data.Code != code || data.Action == "" {
		w.t.Errorf("%s: %v, want code %s and an action", what, e, code)
	}
	for _, word := range words {
		if !strings.Contains(e.Message, word) {
			w.t.Errorf("%s: %q does not say %q", what, e.Message, word)
		}
	}
}

// held is a command that counts its runs and goes on until the file go is there.
const held = "echo run >> counter; while [ ! -e go ]; do sleep 0.02; done"

// once answers with the command, and with a word when its result is there.
func once(command string) func(fakemodel.Request) fakemodel.Reply {
	args, err := json.Marshal(map[string]string{"command": command})
	if err != nil {
		panic(err)
	}
	return func(r fakemodel.Request) fakemodel.Reply {
		if len(r.Results()) == 0 {
			return fakemodel.Calls(fakemodel.Call{Name: "shell", Args: string(args)})
		}
		return fakemodel.Text("finished well")
	}
}

func (w *world) runs() int {
	b, _ := os.ReadFile(filepath.Join(w.work, "counter"))
	return bytes.Count(b, []byte("\n"))
}

func (w *world) begun() {
	w.t.Helper()
	harness.Eventually(w.t, "the command runs", func() bool { return w.runs() == 1 })
}

func (w *world) letGo() { _ = os.WriteFile(filepath.Join(w.work, "go"), nil, 0o600) } // the folder may be gone

// result is how a command ended.
type result struct {
	out, errs string
	code      int
}

func (w *world) run(binary string, args ...string) result {
	w.t.Helper()
	cmd := exec.Command(binary, args...)
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH")}, w.env...)
	cmd.Dir = w.work
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	stop := time.AfterFunc(2*harness.Limit, func() { _ = cmd.Process.Kill() })
	_ = cmd.Wait() // the code tells
	if !stop.Stop() {
		w.t.Fatalf("holdfast %v did not end; stdout %s stderr %s", args, out.String(), errs.String())
	}
	return result{out.String(), errs.String(), cmd.ProcessState.ExitCode()}
}

// want runs a command and wants an exit code and words on its output.
func (w *world) want(binary string, code int, args []string, words ...string) result {
	w.t.Helper()
	r := w.run(binary, args...)
	if r.code != code {
		w.t.Fatalf("holdfast %v ended with %d, want %d\nstdout: %s\nstderr: %s", args, r.code, code, r.out, r.errs)
	}
	for _, word := range words {
		if !strings.Contains(r.out+r.errs, word) {
			w.t.Errorf("holdfast %v does not say %q:\n%s%s", args, word, r.out, r.errs)
		}
	}
	return r
}

// mcp launches an MCP server of one release, which has the store open.
func (w *world) mcp(binary string) *harness.Agent {
	w.t.Helper()
	a := harness.Start(w.t, harness.Options{Binary: binary, Args: []string{"mcp"}, Env: w.env, Invalid: true})
	a.Must("initialize", map[string]any{"protocolVersion": "2025-11-25", "capabilities": map[string]any{},
		"clientInfo": map[string]any{"name": "conformance", "version": "1"}}, nil)
	a.Notify("notifications/initialized", nil)
	return a
}

// listing is the text of a tool call that lists the sessions.
func (w *world) listing(a *harness.Agent) string {
	w.t.Helper()
	var r struct{ Content []struct{ Text string } }
	a.Must("tools/call", map[string]any{"name": "list_sessions", "arguments": map[string]any{}}, &r)
	return r.Content[0].Text
}

func (w *world) backups() []string {
	names, _ := filepath.Glob(filepath.Join(w.home, "backups", "*")) // the pattern is a good one
	return names
}

// query reads one number from the store.
func (w *world) query(q string) (n int) {
	w.t.Helper()
	db, err := sql.Open("sqlite3", "file:"+filepath.Join(w.home, "holdfast.db")+"?_busy_timeout=10000")
	if err != nil {
		w.t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	if err := db.QueryRow(q).Scan(&n); err != nil {
		w.t.Fatalf("%s: %v", q, err)
	}
	return n
}

// tree is every file of the state directory that is not the log, a lock or a socket, by content.
func (w *world) tree() map[string]string {
	w.t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(w.home, func(path string, d fs.DirEntry, err error) error {
		name := filepath.Base(path)
		if err != nil || !d.Type().IsRegular() || name == "log.jsonl" || filepath.Ext(name) == ".lock" || strings.HasSuffix(name, "-shm") {
			return err
		}
		b, err := os.ReadFile(path)
		out[path] = string(b)
		return err
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return out
}
