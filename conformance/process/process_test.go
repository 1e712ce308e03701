// Package process_test checks how the real binary behaves as a process: its end, its environment, several of it on one store, and a
// store that cannot be used.
package process_test

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
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

type world struct {
	t          *testing.T
	home, work string
	model      *fakemodel.Server
	extra      []string
	permission func(json.RawMessage) string // answers questions; nil allows
}

func newWorld(t *testing.T, answer func(fakemodel.Request) fakemodel.Reply) *world {
	t.Helper()
	return newWorldOf(t, fakemodel.Family(), answer)
}

// newWorldOf is newWorld with a model of that family.
func newWorldOf(t *testing.T, family string, answer func(fakemodel.Request) fakemodel.Reply) *world {
	t.Helper()
	dir := t.TempDir()
	w := &world{t: t, home: filepath.Join(dir, "home"), work: filepath.Join(dir, "work"), model: fakemodel.New(answer).Think()}
	if err := os.Mkdir(w.work, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.model.Close)
	w.extra = w.model.Env(family)
	return w
}

func (w *world) launch() *harness.Agent {
	w.t.Helper()
	plain, _, err := harness.Binaries()
	if err != nil {
		w.t.Fatal(err)
	}
	a := harness.Start(w.t, harness.Options{Binary: plain, Env: append([]string{"HOLDFAST_HOME=" + w.home}, w.extra...), Permission: w.permission})
	a.Initialize()
	return a
}

func (w *world) load(a *harness.Agent, session string) {
	w.t.Helper()
	a.Must("session/load", map[string]any{"sessionId": session, "cwd": w.work, "mcpServers": []any{}}, nil)
}

func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), harness.Limit)
	t.Cleanup(cancel)
	return ctx
}

func (w *world) lines(name string) int {
	b, err := os.ReadFile(filepath.Join(w.work, name))
	if err != nil {
		return 0
	}
	return bytes.Count(b, []byte("\n"))
}

// once answers with one command and then with a word.
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

const held = "echo run >> counter; touch begun; while [ ! -e go ]; do sleep 0.02; done"

func (w *world) begun() {
	w.t.Helper()
	harness.Eventually(w.t, "the command runs", func() bool { return w.lines("counter") == 1 })
}

func (w *world) letGo() {
	w.t.Helper()
	if err := os.WriteFile(filepath.Join(w.work, "go"), nil, 0o600); err != nil {
		w.t.Fatal(err)
	}
}

// A lost client is a disconnect: the process ends well and at once, says nothing, and the work goes on at the next launch.
func TestEnd_IsADisconnect(t *testing.T) {
	for name, end := range map[string]func(*harness.Agent) error{
		"end of input": (*harness.Agent).CloseInput,
		"SIGTERM":      func(a *harness.Agent) error { a.Signal(syscall.SIGTERM); return a.Wait() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, once(held))
			a := w.launch()
			session := a.NewSession(w.work)
			a.Prompt(session, "run it")
			w.begun()
			began := time.Now()
			if err := end(a); err != nil {
				t.Errorf("it ended with %v", err)
			}
			if took := time.Since(began); took > 3*time.Second { // the promise is half of it; the machine may be busy
				t.Errorf("it took %v", took)
			}
			if s := a.Stderr(); s != "" {
				t.Errorf("stderr: %s", s)
			}
			w.letGo()
			b := w.launch()
			b.Must("session/list", map[string]any{}, nil)
			if _, err := w.model.Wait(within(t), 2); err != nil { // nobody opened the session
				t.Fatal(err)
			}
			w.load(b, session)
			harness.Eventually(t, "the answer is there", func() bool { return strings.Contains(b.Text(session), "finished well") })
			if n := w.lines("counter"); n != 1 {
				t.Errorf("the command ran %d times", n)
			}
		})
	}
}

