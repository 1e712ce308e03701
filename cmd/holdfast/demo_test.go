package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"holdfast/conformance/fakemodel"
)

// demoBinary is the product, built once for the tests of this package.
var demoBinary struct {
	once sync.Once
	dir  string
	err  error
}

func TestMain(m *testing.M) {
	code := m.Run()
	if demoBinary.dir != "" {
		_ = os.RemoveAll(demoBinary.dir)
	}
	os.Exit(code)
}

// demoProcess is a running demo. Everything of it has its working directory, or its files, under temp.
type demoProcess struct {
	t     *testing.T
	cmd   *exec.Cmd
	began time.Time
	temp  string
	out   io.ReadCloser
	errs  bytes.Buffer
}

func startDemo(t *testing.T, env []string, args ...string) *demoProcess {
	t.Helper()
	b := &demoBinary
	b.once.Do(func() {
		if b.dir, b.err = os.MkdirTemp("", "holdfast-bin-"); b.err == nil {
			b.err = exec.Command("go", "build", "-o", filepath.Join(b.dir, "holdfast"), ".").Run()
		}
	})
	if b.err != nil {
		t.Fatalf("build the binary: %v", b.err)
	}
	temp, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	d := &demoProcess{t: t, began: time.Now(), temp: temp, cmd: exec.CommandContext(ctx, filepath.Join(b.dir, "holdfast"), append([]string{"demo"}, args...)...)}
	d.cmd.Dir, d.cmd.Stderr = temp, &d.errs
	d.cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "TMPDIR=" + temp}, env...)
	if d.out, err = d.cmd.StdoutPipe(); err != nil {
		t.Fatal(err)
	}
	if err := d.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return d
}

// finish reads to the end, and returns what the demo printed and its exit code.
func (d *demoProcess) finish() (string, int) {
	d.t.Helper()
	out, err := io.ReadAll(d.out)
	if err != nil {
		d.t.Errorf("read the demo: %v", err)
	}
	_ = d.cmd.Wait() // the exit code says it
	d.t.Logf("%s%s", out, d.errs.String())
	return string(out), d.cmd.ProcessState.ExitCode()
}

// until reads until the text was printed.
func (d *demoProcess) until(text string) {
	d.t.Helper()
	var seen []byte
	for buf := make([]byte, 1); !bytes.Contains(seen, []byte(text)); {
		if _, err := d.out.Read(buf); err != nil {
			d.t.Fatalf("it ended before it said %q: %v\n%s%s", text, err, seen, d.errs.String())
		}
		seen = append(seen, buf...)
	}
}

// processes lists what runs for this demo: by working directory, or by arguments.
func (d *demoProcess) processes() (found []string) {
	d.t.Helper()
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		d.t.Fatal(err)
	}
	for _, dir := range dirs {
		cwd, _ := os.Readlink(filepath.Join(dir, "cwd")) // it may be gone by now
		line, _ := os.ReadFile(filepath.Join(dir, "cmdline"))
		if strings.HasPrefix(cwd, d.temp) || bytes.Contains(line, []byte(d.temp)) {
			found = append(found, filepath.Base(dir)+" "+string(bytes.ReplaceAll(line, []byte{0}, []byte{' '})))
		}
	}
	return found
}

// leavesNothing checks for files and processes. A process that was killed a moment ago may still be in the table.
func (d *demoProcess) leavesNothing() {
	d.t.Helper()
	left, err := os.ReadDir(d.temp)
	if err != nil || len(left) != 0 {
		d.t.Errorf("the temporary folder holds %v (%v)", left, err)
	}
	if runtime.GOOS != "linux" {
		d.t.Log("processes are looked for on Linux only")
		return
	}
	end := time.Now().Add(5 * time.Second)
	for found := d.processes(); len(found) > 0; found = d.processes() {
		if time.Now().After(end) {
			d.t.Fatalf("still running: %q", found)
		}
		<-time.After(20 * time.Millisecond)
	}
}

func TestDemo_ScriptedHolds(t *testing.T) {
	d := startDemo(t, []string{"HOLDFAST_MODEL=openai/never-asked", "OPENAI_BASE_URL=http://127.0.0.1:1"})
	out, code := d.finish()
	if code != exitOK {
		t.Errorf("exit code %d", code)
	}
	for _, want := range []string{
		"The model is scripted",
		`The agent asks: echo build.* Answered: allow once`,
		`kill -9 \d+`,
		`Reconnected to the running command. \[R12 `,
		`Its exit code arrives after \S+ s: 0, from its receipt`,
		"Goal achieved",
		`objective +met.*evidence [0-9a-f]`,
		`goal, attempt 1: interrupted; first in process \d+, generation 1`,
		`goal, attempt 2: completed; reconnect in process \d+, generation 2 \[R12 `,
		`shell: echo build.*exit code 0; settled by receipt; sha256:`,
		`usage: \d+ model requests, [1-9]\d* tokens in, [1-9]\d* out`,
		`builds.log: 1 line`,
		"Nothing of the demo is left",
	} {
		if !regexp.MustCompile(want).MatchString(out) {
			t.Errorf("it does not say %q", want)
		}
	}
	pids := regexp.MustCompile(`launches the agent(?: again)?: process (\d+)`).FindAllStringSubmatch(out, -1)
	if len(pids) != 4 || pids[0][1] == pids[1][1] || pids[2][1] == pids[3][1] {
		t.Errorf("want two agents in each act, got %v", pids)
	}
	if n := strings.Count(out, "\n"); n > 80 {
		t.Errorf("%d lines are too many to read", n)
	}
	d.leavesNothing()
}

