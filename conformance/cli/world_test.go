// Package cli_test holds the real binary's command line to what it promises: its documents, its exit codes, and that work stored by one
// process is executed by another. Only the language model is played.
package cli_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
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

// world is one store, one work tree and one model.
type world struct {
	t          *testing.T
	home, work string
	model      *fakemodel.Server
	env        []string
}

func newWorld(t *testing.T, answer func(fakemodel.Request) fakemodel.Reply) *world {
	t.Helper()
	dir, err := os.MkdirTemp("", "hf-") // short: the path of a socket is limited
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, home: filepath.Join(dir, "home"), work: filepath.Join(dir, "work"), model: fakemodel.New(answer)}
	t.Cleanup(func() {
		w.put("go") // whatever command is held may end
		w.model.Close()
		harness.Eventually(t, "nothing writes there any more", func() bool { return os.RemoveAll(dir) == nil })
	})
	if err := os.Mkdir(w.work, 0o755); err != nil {
		t.Fatal(err)
	}
	w.env = []string{"HOLDFAST_HOME=" + w.home, "HOLDFAST_MODEL=openai/fake", "OPENAI_BASE_URL=" + w.model.URL()}
	return w
}

func (w *world) binary() string {
	w.t.Helper()
	plain, _, err := harness.Binaries()
	if err != nil {
		w.t.Fatal(err)
	}
	return plain
}

// editor launches an agent whose client leaves questions open, unless permission says otherwise.
func (w *world) editor(permission func(json.RawMessage) string) *harness.Agent {
	w.t.Helper()
	if permission == nil {
		permission = func(json.RawMessage) string { return "" }
	}
	a := harness.Start(w.t, harness.Options{Binary: w.binary(), Env: w.env, Permission: permission})
	a.Initialize()
	return a
}

func allow(json.RawMessage) string { return "allow_once" }

// result is how a command ended.
type result struct {
	out, errs string
	code      int
}

func (w *world) command(args ...string) *exec.Cmd {
	w.t.Helper()
	cmd := exec.Command(w.binary(), args...)
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH")}, w.env...)
	if cmd.Dir = w.work; !w.has(".") {
		cmd.Dir = filepath.Dir(w.home)
	}
	return cmd
}

// run runs a command to its end.
func (w *world) run(args ...string) result {
	w.t.Helper()
	return w.finish(w.command(args...), args)
}

func (w *world) finish(cmd *exec.Cmd, args []string) result {
	w.t.Helper()
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	stop := time.AfterFunc(harness.Limit, func() { _ = cmd.Process.Kill() })
	err := cmd.Wait()
	if !stop.Stop() {
		w.t.Fatalf("holdfast %s did not end; stdout %s stderr %s", strings.Join(args, " "), out.String(), errs.String())
	}
	if _, exited := err.(*exec.ExitError); err != nil && !exited {
		w.t.Fatal(err)
	}
	return result{out.String(), errs.String(), cmd.ProcessState.ExitCode()}
}

// want runs a command and fails when it ends with another code.
func (w *world) want(code int, args ...string) result {
	w.t.Helper()
	r := w.run(args...)
	if r.code != code {
		w.t.Fatalf("holdfast %s ended with %d, want %d\nstdout: %s\nstderr: %s", strings.Join(args, " "), r.code, code, r.out, r.errs)
	}
	return r
}

// document runs a command with --json and reads the one document that it prints.
func document[T any](w *world, args ...string) (v T) {
	w.t.Helper()
	r := w.want(0, append(args, "--json")...)
	return one[T](w.t, r.out)
}

// one reads exactly one document.
func one[T any](t *testing.T, text string) (v T) {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(text))
	if err := d.Decode(&v); err != nil {
		t.Fatalf("no document: %v\n%s", err, text)
	}
	if d.More() {
		t.Fatalf("more than one document: %s", text)
	}
	if strings.Contains(text, `: null`) {
		for _, name := range lists {
			if strings.Contains(text, `"`+name+`": null`) {
				t.Errorf("the list %s is null: %s", name, text)
			}
		}
	}
	return v
}

// lists are the members that are lists, empty or not.
var lists = []string{"requirements", "todo", "allowed", "additionalDirectories", "sends", "unknown", "options", "items", "evidence", "owns", "processes",
	"commands", "findings", "grants"}

