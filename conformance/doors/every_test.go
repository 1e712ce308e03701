package doors_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"holdfast/conformance/fakemodel"
	"holdfast/conformance/harness"
)

// holding is a model that begins to answer and never ends, so that a goal stays at work. It refuses the first request about an objective that
// says so: that goal is blocked.
func holding() func(fakemodel.Request) fakemodel.Reply {
	var mu sync.Mutex
	refused := map[string]bool{}
	return func(r fakemodel.Request) fakemodel.Reply {
		if slices.ContainsFunc(r.Tools, func(tool fakemodel.Tool) bool { return tool.Name == "submit_requirements" }) {
			return fakemodel.Calls(fakemodel.Call{Name: "submit_requirements",
				Args: `{"requirements":[{"kind":"semantic","text":"it holds"},{"kind":"semantic","text":"it lasts"}]}`})
		}
		mu.Lock()
		defer mu.Unlock()
		for _, word := range strings.Fields(string(r.Body)) {
			if _, rest, ok := strings.Cut(word, "Blocks-"); ok && !refused[rest] {
				refused[rest] = true
				return fakemodel.Error(400, "no such thing", "bad")
			}
		}
		return fakemodel.Reply{Steps: []fakemodel.Step{{Text: "early "}}, End: fakemodel.EndStall}
	}
}

// newScene is a store with an editor, an MCP client and a command line.
func newScene(t *testing.T) *scene {
	w := newWorld(t, holding())
	w.model.Extract()
	return &scene{w, w.editor(), w.client()}
}

// begin sets a goal in a session of its own and brings it where the case wants it.
func (s *scene) begin(n int, state string) *goal {
	s.t.Helper()
	session := s.a.NewSession(s.work)
	if state == "none" {
		return &goal{SessionID: session}
	}
	objective := fmt.Sprint("Hold-", n, " ")
	if state == "blocked" {
		objective = fmt.Sprint("Blocks-", n, " ")
	}
	asked := act{name: "create", session: session, objective: objective}.params()
	switch state {
	case "read":
		delete(asked, "requirements")
	case "budget_exhausted":
		asked["budget"] = object{"tokens": 1}
	}
	if _, r := method(s.t, s.a, "create_goal", asked); r != nil {
		s.t.Fatal(r)
	}
	if state == "paused" {
		if r := byCommand.do(s, act{name: "pause", goal: s.goalOf(session).GoalID}); r != nil {
			s.t.Fatal(r)
		}
	}
	var g *goal
	harness.Eventually(s.t, "the goal is "+state, func() bool {
		g = s.goalOf(session)
		return g.Status == state && state != "active" || (state == "active" || state == "read" && len(g.Requirements) == 3) && g.Phase == "working"
	})
	return g
}

// cases are what is done through each door, from where, and what it makes of the goal.
var cases = []struct {
	from string
	act  act
	want func(before, after *goal) bool
}{
	{"none", act{name: "create", objective: "Anew."}, func(_, g *goal) bool {
		return g.Status == "active" && g.Revision == 1 && g.ControlVersion == 1 && g.Objective == "Anew."
	}},
	{"active", act{name: "again"}, func(b, g *goal) bool { return g.GoalID == b.GoalID && g.ControlVersion == 1 }},
	{"active", act{name: "replace", objective: "Another."}, func(b, g *goal) bool {
		return g.GoalID != b.GoalID && g.Status == "active" && g.Objective == "Another."
	}},
	{"active", act{name: "pause"}, func(b, g *goal) bool { return g.Status == "paused" && strings.HasSuffix(g.ReasonCode, "_paused") }},
	{"paused", act{name: "resume"}, func(b, g *goal) bool { return g.Status == "active" && g.ReasonCode == "" }},
	{"blocked", act{name: "resume"}, func(b, g *goal) bool { return g.Status == "active" }},
	{"active", act{name: "end"}, func(b, g *goal) bool { return g.Status == "cancelled" && g.Phase == "idle" }},
	{"paused", act{name: "end"}, func(b, g *goal) bool { return g.Status == "cancelled" }},
	{"active", act{name: "verify"}, func(b, g *goal) bool { return g.Status == "active" }},
	{"blocked", act{name: "retry"}, func(b, g *goal) bool { return g.Status == "active" }},
	{"active", act{name: "revise", objective: "Better.", reason: "it was not"}, func(b, g *goal) bool {
		return g.Revision == 2 && g.Objective == "Better." && g.Status == "active"
	}},
	{"paused", act{name: "revise", objective: "Better.", reason: "it was not"}, func(b, g *goal) bool {
		return g.Revision == 2 && g.Objective == "Better." && g.Status == "paused"
	}},
	{"active", act{name: "waive", requirement: "r1", reason: "it need not"}, func(b, g *goal) bool {
		q := g.Requirements[len(g.Requirements)-1]
		return q.ID == "r1" && q.Result == "waived" && q.JudgedBy == "user" && q.Reason == "it need not"
	}},
	{"read", act{name: "confirm"}, func(b, g *goal) bool { return !b.confirmed("r1") && g.confirmed("r1") && g.confirmed("r2") }},
	{"read", act{name: "confirm", requirement: "r2"}, func(b, g *goal) bool { return !g.confirmed("r1") && g.confirmed("r2") }},
	{"active", act{name: "add", text: "it is short"}, func(b, g *goal) bool {
		q := g.Requirements[len(g.Requirements)-1]
		return len(g.Requirements) == len(b.Requirements)+1 && q.ID == "r2" && q.Text == "it is short" && q.Origin == "added" && q.Confirmed
	}},
	{"active", act{name: "budget", tokens: 900000}, func(b, g *goal) bool { return g.Status == "active" && g.limit() == 900000 }},
	{"paused", act{name: "budget", tokens: 900000}, func(b, g *goal) bool { return g.Status == "paused" && g.limit() == 900000 }},
	{"budget_exhausted", act{name: "budget", tokens: 900000}, func(b, g *goal) bool {
		return b.limit() == 1 && g.Status == "active" && g.limit() == 900000
	}},
}