// An interrupt comes in the worst moment: one agent is dead, its command runs, the other agent waits for it.
func TestDemo_InterruptedLeavesNothing(t *testing.T) {
	for name, sig := range map[string]syscall.Signal{"interrupt": syscall.SIGINT, "terminate": syscall.SIGTERM} {
		t.Run(name, func(t *testing.T) {
			d := startDemo(t, nil)
			d.until("Reconnected")
			if runtime.GOOS == "linux" && len(d.processes()) < 4 { // demo, agent, supervisor, command
				t.Errorf("the search for processes finds only %q", d.processes())
			}
			if err := d.cmd.Process.Signal(sig); err != nil {
				t.Fatal(err)
			}
			if _, code := d.finish(); code != exitFailed || !strings.Contains(d.errs.String(), "interrupted") {
				t.Errorf("exit code %d", code)
			}
			d.leavesNothing()
		})
	}
}

func TestDemo_ReaderGoneLeavesNothing(t *testing.T) {
	d := startDemo(t, nil)
	d.until("kill -9")
	if err := d.out.Close(); err != nil {
		t.Fatal(err)
	}
	if err := d.cmd.Wait(); err != nil {
		t.Errorf("it ended with %v: %s", err, d.errs.String())
	}
	d.leavesNothing()
}

// scriptedWire is a model behind the real wire that does what the objective says, or stops somewhere.
func scriptedWire(r fakemodel.Request, stopAfter string) fakemodel.Reply {
	call := func(name string, args map[string]any) fakemodel.Reply {
		raw, err := json.Marshal(args)
		if err != nil {
			panic(err)
		}
		return fakemodel.Calls(fakemodel.Call{Name: name, Args: string(raw)})
	}
	done := map[string]string{} // call id by tool
	for _, m := range r.Messages {
		for _, c := range m.ToolCalls {
			done[c.Name] = c.ID
		}
	}
	review := false
	for _, tool := range r.Tools {
		review = review || tool.Name == "submit_review"
	}
	switch {
	case stopAfter == "nothing", stopAfter == "shell" && done["shell"] != "":
		return fakemodel.Text("I would rather not.")
	case review && done["read"] == "":
		return call("read", map[string]any{"path": "release.txt"})
	case review:
		return call("submit_review", map[string]any{"requirements": []any{map[string]any{"id": "objective", "result": "met",
			"evidence": []string{done["read"]}, "reason": "The note is there."}}})
	case done["shell"] == "":
		return call("shell", map[string]any{"command": demoCommand})
	case done["write"] == "":
		return call("write", map[string]any{"path": "release.txt", "content": "released: 1.0\n"})
	case done["update_goal"] == "":
		return call("update_goal", map[string]any{"action": "candidate", "text": "Built and noted."})
	}
	return fakemodel.Text("That is all.")
}

func TestDemo_ModelBehindTheRealWire(t *testing.T) {
	for name, c := range map[string]struct {
		family, stopAfter, says string
		code                    int
	}{
		"does the work":                 {"openai", "", "Holds: killed once, built once", exitOK},
		"does the work, the other wire": {"anthropic", "", "Holds: killed once, built once", exitOK},
		"never finishes":                {"openai", "shell", "not achieved", exitFailed},
		"runs no command":               {"openai", "nothing", "there was no running command", exitFailed},
	} {
		t.Run(name, func(t *testing.T) {
			model := fakemodel.New(func(r fakemodel.Request) fakemodel.Reply { return scriptedWire(r, c.stopAfter) }).Think()
			defer model.Close()
			d := startDemo(t, append(model.Env(c.family), strings.ToUpper(c.family)+"_API_KEY=not-a-secret"), "--model", c.family+"/fake")
			out, code := d.finish()
			if code != c.code || !strings.Contains(out+d.errs.String(), c.says) {
				t.Errorf("exit code %d, want %d and %q", code, c.code, c.says)
			}
			if strings.Contains(out, "is scripted") || strings.Contains(out+d.errs.String(), "not-a-secret") {
				t.Error("it calls the model scripted, or shows the key")
			}
			if len(model.Requests()) == 0 {
				t.Error("the model was never asked")
			}
			d.leavesNothing()
		})
	}
}

func TestDemo_SecondActHolds(t *testing.T) {
	d := startDemo(t, nil)
	out, code := d.finish()
	if code != exitOK {
		t.Errorf("exit code %d", code)
	}
	for _, want := range []string{
		`An MCP client sets a goal through .holdfast mcp., process \d+: active`,
		`The agent asks: ledger: publish \{"version":"1.0"\}.* Answered: allow once`,
		`The server has the call. kill -9 \d+`,
		`dispatched +unknown .*mcp__ledger__publish`,
		`Write published.txt \[an outcome is unknown: ledger: publish .*it happened`,
		`mcp__ledger__publish: ledger: publish .*settled by person`,
		`ledger.log, the server's own: 1 line`,
		`Holds: one call, sent once`,
		"Nothing of the demo is left",
	} {
		if !regexp.MustCompile(want).MatchString(out) {
			t.Errorf("it does not say %q", want)
		}
	}
	d.leavesNothing()
}
