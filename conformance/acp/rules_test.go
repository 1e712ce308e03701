package acp_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"holdfast/conformance/fakemodel"
	"holdfast/conformance/harness"
)

// obeying is a model that makes the one call a prompt names as "TOOL ARGS", and says done when it has the result.
func obeying(r fakemodel.Request) fakemodel.Reply {
	last := r.Messages[len(r.Messages)-1]
	tool, args, _ := strings.Cut(last.Content, " ")
	switch {
	case last.Role != "user":
		return fakemodel.Text("done")
	case tool == "run":
		return command(args)
	}
	return fakemodel.Calls(fakemodel.Call{Name: tool, Args: args})
}

// asks counts the questions of a client and answers them all alike.
type asks struct {
	mu     sync.Mutex
	titles []string
	answer string
}

func (q *asks) permission(params json.RawMessage) string {
	var p struct{ ToolCall struct{ Title string } }
	_ = json.Unmarshal(params, &p)
	q.mu.Lock()
	defer q.mu.Unlock()
	q.titles = append(q.titles, p.ToolCall.Title)
	return q.answer
}

// next says how the next questions are answered and returns how many there were.
func (q *asks) next(answer string) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.answer = answer
	return len(q.titles)
}

func (q *asks) last() string {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.titles) == 0 {
		return ""
	}
	return q.titles[len(q.titles)-1]
}

// cli runs a command line on the world's store.
func (w *world) cli(args ...string) string {
	w.t.Helper()
	plain, _, err := harness.Binaries()
	if err != nil {
		w.t.Fatal(err)
	}
	cmd := exec.Command(plain, args...)
	cmd.Env, cmd.Dir = append([]string{"PATH=" + os.Getenv("PATH"), "HOLDFAST_HOME=" + w.home}, w.env...), w.work
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		w.t.Fatalf("holdfast %s: %v: %s", strings.Join(args, " "), err, errs.String())
	}
	return out.String()
}

type ruleView struct{ RuleID, Verdict, Kind, Cwd, SessionID, Value, Covers string }

func (w *world) rules() []ruleView {
	w.t.Helper()
	return decode[[]ruleView](w.t, json.RawMessage(w.cli("rules", "--json")))
}

// script is a conversation with a client whose answers change.
type script struct {
	t       *testing.T
	w       *world
	q       *asks
	a       *harness.Agent
	session string
}

func play(t *testing.T) *script {
	t.Helper()
	s := &script{t: t, w: newWorld(t, obeying), q: &asks{answer: "allow_once"}}
	s.launch()
	s.session = s.a.NewSession(s.w.work)
	return s
}

func (s *script) launch() { s.t.Helper(); s.a = s.w.asking(s.q.permission) }

// say prompts and tells whether it asked.
func (s *script) say(text, answer string) (asked bool) {
	s.t.Helper()
	before := s.q.next(answer)
	if got := stop(s.t, s.a, s.a.Prompt(s.session, text)); got != "end_turn" {
		s.t.Errorf("%s stops with %s", text, got)
	}
	return s.q.next("") > before
}

func (s *script) must(want bool, text, answer string) {
	s.t.Helper()
	if asked := s.say(text, answer); asked != want {
		s.t.Errorf("%s: asked %v, want %v", text, asked, want)
	}
}

// A standing answer counts for exactly what the question said, in that directory, in every session and life, until it is revoked.
func TestRules_AllowAlways(t *testing.T) {
	s := play(t)
	s.must(true, "run echo ran >> out", "allow_always")
	if title := s.q.last(); !strings.Contains(title, "[always: exactly this command line, in sessions of "+s.w.work+"]") {
		t.Errorf("the question does not say what always covers: %s", title)
	}
	s.must(false, "run echo ran >> out", "")
	for _, other := range []string{"run echo ran >> out2", "run echo ran >> out; true", "run echo ran >> out && true", "run  true"} {
		s.must(true, other, "reject_once")
	}
	s.a.Kill()
	s.launch()
	s.session = s.a.NewSession(s.w.work)
	s.must(false, "run echo ran >> out", "")
	elsewhere := filepath.Join(t.TempDir(), "elsewhere")
	if err := os.Mkdir(elsewhere, 0o755); err != nil {
		t.Fatal(err)
	}
	here := s.session
	s.session = s.a.NewSession(elsewhere)
	s.must(true, "run echo ran >> out", "reject_once")
	s.session = here
	if got := s.w.file("out"); got != "ran\nran\nran\n" {
		t.Errorf("it wrote %q", got)
	}
	rules := s.w.rules()
	if len(rules) != 1 || rules[0].Verdict != "allow" || rules[0].Value != "echo ran >> out" || rules[0].Cwd != s.w.work {
		t.Fatalf("the rules are %+v", rules)
	}
	s.say("/rules", "")
	if text := s.a.Text(here); !strings.Contains(text, rules[0].RuleID) || !strings.Contains(text, "echo ran >> out") {
		t.Errorf("/rules says %q", text)
	}
	s.say("/rules revoke "+rules[0].RuleID, "")
	if left := s.w.rules(); len(left) != 0 {
		t.Errorf("after the revocation: %+v", left)
	}
	s.must(true, "run echo ran >> out", "reject_once")
}

