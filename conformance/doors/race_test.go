package doors_test

import (
	"bytes"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	_ "github.com/mattn/go-sqlite3"

	"holdfast/conformance/fakemodel"
	"holdfast/conformance/harness"
)

// track is one store on which pairs run one after the other: each stands still at the one gate of the store.
type track struct {
	*scene
	t       *testing.T // of the pair that runs
	n       int
	gates   gates
	resting []rest
	last    string // how a goal was seen that was not as it should be
}

// rest is a goal that must not move any more.
type rest struct {
	what, id, status string
	asked            int // requests that the model had got
}

// gates hold the last answer of a review, by what its objective begins with.
type gates struct {
	mu  sync.Mutex
	all map[string]chan struct{}
}

func (g *gates) of(name string) chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.all == nil {
		g.all = map[string]chan struct{}{}
	}
	if g.all[name] == nil {
		g.all[name] = make(chan struct{})
	}
	return g.all[name]
}

func (g *gates) open(name string) {
	c := g.of(name)
	select {
	case <-c:
	default:
		close(c)
	}
}

// token is the word that names a goal in a request.
func token(r fakemodel.Request) string {
	at := bytes.Index(r.Body, []byte("Race-"))
	if at < 0 {
		return ""
	}
	word, _, _ := strings.Cut(string(r.Body[at:min(len(r.Body), at+40)]), "!")
	return word
}

// racing is a model whose goals hold, are refused once, or come to a review that a gate holds.
func (k *track) racing() func(fakemodel.Request) fakemodel.Reply {
	var mu sync.Mutex
	failed := map[string]bool{}
	return func(r fakemodel.Request) fakemodel.Reply {
		name := token(r)
		called := map[string]string{}
		for _, m := range r.Messages {
			for _, c := range m.ToolCalls {
				called[c.Name] = c.ID
			}
		}
		if slices.ContainsFunc(r.Tools, func(tool fakemodel.Tool) bool { return tool.Name == "submit_review" }) {
			if called["read"] == "" {
				return fakemodel.Calls(fakemodel.Call{Name: "read", Args: `{"path":"there.txt"}`})
			}
			reply := fakemodel.Calls(fakemodel.Call{Name: "submit_review", Args: fmt.Sprintf(`{"requirements":[{"id":"objective","result":"met","evidence":[%q]},`+
				`{"id":"r1","result":"met","evidence":[%[1]q]}]}`, called["read"])})
			reply.Steps = []fakemodel.Step{fakemodel.Gate(k.gates.of(name))}
			return reply
		}
		mu.Lock()
		defer mu.Unlock()
		switch {
		case strings.Contains(name, "blocked") && !failed[name]:
			failed[name] = true
			return fakemodel.Error(400, "no such thing", "bad")
		case strings.Contains(name, "reviewing") && called["update_goal"] == "":
			return fakemodel.Calls(fakemodel.Call{Name: "update_goal", Args: `{"action":"candidate","text":"it is there"}`})
		case strings.Contains(name, "reviewing") && r.Messages[len(r.Messages)-1].Role == "tool":
			return fakemodel.Text("offered")
		}
		return fakemodel.Reply{Steps: []fakemodel.Step{{Text: "early "}}, End: fakemodel.EndStall}
	}
}

