package goals_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"holdfast/conformance/fakemodel"
	"holdfast/conformance/harness"
)

// of finds a requirement.
func of(g view, id string) requirement {
	i := slices.IndexFunc(g.Requirements, func(q requirement) bool { return q.ID == id })
	if i < 0 {
		return requirement{}
	}
	return g.Requirements[i]
}

// check is a command that leaves a line each time it runs, and succeeds when out.txt is right.
const check = "echo run >> ../checks; grep -q result out.txt"

func (w *world) checks() int { return w.lines("../checks") }

var checked = []any{map[string]any{"id": "tests", "kind": "command", "command": check}, map[string]any{"id": "file", "kind": "file", "path": "out.txt", "pattern": "^result"}}

// What can be decided by code is, from stored calls and files; the command runs as any other, with a question. The end is one record.
func TestAccept_Honest(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	w := newWorld(t, script(turn(writes("out.txt", "result\n"), candidate())), accepts)
	a := w.launch("", func(json.RawMessage) string { asked.Add(1); return "allow_once" })
	s := w.session(a)
	create(a, s, "Produce out.txt.", map[string]any{"requirements": checked})
	g := w.until(a, s, "achieved")
	tests, file, objective := of(g, "tests"), of(g, "file"), of(g, "objective")
	if tests.Result != "met" || tests.JudgedBy != "code" || len(tests.Evidence) != 1 || file.Result != "met" || !strings.HasPrefix(file.Evidence[0], "sha256:") {
		t.Errorf("by code: %+v and %+v", tests, file)
	}
	if objective.Result != "met" || !strings.Contains(objective.JudgedBy, "fake") || len(objective.Evidence) != 1 {
		t.Errorf("by the reviewer: %+v", objective)
	}
	if w.checks() != 1 || asked.Load() != 1 {
		t.Errorf("the command ran %d times and %d questions were asked", w.checks(), asked.Load())
	}
	for _, h := range g.History {
		if h.Effect == tests.Evidence[0] && (h.Kind != "shell" || h.Fact != "completed" || h.Digest == "") {
			t.Errorf("the evidence is %+v", h)
		}
	}
}

// Nothing written, nothing checked, and it is said to be done: the goal stays open, and worker and user are told why. The same claim is not judged for
// ever.
func TestAccept_ClaimedWithoutWork(t *testing.T) {
	t.Parallel()
	w := newWorld(t, script(turn(candidate())), func(r fakemodel.Request) fakemodel.Reply {
		if made(r, "glob") == "" {
			return call("glob", map[string]string{"pattern": "*"})
		}
		return verdict(map[string]string{"objective": "unmet"}, made(r, "glob"))
	})
	a, s := w.start()
	create(a, s, "Produce out.txt.", map[string]any{"requirements": checked})
	g := w.until(a, s, "blocked")
	if g.ReasonCode != "no_progress" || !strings.Contains(g.Feedback, "objective is unmet") || !strings.Contains(g.Feedback, "file is unmet") || of(g, "tests").Result != "unmet" {
		t.Errorf("the goal is %+v", g)
	}
	told := false
	for _, r := range w.model.Requests() {
		told = told || offers(r, "update_goal") && strings.Contains(r.LastUser(), "file is unmet")
	}
	if !told {
		t.Error("the worker was not told")
	}
	if n := w.requests("submit_review"); n != 4 {
		t.Errorf("the reviewer was asked %d times in what may be two reviews", n)
	}
}

