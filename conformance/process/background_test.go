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

// Three background commands append to counter files over two restarts by SIGKILL. Each runs once, nobody asks the model because of them,
// and each end is told once.
func TestBackground_ThreeOverTwoRestarts(t *testing.T) {
	t.Parallel()
	w := newWorld(t, obedient)
	w.ends()
	a := w.launch()
	session := a.NewSession(w.work)
	var calls []string
	for i := range 3 {
		calls = append(calls, background(fmt.Sprintf("echo run >> counter%d; %s; exit %d", i+1, until(fmt.Sprintf("go%d", i+1)), i+1)))
	}
	say(t, a, session, do(calls...))
	requests := len(w.model.Requests())
	a.Kill()
	w.put("go1") // ends while nobody is there
	harness.Eventually(t, "two are left", func() bool { return len(w.ps()) == 2 })
	b := w.launch()
	w.load(b, session)
	w.put("go2") // ends while a process looks on
	harness.Eventually(t, "one is left", func() bool { return len(w.ps()) == 1 })
	b.Kill()
	c := w.launch()
	w.load(c, session)
	if n := len(w.model.Requests()) - requests; n != 0 {
		t.Errorf("background commands made %d requests", n)
	}
	say(t, c, session, do(output(map[string]any{"id": "bg1"}), output(map[string]any{"id": "bg2"}), output(map[string]any{"id": "bg3"})))
	if w.told("bg1") != 1 || w.told("bg2") != 1 || w.told("bg3") != 0 {
		t.Errorf("told %d %d %d times", w.told("bg1"), w.told("bg2"), w.told("bg3"))
	}
	before := len(w.model.Requests())
	id := c.Prompt(session, do(output(map[string]any{"id": "bg3", "wait_seconds": 20})))
	harness.Eventually(t, "the turn has begun", func() bool { return len(w.model.Requests()) > before })
	w.put("go3")
	c.Await(id)
	say(t, c, session, do())
	got := w.results()
	for i, want := range []string{"bg1 has ended: exit code 1", "bg2 has ended: exit code 2", "bg3 is running", "bg3 has ended: exit code 3"} {
		if !strings.Contains(got, want) {
			t.Errorf("%d: the model did not see %q: %s", i, want, got)
		}
	}
	if w.told("bg1") != 1 || w.told("bg2") != 1 || w.told("bg3") != 0 { // the third was read, so it is not told again
		t.Errorf("told %d %d %d times", w.told("bg1"), w.told("bg2"), w.told("bg3"))
	}
	for i := range 3 {
		if n := w.lines(fmt.Sprintf("counter%d", i+1)); n != 1 {
			t.Errorf("command %d ran %d times", i+1, n)
		}
	}
}

// A background command that ends while a turn runs is told inside that turn, after the call that is under way.
func TestBackground_EndsInsideATurn(t *testing.T) {
	t.Parallel()
	w := newWorld(t, obedient)
	w.ends()
	a := w.launch()
	session := a.NewSession(w.work)
	say(t, a, session, do(background(until("go")+"; touch over"), foreground("touch go; "+until("over")+"; sleep 0.3"), foreground("true")))
	reqs := w.model.Requests()
	for i, m := range reqs[2].Messages { // after the foreground command
		if strings.Contains(m.Content, "[Background command bg1 has ended: exit code 0") {
			if i != len(reqs[2].Messages)-1 {
				t.Errorf("it is told at %d of %d", i, len(reqs[2].Messages))
			}
		}
	}
	if w.told("bg1") != 1 {
		t.Errorf("told %d times", w.told("bg1"))
	}
	if err := fakemodel.ResultsPerCall(reqs); err != nil {
		t.Error(err)
	}
}

// A stop ends background commands for good, whoever says it; their end is stored and told at the next prompt, and nobody is woken by it.
func TestBackground_Stop(t *testing.T) {
	for name, stop := range map[string]func(w *world, a *harness.Agent, session string) *harness.Agent{
		"in the editor": func(w *world, a *harness.Agent, session string) *harness.Agent {
			say(w.t, a, session, "/stop")
			return a
		},
		"in the editor, all": func(w *world, a *harness.Agent, session string) *harness.Agent {
			say(w.t, a, session, "/stop all")
			return a
		},
		"command line": func(w *world, a *harness.Agent, session string) *harness.Agent {
			w.cli(nil, "stop", session, "--json")
			return a
		},
		"command line, nobody executes": func(w *world, a *harness.Agent, session string) *harness.Agent {
			a.Kill()
			w.cli(nil, "stop", "--all", "--json")
			a = w.launch()
			w.load(a, session)
			return a
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, obedient)
			w.ends()
			a := w.launch()
			session := a.NewSession(w.work)
			say(t, a, session, do(background("echo run >> counter; sleep 600")))
			harness.Eventually(t, "it runs", func() bool { return w.lines("counter") == 1 })
			pid := w.ps()[0].PID
			requests := len(w.model.Requests())
			a = stop(w, a, session)
			harness.Eventually(t, "it has ended", func() bool { return !alive(pid) && len(w.ps()) == 0 })
			if n := len(w.model.Requests()) - requests; n != 0 {
				t.Errorf("the stop made %d requests", n)
			}
			say(t, a, session, do(output(map[string]any{"id": "bg1"})))
			if w.told("bg1") != 1 || !strings.Contains(w.results(), "stopped on request") || w.lines("counter") != 1 {
				t.Errorf("told %d times: %s", w.told("bg1"), w.results())
			}
			a.Kill()
			b := w.launch()
			w.load(b, session)
			say(t, b, session, do())
			if w.told("bg1") != 1 || len(w.ps()) != 0 {
				t.Errorf("after a restart it was told %d times, and runs: %v", w.told("bg1"), w.ps())
			}
		})
	}
}