// Every action through every door does the same, raises the control version once, and is seen through every other door, to the letter.
func TestDoors_EveryAction(t *testing.T) {
	s := newScene(t)
	n := 0
	for _, c := range cases {
		for _, d := range doors {
			if slices.Contains(strings.Fields(d.lacks), c.act.name) {
				continue
			}
			n++
			before := s.begin(n, c.from)
			a := c.act
			if a.session, a.goal = before.SessionID, before.GoalID; a.objective == "" {
				a.objective = before.Objective
			}
			what := fmt.Sprintf("%s of a goal that is %s, by %s", a.name, c.from, d.name)
			if r := d.do(s, a); r != nil {
				t.Errorf("%s: %v", what, r)
				continue
			}
			after := s.goalOf(a.session)
			if !c.want(before, after) {
				t.Errorf("%s makes %v", what, after.all)
			}
			if same := before.GoalID == after.GoalID; same && a.name != "again" && after.ControlVersion != before.ControlVersion+1 {
				t.Errorf("%s: the control version went from %d to %d", what, before.ControlVersion, after.ControlVersion)
			}
			if a.name == "replace" {
				if old := byCommand.look(s, before.GoalID); old.Status != "cancelled" || old.Reason != "Replaced by a new goal." {
					t.Errorf("%s leaves %v", what, old.all)
				}
			}
			s.seen(what, after.GoalID)
		}
	}
}