// A worker cannot rewrite what is wanted, whatever it calls.
func TestAccept_NarrowingIsRefused(t *testing.T) {
	t.Parallel()
	tries := []map[string]any{{"action": "revise", "objective": "Do nothing."}, {"action": "complete"}, {"action": "waive", "requirementId": "file", "reason": "hard"},
		{"action": "candidate", "objective": "Do nothing."}, {"action": "evidence", "requirementId": "file", "callId": "never-made"},
		{"action": "evidence", "requirementId": "objective", "callId": "call_fake_1_0"}, {"action": "confirm"}, {"action": "end"}}
	var replies []fakemodel.Reply
	for _, args := range tries {
		replies = append(replies, call("update_goal", args))
	}
	replies = append(replies, call("create_goal", map[string]any{"objective": "Do nothing."}))
	w := newWorld(t, script(turn(replies...), turn()), accepts)
	a, s := w.start()
	first := create(a, s, "Produce out.txt.", map[string]any{"requirements": checked})
	g := w.until(a, s, "blocked")
	if g.GoalID != first.GoalID || g.Objective != "Produce out.txt." || g.Revision != 1 || len(g.Requirements) != 3 || w.requests("submit_review") != 0 {
		t.Errorf("the goal is %+v", g)
	}
	for _, q := range g.Requirements {
		if q.Result != "unknown" || len(q.Evidence) != 0 {
			t.Errorf("a requirement became %+v", q)
		}
	}
	all := w.model.Requests()
	results := all[len(all)-1].Results()
	if len(results) != len(replies) {
		t.Fatalf("%d results for %d calls", len(results), len(replies))
	}
	for i, r := range results {
		if r.Content == "Noted." || strings.Contains(r.Content, "was created") {
			t.Errorf("try %d was answered %q", i+1, r.Content)
		}
	}
}

// Whatever a reviewer answers that is no judgement with evidence achieves nothing, and does not go on for ever.
func TestAccept_NonsenseOfTheReviewer(t *testing.T) {
	submit := func(args string) player {
		return func(fakemodel.Request) fakemodel.Reply {
			return fakemodel.Calls(fakemodel.Call{Name: "submit_review", Args: args})
		}
	}
	for name, review := range map[string]player{
		"words":               func(fakemodel.Request) fakemodel.Reply { return fakemodel.Text("All is met, I am sure.") },
		"nothing":             func(fakemodel.Request) fakemodel.Reply { return fakemodel.Reply{Usage: &fakemodel.Usage{Prompt: 10}} },
		"no evidence":         submit(`{"requirements":[{"id":"objective","result":"met"}]}`),
		"evidence of nobody":  submit(`{"requirements":[{"id":"objective","result":"met","evidence":["e-1"]}]}`),
		"the worker's words":  submit(`{"requirements":[{"id":"objective","result":"met","evidence":["call_fake_2_0"]}]}`),
		"a result unheard":    submit(`{"requirements":[{"id":"objective","result":"excellent","evidence":["w-out.txt"]}]}`),
		"another goal's":      submit(`{"requirements":[{"id":"r7","result":"met","evidence":["w-out.txt"]}]}`),
		"an empty list":       submit(`{"requirements":[]}`),
		"no list":             submit(`"met"`),
		"a state of the goal": submit(`{"requirements":[{"id":"objective","result":"met","evidence":["w-out.txt"]}],"status":"achieved"}`),
		"a tool for writing":  func(fakemodel.Request) fakemodel.Reply { return writes("out.txt", "mine\n") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, script(turn(writes("out.txt", "result\n"), candidate()), turn(candidate())), review)
			a, s := w.start()
			create(a, s, "Produce out.txt.", nil)
			g := w.until(a, s, "blocked")
			if q := of(g, "objective"); q.Result == "met" || !strings.Contains(g.Feedback, "objective is") {
				t.Errorf("the goal is %+v", g)
			}
			if b, err := os.ReadFile(filepath.Join(w.work, "out.txt")); err != nil || string(b) != "result\n" {
				t.Errorf("the file is %q, %v", b, err)
			}
		})
	}
}

// What was shown before the last change shows nothing of it: neither a receipt of the command nor a read counts, and the command runs again.
func TestAccept_StaleEvidence(t *testing.T) {
	t.Parallel()
	var refused atomic.Bool
	w := newWorld(t, script(turn(
		writes("out.txt", "result\n"), shell(check), fakemodel.Calls(fakemodel.Call{ID: "early", Name: "read", Args: `{"path":"out.txt"}`}),
		writes("late.txt", "changed\n"), candidate())), nil)
	w.review = func(r fakemodel.Request) fakemodel.Reply {
		if made(r, "read") != "" {
			return verdict(map[string]string{"objective": "met"}, made(r, "read"))
		}
		if made(r, "submit_review") == "" {
			return verdict(map[string]string{"objective": "met"}, "early")
		}
		results := r.Results()
		refused.Store(strings.Contains(results[len(results)-1].Content, "older than the last change"))
		return call("read", map[string]string{"path": "out.txt"})
	}
	a, s := w.start()
	create(a, s, "Produce out.txt.", map[string]any{"requirements": checked})
	g := w.until(a, s, "achieved")
	if w.checks() != 2 || !refused.Load() {
		t.Errorf("the command ran %d times; the early read was refused: %v; %+v", w.checks(), refused.Load(), g.Requirements)
	}
}