// What is no stop leaves background commands: a cancel of the turn, closing the session, the end of the client's input.
func TestBackground_LeftByWhatIsNoStop(t *testing.T) {
	t.Parallel()
	w := newWorld(t, obedient)
	w.ends()
	a := w.launch()
	session := a.NewSession(w.work)
	id := a.Prompt(session, do(background("echo run >> counter; sleep 600"), foreground("touch begun; sleep 600")))
	harness.Eventually(t, "both run", func() bool { return len(w.ps()) == 2 && w.lines("counter") == 1 })
	a.Notify("session/cancel", map[string]any{"sessionId": session})
	if m := a.Await(id); !bytes.Contains(m.Result, []byte(`"cancelled"`)) {
		t.Errorf("answered %s %v", m.Result, m.Error)
	}
	left := func(after string) {
		t.Helper()
		harness.Eventually(t, "only the background command runs after "+after, func() bool {
			list := w.ps()
			return len(list) == 1 && list[0].Name == "bg1" && alive(list[0].PID)
		})
	}
	left("a cancel")
	a.Must("session/close", map[string]any{"sessionId": session}, nil)
	left("a close")
	if err := a.CloseInput(); err != nil {
		t.Fatal(err)
	}
	left("the end of input")
	var shown struct{ Commands []running }
	w.cli(&shown, "sessions", "show", session, "--json")
	if len(shown.Commands) != 1 || shown.Commands[0].Name != "bg1" {
		t.Errorf("sessions show: %+v", shown.Commands)
	}
	b := w.launch()
	w.load(b, session)
	say(t, b, session, do("shell_kill "+object(map[string]any{"id": "bg1"}), "shell_kill "+object(map[string]any{"id": "bg1"}), "shell_kill "+object(map[string]any{"id": "bg7"})))
	got := w.results()
	if strings.Count(got, "[bg1 has ended: stopped on request") != 2 || !strings.Contains(got, `There is no background command \"bg7\"`) && !strings.Contains(got, `There is no background command "bg7"`) {
		t.Errorf("the model saw %s", got)
	}
	say(t, b, session, do())
	if w.told("bg1") != 0 { // the kill said so
		t.Errorf("told %d times", w.told("bg1"))
	}
	if len(w.ps()) != 0 || w.lines("counter") != 1 {
		t.Errorf("%v runs, ran %d times", w.ps(), w.lines("counter"))
	}
}

// A time limit ends a background command, and the next command works as ever. Arguments that make no sense are named.
func TestBackground_LimitsAndArguments(t *testing.T) {
	t.Parallel()
	w := newWorld(t, obedient)
	w.ends()
	a := w.launch()
	session := a.NewSession(w.work)
	say(t, a, session, do("shell "+object(map[string]any{"command": "(sleep 600 & wait)", "background": true, "timeout_seconds": 1}),
		output(map[string]any{"id": "bg1", "wait_seconds": 20}), foreground("echo fine"),
		output(map[string]any{"id": "bg1", "wait_seconds": 301}), output(map[string]any{"id": "bg1", "offset": -1}), output(map[string]any{"id": "bg2"}),
		output(map[string]any{"id": "bg1", "offset": 99999})))
	got := w.results()
	for _, want := range []string{"[bg1 has ended: stopped at its time limit", "fine\n[exit code 0]", "wait_seconds must be from 0 to 300", "offset must not be below 0",
		`There is no background command "bg2"`, "bytes 0 to 0 of its output"} {
		if !strings.Contains(got, want) {
			t.Errorf("the model did not see %q: %s", want, got)
		}
	}
	if len(w.ps()) != 0 {
		t.Errorf("holdfast ps: %+v", w.ps())
	}
}

// Records that somebody has deleted prove nothing: the end is unknown, not a start that never was.
func TestBackground_RecordsAreGone(t *testing.T) {
	t.Parallel()
	w := newWorld(t, obedient)
	a := w.launch()
	session := a.NewSession(w.work)
	say(t, a, session, do(background("echo $$ > command; "+until("go"))))
	harness.Eventually(t, "it runs", func() bool { return w.lines("command") == 1 })
	a.Kill()
	if err := os.Rename(filepath.Join(w.home, "calls"), filepath.Join(w.home, "away")); err != nil {
		t.Fatal(err)
	}
	b := w.launch()
	w.load(b, session)
	say(t, b, session, do(output(map[string]any{"id": "bg1"})))
	if w.told("bg1") != 1 || !strings.Contains(w.results(), "its records are gone") {
		t.Errorf("told %d times: %s", w.told("bg1"), w.results())
	}
	w.put("go")
	harness.Eventually(t, "it is gone", func() bool { return !alive(w.number("command")) })
}