// Redo needs work that did nothing for so long that a person says what becomes of it.
func TestDoors_Redo(t *testing.T) {
	w := newWorld(t, holding())
	if err := os.WriteFile(filepath.Join(w.home, "config.toml"), []byte("[recovery]\nstall_seconds = 1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := &scene{w, w.editor(), w.client()}
	stalled := map[string]*goal{}
	for i, d := range doors {
		if d.name != byPanel.name {
			stalled[d.name] = s.begin(i, "active")
		}
	}
	for _, d := range doors {
		g := stalled[d.name]
		if g == nil {
			continue
		}
		harness.Eventually(t, "it waits for a person's word", func() bool {
			g = s.goalOf(g.SessionID)
			return g.Phase == "waiting" && (g.ReasonCode == "stalled" || g.ReasonCode == "crash_loop")
		})
		if r := d.do(s, act{name: "redo", session: g.SessionID, goal: g.GoalID}); r != nil {
			t.Errorf("by %s: %v", d.name, r)
		}
		after := s.goalOf(g.SessionID)
		if after.ControlVersion != g.ControlVersion+1 || after.Status != "active" || after.all["turns"].(float64) < g.all["turns"].(float64) {
			t.Errorf("by %s: %v", d.name, after.all)
		}
	}
}

// seen reads a goal through all doors until they say the same: it may just be moving.
func (s *scene) seen(what, id string) {
	s.t.Helper()
	var last string
	harness.Eventually(s.t, what+" is seen through every door", func() bool {
		var all []object
		for _, d := range doors {
			if d.look != nil {
				all = append(all, d.look(s, id).all)
			}
		}
		for _, other := range all[1:] {
			if !reflect.DeepEqual(all[0], other) {
				last = fmt.Sprint(all[0], "\n", other)
				return false
			}
		}
		return true
	})
	if s.t.Failed() {
		s.t.Log(last)
	}
}

// What one door refuses, every door refuses, with the same words.
func TestDoors_EveryRefusal(t *testing.T) {
	s := newScene(t)
	live, done, spent := s.begin(1, "active"), s.begin(2, "active"), s.begin(3, "budget_exhausted")
	if r := byCommand.do(s, act{name: "end", goal: done.GoalID}); r != nil {
		t.Fatal(r)
	}
	for _, c := range []struct {
		what  string
		g     *goal
		act   act
		words string
		but   string // doors that have no such case
	}{
		{"resume of what runs", live, act{name: "resume"}, "cannot resume a goal that is active: it is running", "_session/goal"}, // where a second click is none
		{"retry of what runs", live, act{name: "retry"}, "cannot retry a goal that is active: there is nothing to retry", ""},
		{"redo of what runs", live, act{name: "redo"}, "cannot redo a goal that is active: it has neither stalled nor died in a circle", "_session/goal"},
		{"a second goal", live, act{name: "second", objective: "Two."}, "The session already has an unfinished goal", "_session/goal"}, // where it is a revision,
		{"a version that never was", live, act{name: "pause", expected: 99}, "the goal changed since the version you named", "_session/goal /goal"},
		{"a waiver of nothing", live, act{name: "waive", requirement: "r9", reason: "so"}, "requirement", ""},
		{"a revision without a reason", live, act{name: "revise", objective: "X."}, "a revision needs a reason", "_session/goal /goal"},
		{"pause of what has ended", done, act{name: "pause"}, "cancelled", ""},
		{"resume of what has ended", done, act{name: "resume"}, "cancelled", ""},
		{"verify of what has ended", done, act{name: "verify"}, "cancelled", ""},
		{"revision of what has ended", done, act{name: "revise", objective: "X.", reason: "so"}, "cancelled", "_session/goal"}, // which sets a new one
		{"a confirmation of nothing", live, act{name: "confirm", requirement: "r9"}, "requirement", ""},
		{"a confirmation where nothing was read", live, act{name: "confirm"}, "nothing was read out of the objective that could be confirmed", ""},
		{"an addition of nothing", live, act{name: "add"}, "say what else must hold", ""},
		{"a budget that is none", live, act{name: "budget"}, "limit", ""},
		{"confirmation in what has ended", done, act{name: "confirm", requirement: "r1"}, "cancelled", ""},
		{"addition to what has ended", done, act{name: "add", text: "more"}, "cancelled", "/goal"}, // where it is an objective
		{"budget of what has ended", done, act{name: "budget", tokens: 900000}, "cancelled", ""},
		{"resume of what used its budget up", spent, act{name: "resume"}, "cannot resume a goal that is budget_exhausted: raise its budget first", ""},
		{"verify of what used its budget up", spent, act{name: "verify"}, "cannot verify a goal that is budget_exhausted: raise its budget first", ""},
		{"retry of what used its budget up", spent, act{name: "retry"}, "cannot retry a goal that is budget_exhausted: raise its budget first", ""},
		{"waiver in what has ended", done, act{name: "waive", requirement: "r1", reason: "so"}, "cancelled", ""},
	} {
		for _, d := range doors {
			if slices.Contains(strings.Fields(d.lacks), c.act.name) || slices.Contains(strings.Fields(c.but), d.name) {
				continue
			}
			a := c.act
			a.session, a.goal = c.g.SessionID, c.g.GoalID
			before := s.goalOf(a.session)
			r := d.do(s, a)
			if r == nil || !strings.Contains(strings.ToLower(r.text), strings.ToLower(c.words)) {
				t.Errorf("%s by %s: %v, want %q", c.what, d.name, r, c.words)
			}
			if after := s.goalOf(a.session); after.ControlVersion != before.ControlVersion || after.Status != before.Status || after.Revision != before.Revision {
				t.Errorf("%s by %s changed %v to %v", c.what, d.name, before.all, after.all)
			}
		}
	}
}

// The goals that a session has and had are listed through every door that lists, and through none those of another session.
func TestDoors_EveryListing(t *testing.T) {
	s := newScene(t)
	other, g := s.begin(1, "active"), s.begin(2, "active")
	ids := []string{g.GoalID}
	for i := range 2 {
		if r := byTool.do(s, act{name: "replace", session: g.SessionID, goal: ids[i], objective: fmt.Sprint("Next ", i)}); r != nil {
			t.Fatal(r)
		}
		ids = append(ids, s.goalOf(g.SessionID).GoalID)
	}
	slices.Reverse(ids)
	if r := byCommand.do(s, act{name: "pause", goal: ids[0]}); r != nil { // nothing of it moves while it is listed
		t.Fatal(r)
	}
	listed := func(raw []byte) (out []string) {
		var v []struct{ GoalID string }
		if err := json.Unmarshal(raw, &v); err != nil {
			t.Fatalf("%v: %s", err, raw)
		}
		for _, g := range v {
			out = append(out, g.GoalID)
		}
		return out
	}
	goalsOf := func(raw json.RawMessage) json.RawMessage {
		var v struct{ Goals json.RawMessage }
		if err := json.Unmarshal(raw, &v); err != nil {
			t.Fatal(err)
		}
		return v.Goals
	}
	for name, list := range map[string]func(status string) []string{
		"list_goals": func(status string) []string {
			raw, r := method(t, s.a, "list_goals", object{"sessionId": g.SessionID, "status": status})
			if r != nil {
				t.Fatal(r)
			}
			return listed(goalsOf(raw))
		},
		"_holdfast/list_goals, page by page": func(status string) (out []string) {
			cursor := ""
			for range 9 {
				raw, r := method(t, s.a, "_holdfast/list_goals", object{"sessionId": g.SessionID, "status": status, "limit": 1, "cursor": cursor})
				if r != nil {
					t.Fatal(r)
				}
				out = append(out, listed(goalsOf(raw))...)
				var v struct{ NextCursor string }
				if err := json.Unmarshal(raw, &v); err != nil || v.NextCursor == "" {
					break
				}
				cursor = v.NextCursor
			}
			return out
		},
		"MCP": func(status string) []string {
			args := object{"sessionId": g.SessionID}
			if status != "" {
				args["status"] = status
			}
			raw, r := tool(t, s.c, "list_goals", args)
			if r != nil {
				t.Fatal(r)
			}
			return listed(goalsOf(raw))
		},
		"holdfast goals": func(status string) []string {
			args := []string{"goals", "list", "--session", g.SessionID, "--json"}
			if status != "" {
				args = append(args, "--status", status)
			}
			out, errs, code := s.cli(args...)
			if code != 0 {
				t.Fatal(errs)
			}
			return listed([]byte(out))
		},
	} {
		if got := list(""); !slices.Equal(got, ids) {
			t.Errorf("%s lists %v, want %v", name, got, ids)
		}
		if got := list("paused"); !slices.Equal(got, ids[:1]) {
			t.Errorf("%s lists as paused %v", name, got)
		}
		if got := list("budget_exhausted"); len(got) != 0 {
			t.Errorf("%s lists as exhausted %v", name, got)
		}
	}
	s.a.Await(s.a.Prompt(g.SessionID, "/goal list"))
	text := s.a.Text(g.SessionID)
	for _, line := range []string{"cancelled: Hold-2", "cancelled: Next 0", "paused: Next 1"} {
		if !strings.Contains(text, line) {
			t.Errorf("/goal list says %q, want %q", text, line)
		}
	}
	if strings.Contains(text, "Hold-1") {
		t.Errorf("it lists %s of another session: %q", other.GoalID, text)
	}
	for name, r := range map[string]*refusal{
		"an unknown session": second(method(t, s.a, "list_goals", object{"sessionId": "none"})),
		"an unknown status":  second(method(t, s.a, "list_goals", object{"status": "lost"})),
		"a strange cursor":   second(method(t, s.a, "list_goals", object{"cursor": "?"})),
		"too many":           second(method(t, s.a, "list_goals", object{"limit": 100000})),
		"an unknown one":     second(tool(t, s.c, "list_goals", object{"sessionId": "none"})),
	} {
		if r == nil || r.text == "" {
			t.Errorf("%s: %v", name, r)
		}
	}
	// The timeline is the same wherever it is asked for.
	raw, _ := method(t, s.a, "get_goal", object{"goalId": ids[2], "history": true})
	toolRaw, _ := tool(t, s.c, "get_goal", object{"goalId": ids[2], "history": true})
	out, _, _ := s.cli("goals", "show", ids[2], "--history", "--json")
	one, two, three := inside(t, raw).all, inside(t, toolRaw).all, read(t, []byte(out)).all
	if !reflect.DeepEqual(one, two) || !reflect.DeepEqual(one, three) || one["history"] == nil {
		t.Errorf("the timelines differ:\n%v\n%v\n%v", one, two, three)
	}
}

func second(_ json.RawMessage, r *refusal) *refusal { return r }