// A command that the user does not let run leaves its requirement unknown, and one that fails unmet. Either way the work goes on.
func TestAccept_RefusedAndFailingCommand(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	w := newWorld(t, script(
		turn(writes("out.txt", "nothing\n"), candidate()), // the first review is refused its command
		turn(writes("a.txt", "a\n"), candidate()),         // the second finds that it fails
		turn(fakemodel.Calls(fakemodel.Call{Name: "edit", Args: `{"path":"out.txt","edits":[{"old":"nothing","new":"result"}]}`}), candidate()),
	), accepts)
	a := w.launch("", func(json.RawMessage) string {
		if asked.Add(1) == 1 {
			return "reject_once"
		}
		return "allow_once"
	})
	s := w.session(a)
	create(a, s, "Produce out.txt.", map[string]any{"requirements": []any{checked[0]}})
	w.until(a, s, "achieved")
	var told []string
	for _, r := range w.model.Requests() {
		for _, why := range []string{"tests is unknown: the command has no fresh receipt", "tests is unmet: exit code 1"} {
			if offers(r, "update_goal") && strings.Contains(r.LastUser(), why) && !slices.Contains(told, why) {
				told = append(told, why)
			}
		}
	}
	if len(told) != 2 || w.checks() != 2 {
		t.Errorf("told %q, and the command ran %d times", told, w.checks())
	}
}

// A file that changes between the review and its end voids the review, whoever changed it.
func TestAccept_ChangedUnderTheReview(t *testing.T) {
	t.Parallel()
	var touched atomic.Bool
	w := newWorld(t, script(turn(writes("out.txt", "result\n"), candidate()), turn(call("read", map[string]string{"path": "out.txt"}), candidate())), nil)
	w.review = func(r fakemodel.Request) fakemodel.Reply {
		if made(r, "read") != "" && touched.CompareAndSwap(false, true) {
			w.write("out.txt", "result, and what somebody else wrote\n")
		}
		return accepts(r)
	}
	a, s := w.start()
	create(a, s, "Produce out.txt.", nil)
	w.until(a, s, "achieved")
	told := slices.ContainsFunc(w.model.Requests(), func(r fakemodel.Request) bool {
		return offers(r, "update_goal") && strings.Contains(r.LastUser(), "files changed while the review was running")
	})
	if n := w.requests("submit_review"); !told || n != 4 {
		t.Errorf("told %v, the reviewer was asked %d times", told, n)
	}
}

// The user's own review takes place whatever is open, says what it found, and achieves nothing while an item is open.
func TestAccept_VerifyByTheUser(t *testing.T) {
	t.Parallel()
	gate := make(chan struct{})
	held := fakemodel.Text("thinking")
	held.Steps = append(held.Steps, fakemodel.Gate(gate))
	w := newWorld(t, script(turn(todo(entry("write it", "completed"), entry("dance", "pending")), writes("out.txt", "result\n"), held), turn(todo(entry("write it", "completed")))), accepts)
	a, s := w.start()
	create(a, s, "Produce out.txt.", nil)
	harness.Eventually(t, "it works", func() bool { return w.requests("update_goal") == 3 })
	if g := update(a, s, "verify", nil); g.Status != "active" || g.Phase != "working" {
		t.Errorf("in the middle of a turn it is %+v", g)
	}
	close(gate)
	var told string
	harness.Eventually(t, "the worker is told", func() bool {
		for _, r := range w.model.Requests() {
			if offers(r, "update_goal") && strings.Contains(r.LastUser(), "missing so far") {
				told = r.LastUser()
			}
		}
		return told != ""
	})
	if !strings.Contains(told, `"dance"`) || strings.Contains(told, "objective is") {
		t.Errorf("told %q", told)
	}
	w.until(a, s, "achieved")
}