// Two processes on one store: one executes, both show the same, and the other goes on when the first is killed.
func TestTwo_OneExecutes(t *testing.T) {
	w := newWorld(t, once(held))
	a := w.launch()
	session := a.NewSession(w.work)
	b := w.launch()
	w.load(b, session)
	b.Prompt(session, "run it")
	w.begun()
	for name, c := range map[string]*harness.Agent{"owner": a, "other": b} {
		if _, ok := c.Find(func(m harness.Message) bool {
			return strings.Contains(string(m.Params), "touch begun") && strings.Contains(string(m.Params), "in_progress")
		}); !ok {
			t.Errorf("the %s does not show the running command", name)
		}
	}
	// A suspended owner is not dead: nobody takes over, however long it takes.
	harness.Suspend(t, w.home, a.PID())
	time.AfterFunc(3*time.Second, w.letGo)
	harness.Eventually(t, "the command has ended", func() bool {
		found, err := filepath.Glob(filepath.Join(w.home, "calls", "*", "exit"))
		return err == nil && len(found) == 1
	})
	if n := len(w.model.Requests()); n != 1 {
		t.Errorf("somebody took over from a suspended owner: %d requests", n)
	}
	a.Kill() // SIGKILL works on a stopped process as well
	killed := time.Now()
	if _, err := w.model.Wait(within(t), 2); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(killed); took > 5*time.Second { // the promise is 2 s
		t.Errorf("the takeover took %v", took)
	}
	harness.Eventually(t, "the other shows the end", func() bool { return strings.Contains(b.Text(session), "finished well") })
	if n := w.lines("counter"); n != 1 {
		t.Errorf("the command ran %d times", n)
	}
	if err := fakemodel.ResultsPerCall(w.model.Requests()); err != nil {
		t.Error(err)
	}
}

// A cancel ends the turn, its command with everything it started, and nothing of it is shown afterwards.
func TestCancel_EndsTheTree(t *testing.T) {
	w := newWorld(t, once("echo run >> counter; sleep 60 & echo $! > child; sleep 60"))
	a := w.launch()
	session := a.NewSession(w.work)
	id := a.Prompt(session, "run it")
	harness.Eventually(t, "the command runs", func() bool { return w.lines("child") == 1 })
	a.Notify("session/cancel", map[string]any{"sessionId": session})
	if m := a.Await(id); !bytes.Contains(m.Result, []byte(`"cancelled"`)) {
		t.Errorf("answered %s %v", m.Result, m.Error)
	}
	shown := len(a.Updates(session))
	a.Await(a.Prompt(session, "and now"))
	if late := a.Updates(session)[shown:]; bytes.Contains(bytes.Join(raw(late), nil), []byte("sleep 60")) {
		t.Errorf("the cancelled turn goes on: %s", late)
	}
	b, err := os.ReadFile(filepath.Join(w.work, "child"))
	if err != nil {
		t.Fatal(err)
	}
	harness.Eventually(t, "the child is gone", func() bool {
		_, err := os.Stat("/proc/" + strings.TrimSpace(string(b)))
		return os.IsNotExist(err)
	})
}

func raw(in []json.RawMessage) (out [][]byte) {
	for _, r := range in {
		out = append(out, r)
	}
	return out
}

// Without a model, everything that needs one says what to set.
func TestNoModel_SaysWhatToSet(t *testing.T) {
	w := newWorld(t, nil)
	w.extra = nil
	a := w.launch()
	for method, params := range map[string]any{
		"session/new":  map[string]any{"cwd": w.work, "mcpServers": []any{}},
		"authenticate": map[string]any{"methodId": "environment"},
	} {
		_, e := a.Call(method, params)
		if e == nil || e.Code != -32000 || !strings.Contains(e.Message, "OPENAI_API_KEY") {
			t.Errorf("%s: %v", method, e)
		}
	}
	if err := a.CloseInput(); err != nil || a.Stderr() != "" {
		t.Errorf("ended with %v, stderr %q", err, a.Stderr())
	}
}

