package doors_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"holdfast/conformance/harness"
)

// act is what somebody wants of a goal.
type act struct {
	name        string // create, replace, again (with the same key), second (without), or an action of update_goal
	session     string
	goal        string // its id, for everything but create
	objective   string
	requirement string
	reason      string
	text        string // of the requirement that add adds
	tokens      int    // the limit that budget sets
	expected    int64
}

// params are an act's parameters for methods and tools.
func (a act) params() object {
	p := object{}
	put := func(name, v string) {
		if v != "" {
			p[name] = v
		}
	}
	switch a.name {
	case "create", "replace", "again", "second":
		p["sessionId"], p["objective"] = a.session, a.objective
		p["requirements"] = []any{object{"id": "r1", "kind": "semantic", "text": "it reads well"}}
		p["replace"] = a.name == "replace"
		put("idempotencyKey", a.key())
	default:
		p["goalId"], p["action"] = a.goal, a.name
		put("objective", a.objective)
		put("requirementId", a.requirement)
		put("reason", a.reason)
		if a.text != "" {
			p["requirements"] = []any{object{"kind": "semantic", "text": a.text}}
		}
		if a.tokens > 0 {
			p["budget"] = object{"tokens": a.tokens}
		}
		if a.expected > 0 {
			p["expectedControlVersion"] = a.expected
		}
	}
	return p
}

// arguments are an act's parameters for a tool, which takes a budget as it is typed.
func (a act) arguments() object {
	p := a.params()
	if a.tokens > 0 {
		p["budget"] = fmt.Sprintf("%d tokens", a.tokens)
	}
	return p
}

func (a act) creates() bool { return a.keyed() || a.name == "replace" || a.name == "second" }
func (a act) keyed() bool   { return a.name == "create" || a.name == "again" }

// key is an act's idempotency key, so that a double click is one.
func (a act) key() string {
	switch {
	case a.keyed():
		return "key of " + a.session
	case a.name == "replace":
		return "key of what comes behind " + a.goal
	}
	return ""
}

// door is one way to a goal. do does an act; lacks names those that it leaves out on purpose. look reads a goal, or is nil.
type door struct {
	name  string
	lacks string
	do    func(s *scene, a act) *refusal
	look  func(s *scene, id string) *goal
}

// scene is one store with an editor, an MCP client and a command line on it.
type scene struct {
	*world
	a, c *harness.Agent
}

func byMethod(prefix string) door {
	name := func(a act) string {
		if a.creates() {
			return prefix + "create_goal"
		}
		return prefix + "update_goal"
	}
	return door{name: prefix + "methods",
		do: func(s *scene, a act) *refusal { _, r := method(s.t, s.a, name(a), a.params()); return r },
		look: func(s *scene, id string) *goal {
			raw, r := method(s.t, s.a, prefix+"get_goal", object{"goalId": id})
			if r != nil {
				s.t.Fatal(r)
			}
			return inside(s.t, raw)
		}}
}

// inside is the goal in an answer.
func inside(t testing.TB, raw json.RawMessage) *goal {
	t.Helper()
	var v struct{ Goal json.RawMessage }
	if err := json.Unmarshal(raw, &v); err != nil {
		t.Fatal(err)
	}
	return read(t, v.Goal)
}

var byTool = door{name: "MCP tools",
	do: func(s *scene, a act) *refusal {
		name := "update_goal"
		if a.creates() {
			name = "create_goal"
		}
		_, r := tool(s.t, s.c, name, a.arguments())
		return r
	},
	look: func(s *scene, id string) *goal {
		raw, r := tool(s.t, s.c, "get_goal", object{"goalId": id})
		if r != nil {
			s.t.Fatal(r)
		}
		return inside(s.t, raw)
	}}