// While it is unknown what became of a call, an offer is not reviewed, and a review that the user asks for does not achieve the goal. Settled, it is.
func TestAccept_UnknownOutcome(t *testing.T) {
	t.Parallel()
	plain, faulty, err := harness.Binaries()
	if err != nil {
		t.Fatal(err)
	}
	gate, verified := make(chan struct{}), make(chan struct{})
	second, third := fakemodel.Text("waiting"), fakemodel.Text("waiting on")
	second.Steps, third.Steps = append(second.Steps, fakemodel.Gate(gate)), append(third.Steps, fakemodel.Gate(verified))
	w := newWorld(t, script(turn(writes("out.txt", "result\n"), shell("echo run >> ../once; exit 7"), candidate()), turn(second), turn(third), turn(candidate())), accepts)
	env := append([]string{"HOLDFAST_HOME=" + w.home, "HOLDFAST_SUPERVISOR_CRASH=supervisor.running"}, w.model.Env(fakemodel.Family())...)
	a := harness.Start(t, harness.Options{Binary: faulty, Env: env, Permission: func(json.RawMessage) string { return "allow_once" }})
	a.Initialize()
	s := w.session(a)
	create(a, s, "Produce out.txt.", nil)
	harness.Eventually(t, "the second turn begins", func() bool { return w.requests("update_goal") == 5 })
	g := get(a, s)
	if g.ReasonCode != "outcome_unknown" || !strings.Contains(g.Feedback, "unknown") || w.requests("submit_review") != 0 {
		t.Errorf("the goal is %+v", g)
	}
	update(a, s, "verify", nil)
	close(gate)
	harness.Eventually(t, "the third turn begins", func() bool { return w.requests("update_goal") == 6 })
	if g = get(a, s); g.Status != "active" || !strings.Contains(g.Feedback, "1 operation(s) with an unknown outcome") || w.requests("submit_review") != 2 {
		t.Errorf("after %d requests of the reviewer the goal is %+v", w.requests("submit_review"), g)
	}
	at := slices.IndexFunc(g.History, func(h struct{ What, Run, Kind, State, Title, Effect, Fact, Digest string }) bool {
		return h.Fact == "unknown"
	})
	if at < 0 {
		t.Fatalf("nothing is unknown: %+v", g.History)
	}
	cmd := exec.Command(plain, "effects", "settle", g.History[at].Effect, "--happened")
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH")}, env...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("settle: %v %s", err, out)
	}
	close(verified)
	w.until(a, s, "achieved")
	if n := w.lines("../once"); n != 1 {
		t.Errorf("the command ran %d times", n)
	}
}

// Killed at any step of the review: the goal is achieved in the end, once, with one record.
func TestAccept_ReviewerKilled(t *testing.T) {
	for _, point := range []string{"turn.ended:before", "turn.ended:after", "run.admitted:before/2", "run.admitted:after/2", "request.started:before/4", "request.started:after/4",
		"response.stored:before/3", "response.stored:after/3", "effect.settled:before/4", "effect.settled:after/4", "turn.ended:before/2", "turn.ended:after/2"} {
		t.Run(strings.ReplaceAll(point, "/", " "), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, script(turn(writes("out.txt", "result\n"), candidate())), accepts)
			a := w.launch(point, nil)
			s := w.session(a)
			a.Begin("create_goal", map[string]any{"sessionId": s, "objective": "Produce out.txt.", "requirements": checked})
			w.died(a, point)
			b := w.launch("", nil)
			w.load(b, s)
			g := w.until(b, s, "achieved")
			if of(g, "tests").Result != "met" || of(g, "objective").Result != "met" {
				t.Errorf("achieved as %+v", g.Requirements)
			}
			harness.Eventually(t, "the record is shown", func() bool { return strings.Contains(b.Text(s), "Goal achieved") })
			b.Kill()
			c := w.launch("", nil)
			w.load(c, s)
			c.Await(c.Prompt(s, "hello"))
			if n := strings.Count(c.Text(s), "Goal achieved"); n != 1 {
				t.Errorf("%d records: %q", n, c.Text(s))
			}
			if w.checks() > 2 {
				t.Errorf("the command ran %d times", w.checks())
			}
		})
	}
}