// A store that cannot be used is named, with what to do, and is left as it is.
func TestStore_FaultsAreNamed(t *testing.T) {
	for name, c := range map[string]struct {
		code   string
		damage func(t *testing.T, db string)
	}{
		"garbage": {"store_corrupt", func(t *testing.T, db string) {
			overwrite(t, db, func(b []byte) []byte { copy(b, bytes.Repeat([]byte("x"), 4096)); return b })
		}},
		"half":  {"store_corrupt", func(t *testing.T, db string) { overwrite(t, db, func(b []byte) []byte { return b[:len(b)/2] }) }},
		"empty": {"store_lost", func(t *testing.T, db string) { overwrite(t, db, func([]byte) []byte { return nil }) }},
		"newer": {"store_newer", func(t *testing.T, db string) {
			// user_version is four bytes at offset 60 of the header.
			overwrite(t, db, func(b []byte) []byte { copy(b[60:], []byte{0, 0, 3, 231}); return b })
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, nil)
			a := w.launch()
			a.NewSession(w.work)
			if err := a.CloseInput(); err != nil {
				t.Fatal(err)
			}
			db := filepath.Join(w.home, "holdfast.db")
			c.damage(t, db)
			before, err := os.ReadFile(db)
			if err != nil {
				t.Fatal(err)
			}
			b := w.launch() // initialize is answered all the same
			_, e := b.Call("session/new", map[string]any{"cwd": w.work, "mcpServers": []any{}})
			var data struct{ Code, Action string }
			if e == nil || json.Unmarshal(e.Data, &data) != nil || data.Code != c.code || data.Action == "" {
				t.Errorf("session/new: %v", e)
			}
			if err := b.CloseInput(); err != nil || b.Stderr() != "" {
				t.Errorf("ended with %v, stderr %q", err, b.Stderr())
			}
			if after, err := os.ReadFile(db); err != nil || !bytes.Equal(before, after) {
				t.Errorf("the store was changed (%v)", err)
			}
		})
	}
}

func overwrite(t *testing.T, path string, change func([]byte) []byte) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, change(b), 0o600); err != nil {
		t.Fatal(err)
	}
}

// A state directory that cannot be written is named.
func TestStore_ReadOnlyDirectory(t *testing.T) {
	if os.Geteuid() != 0 {
		w := newWorld(t, nil)
		if err := os.Mkdir(w.home, 0o500); err != nil {
			t.Fatal(err)
		}
		unwritable(t, w, w.launch())
		return
	}
	// root writes everywhere, so another user is the agent.
	plain, _, err := harness.Binaries()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := exec.LookPath("setpriv"); err != nil {
		t.Skip("running as root without setpriv (util-linux); as an ordinary user: go test -run ReadOnly ./conformance/process")
	}
	w := newWorld(t, nil)
	if err := os.Mkdir(w.home, 0o755); err != nil {
		t.Fatal(err)
	}
	for dir := filepath.Dir(w.home); dir != "/" && dir != os.TempDir(); dir = filepath.Dir(dir) {
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(filepath.Dir(plain), 0o755); err != nil {
		t.Fatal(err)
	}
	a := harness.Start(t, harness.Options{Binary: "setpriv", Args: []string{"--reuid=65534", "--regid=65534", "--clear-groups", plain, "acp"},
		Env: append([]string{"HOLDFAST_HOME=" + w.home}, w.extra...)})
	a.Initialize()
	unwritable(t, w, a)
}

func unwritable(t *testing.T, w *world, a *harness.Agent) {
	t.Helper()
	_, e := a.Call("session/new", map[string]any{"cwd": w.work, "mcpServers": []any{}})
	var data struct{ Code, Action string }
	if e == nil || json.Unmarshal(e.Data, &data) != nil || data.Code != "store_unwritable" || data.Action == "" {
		t.Errorf("session/new: %v", e)
	}
	if err := a.CloseInput(); err != nil || a.Stderr() != "" {
		t.Errorf("ended with %v, stderr %q", err, a.Stderr())
	}
}