var byPanel = door{name: "_session/goal", lacks: "replace again verify retry redo waive confirm add budget",
	do: func(s *scene, a act) *refusal {
		action := map[string]string{"create": "set", "revise": "set", "end": "clear"}[a.name]
		if action == "" {
			action = a.name
		}
		_, r := method(s.t, s.a, "_session/goal", object{"sessionId": a.session, "action": action, "objective": a.objective})
		return r
	}}

var bySlash = door{name: "/goal", lacks: "replace again",
	do: func(s *scene, a act) *refusal {
		line := "/goal " + a.name
		switch a.name {
		case "create", "second":
			line = "/goal " + a.objective
		case "revise":
			line += " " + a.objective
		case "waive":
			line += " " + a.requirement + " " + a.reason
		case "confirm":
			line += " " + a.requirement
		case "add":
			line += " " + a.text
		case "budget":
			if a.tokens > 0 {
				line += fmt.Sprintf(" %d tokens", a.tokens)
			}
		}
		before, was := len(s.a.Text(a.session)), s.mark(a.session)
		id := s.a.Prompt(a.session, line)
		harness.Eventually(s.t, line+" is done or answered", func() bool { return s.mark(a.session) != was || s.answered(id) })
		if !s.answered(id) {
			return nil // it stays open while the goal works
		}
		if text := s.a.Text(a.session)[before:]; refusedWords(text) {
			return &refusal{"in words", text}
		}
		return nil
	}}

func (s *scene) answered(id string) bool {
	for _, m := range s.a.Log() {
		if m.Method == "" && string(m.ID) == id {
			return true
		}
	}
	return false
}

// mark changes with each control of a session's goal.
func (s *scene) mark(session string) string {
	if g := s.goalOf(session); g != nil {
		return fmt.Sprint(g.GoalID, g.ControlVersion)
	}
	return ""
}

// refusedWords tells whether a line of a session says that nothing was done.
func refusedWords(text string) bool {
	for _, w := range []string{"cannot ", "no goal", "already has an unfinished goal", "no such requirement", "Set a new one", "changed since", "Nothing was changed"} {
		if strings.Contains(text, w) {
			return true
		}
	}
	return false
}

// line is an act as a command line.
func (a act) line() []string {
	args := []string{"goals", a.name, a.goal}
	switch {
	case a.creates():
		args = []string{"goals", "create", a.objective, "--session", a.session, "--require", "it reads well"}
		if a.name == "replace" {
			args = append(args, "--replace")
		}
		if a.key() != "" {
			args = append(args, "--idempotency-key", a.key())
		}
	case a.name == "cancel":
		args = []string{"stop", a.session}
	case a.name == "waive", a.name == "confirm" && a.requirement != "":
		args = append(args, a.requirement)
	case a.name == "add" && a.text != "":
		args = append(args, "--require", a.text)
	case a.name == "budget":
		args = append(args, fmt.Sprintf("%d tokens", a.tokens))
	}
	if a.name == "revise" {
		args = append(args, "--objective", a.objective)
	}
	if a.reason != "" && !a.creates() {
		args = append(args, "--reason", a.reason)
	}
	if a.expected > 0 {
		args = append(args, "--expect", fmt.Sprint(a.expected))
	}
	return append(args, "--json")
}

var byCommand = door{name: "holdfast goals",
	do: func(s *scene, a act) *refusal {
		out, errs, code := s.cli(a.line()...)
		if code != 0 {
			return &refusal{fmt.Sprint(code), strings.TrimSpace(errs)}
		}
		read(s.t, []byte(out))
		return nil
	},
	look: func(s *scene, id string) *goal {
		out, errs, code := s.cli("goals", "show", id, "--json")
		if code != 0 {
			s.t.Fatal(errs)
		}
		return read(s.t, []byte(out))
	}}

var doors = []door{byMethod(""), byMethod("_holdfast/"), byTool, byPanel, bySlash, byCommand}

func (s *scene) goalOf(session string) *goal {
	raw, r := method(s.t, s.a, "get_goal", object{"sessionId": session})
	if r != nil {
		s.t.Fatal(r)
	}
	return inside(s.t, raw)
}