func newTrack(t *testing.T) *track {
	k := &track{t: t}
	w := newWorld(t, k.racing())
	t.Cleanup(func() { // before the world goes
		_, _, _ = w.cli("stop", "--all")
	})
	if err := os.WriteFile(filepath.Join(w.work, "there.txt"), []byte("it is\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	k.scene = &scene{w, w.editor(), w.client()}
	return k
}

// asked is how many requests of a goal the model has got.
func (k *track) asked(name string) (n int) {
	for _, r := range k.model.Requests() {
		if token(r) == name {
			n++
		}
	}
	return n
}

// number reads one number out of the store.
func (w *world) number(query string, args ...any) (n int) {
	w.t.Helper()
	db, err := sql.Open("sqlite3", "file:"+filepath.Join(w.home, "holdfast.db")+"?mode=ro&_busy_timeout=5000")
	if err != nil {
		w.t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	if err := db.QueryRow(query, args...).Scan(&n); err != nil {
		w.t.Fatal(err)
	}
	return n
}

// startOf is the state in which both of a pair mean something.
func startOf(a, b string) string {
	is := func(op string) bool { return a == op || b == op }
	switch {
	case is("completion"):
		return "reviewing"
	case is("retry"):
		return "blocked"
	case is("resume"):
		return "paused"
	}
	return "active"
}

// set makes a goal that is where a pair starts.
func (k *track) set(start string) (name string, g *goal) {
	k.n++
	name = fmt.Sprintf("Race-%s-%d", start, k.n)
	session := k.a.NewSession(k.work)
	if r := byMethod("").do(k.scene, act{name: "create", session: session, objective: name + "! holds."}); r != nil {
		k.t.Fatal(r)
	}
	harness.Eventually(k.t, name+" is at work", func() bool {
		g = k.goalOf(session)
		return start == "blocked" && g.Status == "blocked" || start == "reviewing" && g.Phase == "verifying" && k.asked(name) >= 4 ||
			start != "blocked" && start != "reviewing" && g.Phase == "working" && k.asked(name) >= 1
	})
	if start == "paused" {
		if r := byTool.do(k.scene, act{name: "pause", goal: g.GoalID}); r != nil {
			k.t.Fatal(r)
		}
		if r := byCommand.do(k.scene, act{name: "pause", goal: g.GoalID}); r != nil { // the user's word
			k.t.Fatal(r)
		}
		harness.Eventually(k.t, name+" rests", func() bool { g = k.goalOf(session); return g.Status == "paused" && g.Phase == "idle" })
	}
	return name, g
}

// request is an op as an act on a goal.
func request(op, name string, g *goal, looked bool) act {
	a := act{name: op, session: g.SessionID, goal: g.GoalID, objective: name + "! holds."}
	switch op {
	case "again":
		return a
	case "replace":
		a.objective = "Race-next-" + name + "! holds."
		return a
	case "revise":
		a.reason = "better words"
	case "waive":
		a.requirement, a.reason = "r1", "it need not"
	case "confirm":
		a.requirement = "r1"
	case "budget":
		a.tokens = 9000000
	}
	if looked {
		a.expected = g.ControlVersion
	}
	return a
}

// running is a command line that was begun.
type running struct {
	cmd       *exec.Cmd
	out, errs bytes.Buffer
	ended     chan struct{}
	err       error
}

// gated begins a request in a process of its own that stands still inside its commit, until go is called.
func (k *track) gated(a act) (r *running, release func()) {
	_, faulty, err := harness.Binaries()
	if err != nil {
		k.t.Fatal(err)
	}
	log, resume := filepath.Join(k.dir, fmt.Sprint("log", k.n)), filepath.Join(k.dir, fmt.Sprint("go", k.n))
	args, point := a.line(), "goal.controlled"
	switch {
	case a.creates():
		point = "goal.created"
	case a.name == "cancel":
		point = "cancel.accepted"
	}
	r = &running{cmd: exec.Command(faulty, args...), ended: make(chan struct{})}
	r.cmd.Env = append(append([]string{"PATH=" + os.Getenv("PATH")}, k.env...), "HOLDFAST_CRASH="+point+":before/pause", "HOLDFAST_CRASH_LOG="+log, "HOLDFAST_CRASH_RESUME="+resume)
	r.cmd.Dir, r.cmd.Stdout, r.cmd.Stderr = k.work, &r.out, &r.errs
	if err := r.cmd.Start(); err != nil {
		k.t.Fatal(err)
	}
	go func() { r.err = r.cmd.Wait(); close(r.ended) }()
	harness.Eventually(k.t, "it stands still in its commit, or was refused before", func() bool {
		select {
		case <-r.ended:
			return true
		default:
			_, err := os.Stat(log)
			return err == nil
		}
	})
	return r, func() {
		if err := os.WriteFile(resume, nil, 0o600); err != nil {
			k.t.Error(err)
		}
	}
}

// outcome is how a command line ended.
func (r *running) outcome() *refusal {
	<-r.ended
	var exit *exec.ExitError
	if errors.As(r.err, &exit) {
		return &refusal{"", strings.TrimSpace(r.errs.String())}
	}
	return nil
}

// editing replaces the track's editor by a new one.
func (k *track) editing(more ...string) {
	k.a.Kill()
	k.a = k.editor(more...)
}

// armed is the environment of a process that stands still at a point.
func (k *track) armed(point string) (env []string, reached, release func()) {
	log, resume := filepath.Join(k.dir, fmt.Sprint("log-of-", k.n, point[:4])), filepath.Join(k.dir, fmt.Sprint("go-of-", k.n, point[:4]))
	env = []string{"HOLDFAST_CRASH=" + point + "/pause", "HOLDFAST_CRASH_LOG=" + log, "HOLDFAST_CRASH_RESUME=" + resume}
	reached = func() {
		harness.Eventually(k.t, "a process stands still at "+point, func() bool { _, err := os.Stat(log); return err == nil })
	}
	return env, reached, func() {
		if err := os.WriteFile(resume, nil, 0o600); err != nil {
			k.t.Error(err)
		}
	}
}

// race lets two requests meet: the first stands still inside its commit when the second is made, by another process.
func (k *track) race(a, b string, looked bool) {
	start := startOf(a, b)
	reached, release := func() {}, func() {}
	if a == "completion" {
		var env []string
		k.n++
		env, reached, release = k.armed("turn.ended:before/2")
		k.editing(env...)
		defer k.editing()
	}
	name, g := k.set(start)
	was := state{status: g.Status, revision: 1, version: g.ControlVersion, reviewing: start == "reviewing"}
	mid, wantA := was.after(a, was.version, false)
	end, wantB := mid.after(b, was.version, looked)

	first := func() *refusal { return nil }
	switch a {
	case "completion":
		k.gates.open(name)
		reached()
	case "restart":
		k.a.Kill()
		var env []string
		env, reached, release = k.armed("instance.joined:before")
		k.a = k.editor(env...)
		reached()
	default:
		var r *running
		r, release = k.gated(request(a, name, g, false))
		first = r.outcome
	}
	got := k.meanwhile(b, name, g, looked, release)
	k.answered(a, wantA, first())
	k.answered(b, wantB, got)
	if start == "reviewing" { // a review that a request began in its own right stays where it is
		k.gates.open(name)
	}
	if a == "restart" || b == "restart" {
		k.a.Must("session/load", object{"sessionId": g.SessionID, "cwd": k.work, "mcpServers": []any{}}, nil)
	}
	k.settled(name, g, end)
}

// meanwhile makes the second request, lets the first go on, and returns how the second was answered.
func (k *track) meanwhile(op, name string, g *goal, looked bool, release func()) *refusal {
	switch op {
	case "completion":
		k.gates.open(name)
		release()
	case "restart":
		k.a.Kill()
		release()
		k.a = k.editor()
	case "cancel":
		k.a.Notify("session/cancel", object{"sessionId": g.SessionID})
		release()
		k.goalOf(g.SessionID) // answered behind the cancel
	default:
		r := request(op, name, g, looked)
		tool := "update_goal"
		if r.creates() {
			tool = "create_goal"
		}
		id := k.c.Begin("tools/call", object{"name": tool, "arguments": r.arguments()})
		release()
		_, got := result(k.t, k.c.Await(id).Result)
		return got
	}
	return nil
}

// answered compares an answer with what the oracle says.
func (k *track) answered(op, want string, got *refusal) {
	k.t.Helper()
	switch want {
	case done, same:
		if got != nil {
			k.t.Errorf("%s was %v, want %s", op, got, want)
		}
	case refused:
		if got == nil || !strings.Contains(got.text, "cannot "+op+" a goal that is ") {
			k.t.Errorf("%s was %v, want %s", op, got, want)
		}
	case stale:
		if got == nil || got.code != stale || !strings.Contains(got.text, "Read it again") {
			k.t.Errorf("%s was %v, want %s", op, got, want)
		}
	}
}

// settled waits for the one state that a pair may end in, and looks at what must be so then.
func (k *track) settled(name string, g *goal, want state) {
	k.t.Helper()
	var now, next *goal
	defer func() {
		if k.t.Failed() {
			k.t.Log(k.last)
		}
	}()
	harness.Eventually(k.t, fmt.Sprintf("the goal is %+v", want), func() bool {
		now, next = byTool.look(k.scene, g.GoalID), k.goalOf(g.SessionID)
		waived := false
		for _, q := range now.Requirements {
			waived = waived || q.ID == "r1" && q.Result == "waived"
		}
		k.last = fmt.Sprintf("%s rev %d version %d waived %v %s %s; next %s", now.Status, now.Revision, now.ControlVersion, waived, now.Phase, now.Reason, next.Status)
		ok := now.Status == want.status && now.Revision == want.revision && now.ControlVersion == want.version && waived == want.waived
		return ok && (now.Status == "active" || now.Phase == "idle") && (want.next == "") == (next.GoalID == g.GoalID) && (want.next == "" || next.Status == want.next)
	})
	goals, records := 1, 0
	if want.next != "" {
		goals++
	}
	if want.over() {
		records++
	}
	if n := k.number("SELECT count(*) FROM goals WHERE session = ?", g.SessionID); n != goals {
		k.t.Errorf("%d goals, want %d", n, goals)
	}
	if n := k.number("SELECT count(*) FROM items WHERE session = ? AND kind = 'goal'", g.SessionID); n != records {
		k.t.Errorf("%d records of an end, want %d", n, records)
	}
	if want.status == "paused" || want.status == "cancelled" {
		if n := k.number(`SELECT count(*) FROM requests q JOIN runs r ON r.id = q.run JOIN goals g ON g.id = r.goal
			WHERE g.id = ? AND q.started_at > g.updated_at`, g.GoalID); n != 0 {
			k.t.Errorf("%d requests were begun after it was stopped", n)
		}
	}
	if want.status != "active" {
		k.resting = append(k.resting, rest{k.t.Name(), g.GoalID, want.status, k.asked(name)})
	}
	if next.Status == "active" { // it would be recovered by every editor that comes
		if _, r := tool(k.t, k.c, "update_goal", object{"goalId": next.GoalID, "action": "end"}); r != nil {
			k.t.Error(r)
		}
	}
}

// rested kills the editor once more and opens everything again: what was stopped, ended or achieved is as it was.
func (k *track) rested() {
	k.editing()
	for _, r := range k.resting {
		g := byTool.look(k.scene, r.id)
		k.a.Must("session/load", object{"sessionId": g.SessionID, "cwd": k.work, "mcpServers": []any{}}, nil)
	}
	k.set("active") // begins behind everything that would have come back
	for _, r := range k.resting {
		if g := byTool.look(k.scene, r.id); g.Status != r.status {
			k.t.Errorf("%s: the goal was %s and is %s", r.what, r.status, g.Status)
		}
	}
}

func newer(op string) bool { return op == "confirm" || op == "budget" }

// All pairs of what can happen to a goal, from two processes on one store, the second while the first stands inside its commit. There is one
// end, the oracle's; a loser is told; the control version counts what was accepted; what was stopped stays so.
func TestRace_AllPairs(t *testing.T) {
	type pair struct {
		a, b   string
		looked bool
	}
	const tracks = 4
	var all [tracks][]pair
	n := 0
	for _, a := range ops {
		for _, b := range ops {
			if a == "completion" && b == "completion" {
				continue // there is one work run, and it has one owner
			}
			if meets := []string{"completion", "restart", "end", "revise"}; (newer(a) && !slices.Contains(meets, b)) || newer(b) && !slices.Contains(meets, a) {
				continue // of these the rest is as with a waiver
			}
			for _, looked := range []bool{false, true} {
				if looked && !slices.Contains([]string{"pause", "resume", "end", "verify", "revise", "waive", "confirm", "budget", "retry"}, b) {
					continue // these name no version
				}
				all[n%tracks] = append(all[n%tracks], pair{a, b, looked})
				n++
			}
		}
	}
	for i, pairs := range all {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			k := newTrack(t)
			for _, p := range pairs {
				what := p.a + " then " + p.b
				if p.looked {
					what += " that had looked"
				}
				t.Run(what, func(t *testing.T) {
					k.t = t
					k.race(p.a, p.b, p.looked)
				})
			}
			k.t = t
			k.rested()
		})
	}
}