// A standing refusal refuses without a question, and the model is told.
func TestRules_RejectAlways(t *testing.T) {
	s := play(t)
	s.must(true, "run echo ran >> out", "reject_always")
	s.must(false, "run echo ran >> out", "")
	s.must(false, "run true; echo ran >> out", "")
	if reqs := s.w.model.Requests(); !strings.Contains(string(reqs[len(reqs)-1].Body), "a rule of the user rejects it") {
		t.Errorf("the model is told %s", reqs[len(reqs)-1].Body)
	}
	if got := s.w.file("out"); got != "" {
		t.Errorf("it wrote %q", got)
	}
	s.w.cli("rules", "revoke", s.w.rules()[0].RuleID)
	s.must(true, "run echo ran >> out", "allow_once")
	if got := s.w.file("out"); got != "ran\n" {
		t.Errorf("it wrote %q", got)
	}
}

// What comes later and is stricter wins, and what was allowed in one project says nothing about another.
func TestRules_TheStricterWins(t *testing.T) {
	s := play(t)
	s.must(true, "run touch a", "allow_always")
	s.must(false, "run touch a", "")
	s.w.cli("rules", "add", "ask", "--prefix", "touch", "--cwd", "")
	s.must(true, "run touch a", "allow_once")
	s.w.cli("rules", "add", "allow", "--command", "touch a")
	s.must(false, "run touch a", "")
	s.w.cli("rules", "add", "deny", "--prefix", "touch", "--cwd", "")
	s.must(false, "run touch a", "")
	s.must(false, "run cd / && touch b", "")
	s.must(true, "run sh -c 'touch c'", "reject_once") // it may be covered: a question, whatever else allows it
	reqs := s.w.model.Requests()
	if n := strings.Count(string(reqs[len(reqs)-1].Body), "rejects it"); n != 2 {
		t.Errorf("%d calls were refused: %s", n, reqs[len(reqs)-1].Body)
	}
}

// A prefix carries no other command with it, however it is joined.
func TestRules_PrefixCarriesNothing(t *testing.T) {
	s := play(t)
	s.w.cli("rules", "add", "allow", "--prefix", "touch ok")
	s.must(false, "run touch ok", "")
	s.must(false, "run touch ok 'and more'", "")
	for _, line := range []string{"touch ok && touch no", "touch ok || touch no", "touch ok; touch no", "touch ok | touch no", "touch ok & touch no",
		"touch ok\ntouch no", "touch ok $(touch no)", "touch ok `touch no`", "touch ok > no", "touch ok <(touch no)", "touch okay", "(touch ok)",
		"A=b touch ok", "touch \\ok", "cd / ; touch ok", "touch \"ok$(touch no)\""} {
		s.must(true, "run "+line, "reject_once")
	}
	if _, err := os.Stat(s.w.path("no")); err == nil {
		t.Error("a joined command ran")
	}
}

// For file edits the directory counts, for both ways it can be left.
func TestRules_Edits(t *testing.T) {
	s := play(t)
	for _, d := range []string{"src", "other"} {
		if err := os.Mkdir(s.w.path(d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(s.w.path("other"), s.w.path("src/link")); err != nil {
		t.Fatal(err)
	}
	s.must(true, `write {"path":"src/a","content":"1\n"}`, "allow_always")
	s.must(false, `write {"path":"src/b","content":"1\n"}`, "")
	s.must(false, `write {"path":"src/deep/c","content":"1\n"}`, "")
	s.must(true, `write {"path":"d","content":"1\n"}`, "reject_once")
	s.must(true, `write {"path":"src/../e","content":"1\n"}`, "reject_once")
	s.must(true, `write {"path":"src/link/f","content":"1\n"}`, "reject_once")
	s.must(true, `edit {"path":"src/a","edits":[{"old":"1","new":"2"}]}`, "allow_once") // another tool
	if got := s.w.file("src/a") + s.w.file("src/b") + s.w.file("src/deep/c") + s.w.file("d") + s.w.file("e") + s.w.file("other/f"); got != "2\n1\n1\n" {
		t.Errorf("it wrote %q", got)
	}
}

// While an outcome is unknown nothing is allowed beforehand: no rule, no mode, and no new rule can be made.
func TestRules_UnknownOutcomeAsksAllTheSame(t *testing.T) {
	s := &script{t: t, w: newWorld(t, obeying), q: &asks{answer: "allow_always"}}
	_, faulty, err := harness.Binaries()
	if err != nil {
		t.Fatal(err)
	}
	s.a = harness.Start(t, harness.Options{Binary: faulty, Env: append([]string{"HOLDFAST_HOME=" + s.w.home, "HOLDFAST_SUPERVISOR_CRASH=supervisor.running"}, s.w.env...),
		Permission: s.q.permission})
	s.a.Initialize()
	s.session = s.a.NewSession(s.w.work)
	s.w.cli("rules", "add", "allow", "--prefix", "touch")
	s.w.cli("rules", "add", "allow", "--edit", ".")
	s.a.Must("session/set_mode", map[string]any{"sessionId": s.session, "modeId": "edit"}, nil)
	s.must(true, "run echo ran >> out", "allow_once") // its supervisor dies
	for _, call := range []string{"run touch a", `write {"path":"b","content":"1\n"}`} {
		s.must(true, call, "reject_once")
		ask := last(s.a, "session/request_permission")
		if strings.Contains(string(ask), "allow_always") || !strings.Contains(string(ask), "it_happened") {
			t.Errorf("it offers %s", ask)
		}
	}
	if s.w.file("b") != "" {
		t.Error("a file was written without a word")
	}
	s.must(true, "run touch a", "it_happened") // settles what is unknown, and then the rule counts
	if _, err := os.Stat(s.w.path("a")); err != nil {
		t.Errorf("what the rule allows did not run: %v", err)
	}
}

// last is the newest message of a method.
func last(a *harness.Agent, method string) json.RawMessage {
	for _, m := range slices.Backward(a.Log()) {
		if m.Method == method {
			return m.Params
		}
	}
	return nil
}
