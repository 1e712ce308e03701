package session

import (
	"encoding/json"
	"testing"
	"time"
)

// asked is a call as it stands when its question is raised.
func asked() (Effect, Session, []EffectID) {
	old := "before"
	e := Effect{ID: "e1", Session: "s1", Run: "r1", Attempt: "a1", Item: "i1", Tool: "edit", Version: "1", Class: StateProbe,
		ArgsDigest: ArgsDigest("edit", `{"path":"x"}`), State: EffectPlanned,
		Plan: Plan{Title: "Edit x", Files: []FileChange{{Path: "/w/x", Before: "sha256:1", After: "sha256:2", OldText: &old, NewText: "after"}}}}
	return e, Session{ID: "s1", Cwd: "/w", Roots: []string{"/w", "/lib"}, Mode: ModeAsk}, []EffectID{"u2", "u1"}
}

func TestBinding_ChangesWithWhatWasAskedAbout(t *testing.T) {
	cases := map[string]func(*Effect, *Session, *[]EffectID){
		"other arguments":        func(e *Effect, _ *Session, _ *[]EffectID) { e.ArgsDigest = ArgsDigest("edit", `{"path":"y"}`) },
		"another tool":           func(e *Effect, _ *Session, _ *[]EffectID) { e.Tool = "write" },
		"another implementation": func(e *Effect, _ *Session, _ *[]EffectID) { e.Version = "2" },
		"another class":          func(e *Effect, _ *Session, _ *[]EffectID) { e.Class = Unknown },
		"another file":           func(e *Effect, _ *Session, _ *[]EffectID) { e.Plan.Files[0].Path = "/w/y" },
		"the file was changed":   func(e *Effect, _ *Session, _ *[]EffectID) { e.Plan.Files[0].Before = "absent" },
		"another result":         func(e *Effect, _ *Session, _ *[]EffectID) { e.Plan.Files[0].After = "sha256:3" },
		"one file more": func(e *Effect, _ *Session, _ *[]EffectID) {
			e.Plan.Files = append(e.Plan.Files, FileChange{Path: "/w/z"})
		},
		"no file":                  func(e *Effect, _ *Session, _ *[]EffectID) { e.Plan.Files = nil },
		"a wider scope":            func(_ *Effect, s *Session, _ *[]EffectID) { s.Roots = append(s.Roots, "/etc") },
		"a narrower scope":         func(_ *Effect, s *Session, _ *[]EffectID) { s.Roots = s.Roots[:1] },
		"one more unknown outcome": func(_ *Effect, _ *Session, u *[]EffectID) { *u = append(*u, "u3") },
		"an unknown was settled":   func(_ *Effect, _ *Session, u *[]EffectID) { *u = (*u)[:1] },
		"another unknown":          func(_ *Effect, _ *Session, u *[]EffectID) { (*u)[0] = "u9" },
	}
	e, s, u := asked()
	was := Binding(e, s, u)
	seen := map[string]string{was: "unchanged"}
	for name, change := range cases {
		e, s, u := asked()
		change(&e, &s, &u)
		b := Binding(e, s, u)
		if other, taken := seen[b]; taken {
			t.Errorf("%s: the same binding as %s", name, other)
		}
		seen[b] = name
	}
}

func TestBinding_StaysWithWhatDoesNotMatter(t *testing.T) {
	cases := map[string]func(*Effect, *Session, *[]EffectID){
		"the order of the unknown ones": func(_ *Effect, _ *Session, u *[]EffectID) { (*u)[0], (*u)[1] = (*u)[1], (*u)[0] },
		"a new attempt":                 func(e *Effect, _ *Session, _ *[]EffectID) { e.Attempt, e.PlannedAt = "a2", time.Unix(9, 0) },
		"how it is shown":               func(e *Effect, _ *Session, _ *[]EffectID) { e.Plan.Title, e.Plan.Line = "Edit x again", 7 },
		"another owner": func(_ *Effect, s *Session, _ *[]EffectID) {
			s.Owner, s.Generation, s.Title, s.UpdatedAt = "other", 9, "title", time.Unix(9, 0)
		},
	}
	e, s, u := asked()
	was := Binding(e, s, u)
	for name, change := range cases {
		e, s, u := asked()
		change(&e, &s, &u)
		if Binding(e, s, u) != was {
			t.Errorf("%s: the binding changed, so the user would be asked again", name)
		}
	}
}

// A question outlives its process: the next one reads the call from the store and must come to the same binding.
func TestBinding_SurvivesTheStore(t *testing.T) {
	e, s, u := asked()
	b, err := json.Marshal(e.Plan)
	if err != nil {
		t.Fatal(err)
	}
	read := e
	read.Plan = Plan{}
	if err := json.Unmarshal(b, &read.Plan); err != nil {
		t.Fatal(err)
	}
	if Binding(read, s, u) != Binding(e, s, u) {
		t.Error("a call that was stored and read again has another binding")
	}
	if u[0] != "u2" {
		t.Error("the list of unknown effects was sorted in place")
	}
}

func TestDigest_KeepsPartsApart(t *testing.T) {
	seen := map[string][]string{}
	for _, parts := range [][]string{{}, {""}, {"", ""}, {"ab"}, {"a", "b"}, {"", "ab"}, {"1:a"}, {"a1:b"}, {"b", "a"}} {
		d := Digest(parts...)
		if other, taken := seen[d]; taken {
			t.Errorf("%q and %q have one digest", parts, other)
		}
		seen[d] = parts
	}
}

func TestArgsDigest_IsAboutTheArguments(t *testing.T) {
	same := [][2]string{
		{`{"a":1,"b":[2]}`, `{ "b": [2], "a": 1 }`},
		{`{"a":"é"}`, `{"a":"\u00e9"}`},
	}
	for _, p := range same {
		if ArgsDigest("t", p[0]) != ArgsDigest("t", p[1]) {
			t.Errorf("%s and %s say the same", p[0], p[1])
		}
	}
	differ := [][2]string{
		{`{"a":1}`, `{"a":2}`},
		{`{"a":1}`, `{"a":"1"}`},
		{`{"a":[1,2]}`, `{"a":[2,1]}`},
		{`{"a":null}`, `{}`},
		{`{"a":9007199254740993}`, `{"a":9007199254740992}`}, // one number as floating point
		{`{"a":1`, `{"a":1}`},
		{`{"a":1} x`, `{"a":1} y`},
		{`{"a":1} {"b":2}`, `{"a":1}`},
	}
	for _, p := range differ {
		if ArgsDigest("t", p[0]) == ArgsDigest("t", p[1]) {
			t.Errorf("%s and %s have one digest", p[0], p[1])
		}
	}
	if ArgsDigest("t", `{}`) == ArgsDigest("u", `{}`) {
		t.Error("two tools have one digest")
	}
}