// worker is a 'holdfast work' that runs.
type worker struct {
	w     *world
	cmd   *exec.Cmd
	errs  bytes.Buffer
	done  chan struct{}
	mu    sync.Mutex
	lines []string
}

// start begins 'holdfast work' with more arguments. The test's end kills what is left of it.
func (w *world) start(args ...string) *worker {
	w.t.Helper()
	p := &worker{w: w, cmd: w.command(append([]string{"work"}, args...)...), done: make(chan struct{})}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		w.t.Fatal(err)
	}
	p.cmd.Stderr = &p.errs
	if err := p.cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	go func() {
		defer close(p.done)
		for s := bufio.NewScanner(out); s.Scan(); {
			p.mu.Lock()
			p.lines = append(p.lines, s.Text())
			p.mu.Unlock()
		}
		_ = p.cmd.Wait() // the code is looked at
	}()
	w.t.Cleanup(func() { _ = p.cmd.Process.Kill(); <-p.done })
	return p
}

func (p *worker) said() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.Join(p.lines, "\n")
}

// wait waits for the end and returns the exit code.
func (p *worker) wait() int {
	p.w.t.Helper()
	select {
	case <-p.done:
	case <-time.After(harness.Limit):
		p.w.t.Fatalf("work does not end; it said\n%s", p.said())
	}
	return p.cmd.ProcessState.ExitCode()
}

func (p *worker) signal(s syscall.Signal) {
	p.w.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.w.t.Fatal(err)
	}
}

func (w *world) put(name string) {
	if err := os.WriteFile(filepath.Join(w.work, name), nil, 0o600); err != nil && !os.IsNotExist(err) {
		w.t.Error(err)
	}
}

func (w *world) has(name string) bool {
	_, err := os.Stat(filepath.Join(w.work, name))
	return err == nil
}

// lines counts the lines of a file in the work tree.
func (w *world) lines(name string) int {
	b, _ := os.ReadFile(filepath.Join(w.work, name)) // it may not be there yet
	return bytes.Count(b, []byte("\n"))
}

// held is a command that leaves a line each time it runs, and ends when the test lets it go.
const held = "echo run >> counter; while [ ! -e go ]; do sleep 0.02; done"

func (w *world) begun() {
	w.t.Helper()
	harness.Eventually(w.t, "the command runs", func() bool { return w.lines("counter") == 1 })
}

func encode(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b)
}

func shell(command string) fakemodel.Reply {
	return fakemodel.Calls(fakemodel.Call{Name: "shell", Args: encode(map[string]string{"command": command})})
}

// pursuing plays a worker that runs a command and writes out.txt, and a reviewer that reads it and accepts.
func pursuing(command string) func(fakemodel.Request) fakemodel.Reply {
	return func(r fakemodel.Request) fakemodel.Reply {
		called := map[string]string{}
		for _, m := range r.Messages {
			for _, c := range m.ToolCalls {
				called[c.Name] = c.ID
			}
		}
		for _, tool := range r.Tools {
			if tool.Name != "submit_review" {
				continue
			}
			if called["read"] == "" {
				return fakemodel.Calls(fakemodel.Call{Name: "read", Args: `{"path":"out.txt"}`})
			}
			return fakemodel.Calls(fakemodel.Call{Name: "submit_review", Args: encode(map[string]any{"requirements": []any{
				map[string]any{"id": "objective", "result": "met", "evidence": []string{called["read"]}, "reason": "it was read"}}})})
		}
		switch {
		case command != "" && called["shell"] == "":
			return shell(command)
		case called["write"] == "":
			return fakemodel.Calls(fakemodel.Call{Name: "write", Args: `{"path":"out.txt","content":"result\n"}`})
		case called["update_goal"] == "":
			return fakemodel.Calls(fakemodel.Call{Name: "update_goal", Args: `{"action":"candidate","text":"out.txt is there"}`})
		}
		return fakemodel.Text("offered")
	}
}

// goal is what is looked at of a goal.
type goal struct {
	GoalID, SessionID, Objective, Status, Phase, ReasonCode string
	Requirements                                            []struct{ ID, Kind, Result string }
}

// session is what is looked at of a session.
type session struct {
	SessionID, Cwd, State, ReasonCode, Mode, Title string
	UnknownEffects, PendingApprovals, OwnerPID     int
}

func (w *world) goal(id string) goal { w.t.Helper(); return document[goal](w, "goals", "show", id) }
