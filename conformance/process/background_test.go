package process_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"holdfast/conformance/fakemodel"
	"holdfast/conformance/harness"
)

// obedient is a model that makes the calls that the user dictates, a line each, and then says so. What it was told beside that stays in
// its requests, where tests look for it.
func obedient(r fakemodel.Request) fakemodel.Reply {
	order, results := "", 0
	for i := len(r.Messages) - 1; i >= 0 && order == ""; i-- {
		switch m := r.Messages[i]; {
		case m.Role == "tool":
			results++
		case m.Role == "user" && strings.HasPrefix(m.Content, "do:"):
			order = m.Content
		}
	}
	var lines []string
	if _, calls, _ := strings.Cut(order, "\n"); calls != "" {
		lines = strings.Split(calls, "\n")
	}
	if results >= len(lines) {
		return fakemodel.Text(fmt.Sprintf("done %d", len(lines)))
	}
	name, args, _ := strings.Cut(lines[results], " ")
	return fakemodel.Calls(fakemodel.Call{Name: name, Args: args})
}

func do(calls ...string) string { return "do:\n" + strings.Join(calls, "\n") }

func background(command string) string {
	return "shell " + object(map[string]any{"command": command, "background": true})
}

func foreground(command string) string { return "shell " + object(map[string]any{"command": command}) }

func output(args map[string]any) string { return "shell_output " + object(args) }

func object(v map[string]any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// say prompts, waits for the answer, and returns how the prompt ended.
func say(t *testing.T, a *harness.Agent, session, text string) string {
	t.Helper()
	m := a.Await(a.Prompt(session, text))
	var r struct{ StopReason string }
	if m.Error != nil || json.Unmarshal(m.Result, &r) != nil {
		t.Fatalf("the prompt ended with %s %v", m.Result, m.Error)
	}
	return r.StopReason
}

// results are the tool results of the last request, joined.
func (w *world) results() string {
	w.t.Helper()
	reqs := w.model.Requests()
	if len(reqs) == 0 {
		return ""
	}
	var b strings.Builder
	for _, m := range reqs[len(reqs)-1].Results() {
		b.WriteString(m.Content + "\n--\n")
	}
	return b.String()
}

// told counts the messages of the last request that tell the end of a background command.
func (w *world) told(name string) int {
	w.t.Helper()
	reqs := w.model.Requests()
	n := 0
	for _, m := range reqs[len(reqs)-1].Messages {
		n += strings.Count(m.Content, "[Background command "+name+" has ended")
	}
	return n
}

// running is what holdfast ps lists.
type running struct {
	EffectID, SessionID, Name, Command, State string
	PID                                       int
}

func (w *world) ps() []running {
	w.t.Helper()
	var r struct{ Commands []running }
	w.cli(&r, "ps", "--json")
	return r.Commands
}

// cli runs a command and decodes its document.
func (w *world) cli(v any, args ...string) {
	w.t.Helper()
	plain, _, err := harness.Binaries()
	if err != nil {
		w.t.Fatal(err)
	}
	cmd := exec.Command(plain, args...)
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOLDFAST_HOME=" + w.home}, w.extra...)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err == nil && v != nil {
		err = json.Unmarshal(out, v)
	}
	if err != nil {
		w.t.Fatalf("holdfast %s: %v\n%s%s", strings.Join(args, " "), err, out, errs.String())
	}
}

func (w *world) put(name string) {
	w.t.Helper()
	if err := os.WriteFile(filepath.Join(w.work, name), nil, 0o600); err != nil {
		w.t.Fatal(err)
	}
}

// ends makes sure that nothing which a test has started outlives it.
func (w *world) ends() {
	w.t.Cleanup(func() { w.cli(nil, "stop", "--all", "--json") })
}

func alive(pid int) bool { return pid > 0 && syscall.Kill(pid, 0) == nil }

// until waits for the end of a file, which tests let commands wait for.
func until(name string) string { return "while [ ! -e " + name + " ]; do sleep 0.02; done" }

// A background command's call returns at once, its output is read as it comes, its end is told once, and the command ran once.
func TestBackground_Turns(t *testing.T) {
	t.Parallel()
	w := newWorld(t, obedient)
	w.ends()
	a := w.launch()
	session := a.NewSession(w.work)
	say(t, a, session, do(background("echo run >> counter; echo hello; "+until("go")+"; echo bye; exit 3"), output(map[string]any{"id": "bg1", "wait_seconds": 20})))
	if got := w.results(); !strings.Contains(got, "Started in the background as bg1") || !strings.Contains(got, "hello\n[bg1 is running; bytes 0 to 6") {
		t.Errorf("the model saw %s", got)
	}
	list := w.ps()
	if len(list) != 1 || list[0].SessionID != session || list[0].Name != "bg1" || list[0].State != "running" || !alive(list[0].PID) {
		t.Errorf("holdfast ps: %+v", list)
	}
	say(t, a, session, do())
	if w.told("bg1") != 0 {
		t.Error("an end was told that did not come")
	}
	requests := len(w.model.Requests())
	w.put("go")
	harness.Eventually(t, "the command has ended", func() bool { return len(w.ps()) == 0 })
	if n := len(w.model.Requests()); n != requests {
		t.Errorf("the end of a background command made %d requests", n-requests)
	}
	say(t, a, session, do(output(map[string]any{"id": "bg1"})))
	if w.told("bg1") != 1 || !strings.Contains(w.results(), "bye\n[bg1 has ended: exit code 3; bytes 6 to 10") {
		t.Errorf("told %d times, read %s", w.told("bg1"), w.results())
	}
	say(t, a, session, do(output(map[string]any{"id": "bg1", "offset": 0})))
	if w.told("bg1") != 1 || !strings.Contains(w.results(), "hello\nbye\n[bg1 has ended") {
		t.Errorf("told %d times, read %s", w.told("bg1"), w.results())
	}
	if n := w.lines("counter"); n != 1 {
		t.Errorf("the command ran %d times", n)
	}
}
