package process_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"holdfast/conformance/fakemodel"
	"holdfast/conformance/harness"
)

// thoughts are the signatures that went back with a request, in order.
func thoughts(r fakemodel.Request) []string {
	var out []string
	for _, m := range r.Messages {
		out = append(out, m.Thoughts...)
	}
	return out
}

func shell(command string) fakemodel.Call {
	args, err := json.Marshal(map[string]string{"command": command})
	if err != nil {
		panic(err)
	}
	return fakemodel.Call{Name: "shell", Args: string(args), Pieces: 4}
}

// thinking is an answer with an open and a hidden thought before its words and calls.
func thinking(words string, calls ...fakemodel.Call) fakemodel.Reply {
	return fakemodel.Reply{Steps: []fakemodel.Step{{Reasoning: "I think <about>"}, {Reasoning: " " + words}, {Redacted: "hidden " + words}, {Text: words}},
		Calls: calls, Usage: &fakemodel.Usage{Prompt: 10, Completion: 5}}
}

// What a model thought goes back to it unchanged after kill -9, in the middle of a command and in the middle of a thought. The fake refuses
// what was changed; what broke off has no signature and stays away.
func TestThinking_KillAndContinue(t *testing.T) {
	gate := make(chan struct{})
	defer close(gate)
	w := newWorldOf(t, "anthropic", func(r fakemodel.Request) fakemodel.Reply {
		switch r.N {
		case 1:
			return thinking("working", shell(held))
		case 2:
			return fakemodel.Reply{Steps: []fakemodel.Step{{Reasoning: "half a thought"}, fakemodel.Gate(gate)}}
		case 3:
			return thinking("finished well")
		}
		return thinking("at your service")
	})
	a := w.launch()
	session := a.NewSession(w.work)
	a.Prompt(session, "run it")
	w.begun()
	a.Kill()
	w.letGo()
	b := w.launch()
	if _, err := w.model.Wait(within(t), 2); err != nil { // nobody opened the session
		t.Fatal(err)
	}
	w.load(b, session)
	harness.Eventually(t, "the thought is shown", func() bool { return bytes.Contains(bytes.Join(raw(b.Updates(session)), nil), []byte("half a thought")) })
	b.Kill()
	c := w.launch()
	w.load(c, session)
	harness.Eventually(t, "the answer is there", func() bool { return strings.Contains(c.Text(session), "finished well") })
	c.Await(c.Prompt(session, "are you there"))

	reqs := w.model.Requests()
	if err := fakemodel.ResultsPerCall(reqs); err != nil {
		t.Fatal(err)
	}
	if len(reqs) != 4 || w.lines("counter") != 1 {
		t.Fatalf("%d requests, the command ran %d times", len(reqs), w.lines("counter"))
	}
	first, second, third, fourth := thoughts(reqs[0]), thoughts(reqs[1]), thoughts(reqs[2]), thoughts(reqs[3])
	if len(first) != 0 || len(second) != 2 || !slices.Equal(third, second) || len(fourth) != 4 || !slices.Equal(fourth[:2], second) {
		t.Errorf("the thoughts went back as\n%q\n%q\n%q\n%q", first, second, third, fourth)
	}
	if strings.Contains(string(reqs[2].Body), "half a thought") {
		t.Errorf("a thought that broke off went back: %s", reqs[2].Body)
	}
}

// A command whose end nobody saw is unknown. The model is told so behind its own thoughts, the user settles it, and the answer that came
// in between is sent back without its thoughts: they belong to a history in which the outcome was unknown.
func TestThinking_UnknownCommand(t *testing.T) {
	w := newWorldOf(t, "anthropic", func(r fakemodel.Request) fakemodel.Reply {
		switch len(r.Results()) {
		case 0:
			return thinking("working", shell("echo $PPID > supervisor; "+held))
		case 1:
			return thinking("looking", shell("echo next >> next"))
		}
		return thinking("finished well")
	})
	a := w.launch()
	session := a.NewSession(w.work)
	a.Prompt(session, "run it")
	w.begun()
	b, err := os.ReadFile(filepath.Join(w.work, "supervisor"))
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil {
		t.Fatal(err)
	}
	a.Kill()
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil { // a grandchild of this test
		t.Fatal(err)
	}
	w.letGo()
	w.permission = func(params json.RawMessage) string {
		if bytes.Contains(params, []byte("it_happened")) {
			return "it_happened"
		}
		return "allow_once"
	}
	c := w.launch()
	w.load(c, session)
	harness.Eventually(t, "the answer is there", func() bool { return strings.Contains(c.Text(session), "finished well") })

	reqs := w.model.Requests()
	if err := fakemodel.ResultsPerCall(reqs); err != nil {
		t.Fatal(err)
	}
	if w.lines("counter") != 1 || w.lines("next") != 1 {
		t.Errorf("the command ran %d times and the next one %d times", w.lines("counter"), w.lines("next"))
	}
	if len(reqs) != 3 {
		t.Fatalf("%d requests", len(reqs))
	}
	if got := reqs[1].Results()[0].Content; !strings.HasPrefix(got, "[Outcome unknown.") {
		t.Errorf("the model was told %q", got)
	}
	if got := reqs[2].Results()[0].Content; !strings.Contains(got, "The user says that it happened") {
		t.Errorf("the model was told %q", got)
	}
	second, third := thoughts(reqs[1]), thoughts(reqs[2])
	if len(second) != 2 || !slices.Equal(third, second) {
		t.Errorf("the thoughts went back as\n%q\n%q", second, third)
	}
	if n := strings.Count(string(reqs[2].Body), `"text":"looking"`); n != 1 {
		t.Errorf("the answer without its thoughts is there %d times: %s", n, reqs[2].Body)
	}
}
