package acpx_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"holdfast/conformance/fakemodel"
	"holdfast/conformance/harness"
)

// world is one user of acpx: a home of its own, a store, a work tree and a model.
type world struct {
	t                   *testing.T
	cli                 string
	dir, home, work     string
	agent, startedAgent string // the command that acpx launches, and where it leaves its process id
	model               *fakemodel.Server
}

func newWorld(t *testing.T, answer func(fakemodel.Request) fakemodel.Reply) *world {
	t.Helper()
	if _, err := os.Stat("/proc/self/environ"); err != nil {
		t.Skip("the process that acpx leaves behind is recognised by /proc; to run it, on Linux: go test ./conformance/acpx")
	}
	peer := harness.Peers(t, "acpx")
	plain, _, err := harness.Binaries()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	w := &world{t: t, cli: filepath.Join(peer, "dist", "cli.js"), dir: dir, home: filepath.Join(dir, "user"), work: filepath.Join(dir, "work"),
		agent: filepath.Join(dir, "agent"), startedAgent: filepath.Join(dir, "agents"), model: fakemodel.New(answer)}
	for _, d := range []string{w.home, w.work} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	script := fmt.Sprintf("#!/bin/sh\necho $$ >> '%s'\nexec '%s' acp\n", w.startedAgent, plain) // exec keeps the process id
	if err := os.WriteFile(w.agent, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, pid := range w.owners() {
			w.end(pid)
		}
		for _, pid := range w.agents() {
			harness.Eventually(t, "each agent has ended", func() bool { return !alive(pid) })
		}
		if err := fakemodel.ResultsPerCall(w.model.Requests()); err != nil {
			t.Errorf("the model refused the history: %v", err)
		}
		w.model.Close()
	})
	return w
}

// outcome is what one invocation printed.
type outcome struct {
	raw, text, stop, session string
	methods                  []string
}

func (o outcome) sent(method string) bool {
	for _, m := range o.methods {
		if m == method {
			return true
		}
	}
	return false
}

// acpx runs one invocation to its end.
func (w *world) acpx(args ...string) outcome {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), 2*harness.Limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, "node", append([]string{w.cli, "--agent", w.agent, "--cwd", w.work, "--approve-all", "--format", "json"}, args...)...)
	cmd.Dir = w.work
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + w.home, "HOLDFAST_HOME=" + filepath.Join(w.dir, "store"), "HOLDFAST_MODEL=openai/fake",
		"OPENAI_BASE_URL=" + w.model.URL()}
	out, errs := &bytes.Buffer{}, &bytes.Buffer{}
	cmd.Stdout, cmd.Stderr = out, errs
	if err := cmd.Run(); err != nil {
		w.t.Fatalf("acpx %q: %v\n%s\n%s", args, err, out, errs)
	}
	return read(w.t, out.String())
}

// read takes the wire traffic out of what acpx printed.
func read(t *testing.T, raw string) outcome {
	t.Helper()
	o := outcome{raw: raw}
	for line := range strings.Lines(raw) {
		var m struct {
			Method string
			Params struct {
				SessionID string
				Update    struct {
					SessionUpdate string
					Content       json.RawMessage
				}
			}
			Result struct{ StopReason string }
		}
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			t.Fatalf("acpx printed %q: %v", line, err)
		}
		if m.Method != "" {
			o.methods = append(o.methods, m.Method)
		}
		if m.Params.SessionID != "" {
			o.session = m.Params.SessionID
		}
		if m.Params.Update.SessionUpdate == "agent_message_chunk" {
			var c struct{ Text string }
			if err := json.Unmarshal(m.Params.Update.Content, &c); err != nil {
				t.Fatal(err)
			}
			o.text += c.Text
		}
		if m.Result.StopReason != "" {
			o.stop = m.Result.StopReason
		}
	}
	return o
}

// owners are the processes that acpx left behind and that still live, by its own lock files.
func (w *world) owners() (pids []int) {
	locks, err := filepath.Glob(filepath.Join(w.home, ".acpx", "queues", "*.lock"))
	if err != nil {
		w.t.Fatal(err)
	}
	for _, l := range locks {
		var lock struct{ PID int }
		b, err := os.ReadFile(l)
		if err == nil && json.Unmarshal(b, &lock) == nil && w.mine(lock.PID) {
			pids = append(pids, lock.PID)
		}
	}
	return pids
}

// mine tells whether a process is an owner of this world and not somebody else's: the number in a file may have a new bearer.
func (w *world) mine(pid int) bool {
	if pid <= 1 {
		return false
	}
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	env, envErr := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	return err == nil && envErr == nil && bytes.Contains(line, []byte("__queue-owner")) && bytes.Contains(env, []byte("HOME="+w.home+"\x00"))
}

func (w *world) owner() int {
	w.t.Helper()
	pids := w.owners()
	if len(pids) != 1 {
		w.t.Fatalf("%d processes own the session", len(pids))
	}
	return pids[0]
}

// end kills one owner.
func (w *world) end(pid int) {
	w.t.Helper()
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		w.t.Errorf("end the owner: %v", err)
	}
	harness.Eventually(w.t, "the owner ends", func() bool { return !w.mine(pid) })
}

// agents are the processes that were started as the agent, oldest first.
func (w *world) agents() (pids []int) {
	b, err := os.ReadFile(w.startedAgent)
	if err != nil {
		return nil
	}
	for line := range strings.Lines(string(b)) {
		pid, err := strconv.Atoi(strings.TrimSpace(line))
		if err != nil {
			w.t.Fatal(err)
		}
		pids = append(pids, pid)
	}
	return pids
}

// alive tells whether a process runs. One that has ended and that nobody has waited for does not.
func alive(pid int) bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, state, _ := strings.Cut(string(b), ") ")
	return err == nil && !strings.HasPrefix(state, "Z")
}

func (w *world) file(name string) string {
	b, err := os.ReadFile(filepath.Join(w.work, name))
	if err != nil {
		return ""
	}
	return string(b)
}

// pursuing plays a worker that writes out.txt and offers it, and a reviewer that reads it and accepts.
func pursuing(r fakemodel.Request) fakemodel.Reply {
	called := map[string]string{}
	for _, m := range r.Messages {
		for _, c := range m.ToolCalls {
			called[c.Name] = c.ID
		}
	}
	call := func(name, args string) fakemodel.Reply {
		return fakemodel.Calls(fakemodel.Call{Name: name, Args: args})
	}
	for _, tool := range r.Tools {
		switch {
		case tool.Name != "submit_review":
		case called["read"] == "":
			return call("read", `{"path":"out.txt"}`)
		default:
			return call("submit_review", `{"requirements":[{"id":"objective","result":"met","evidence":["`+called["read"]+`"],"reason":"it was read"}]}`)
		}
	}
	switch {
	case called["write"] == "":
		return call("write", `{"path":"out.txt","content":"result\n"}`)
	case called["update_goal"] == "":
		return call("update_goal", `{"action":"candidate","text":"out.txt is there"}`)
	}
	return fakemodel.Text("offered")
}
