package goals

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

func TestRequirements_TheObjectiveIsAlwaysOne(t *testing.T) {
	const words = "Ship it.\n  Two lines, kept as they are. "
	for name, given := range map[string][]Requirement{"none given": nil, "one given": {{Kind: KindFile, Path: "a"}}} {
		reqs, err := requirements(words, given)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if len(reqs) != len(given)+1 {
			t.Fatalf("%s: %d requirements", name, len(reqs))
		}
		o := reqs[0]
		if o.ID != objectiveID || o.Kind != KindSemantic || o.Text != words || o.Result != Unknown {
			t.Errorf("%s: I1: the objective became %+v", name, o)
		}
	}
}

func TestRequirements_WhatIsRefused(t *testing.T) {
	cases := map[string]struct {
		given  []Requirement
		member string // of the error
	}{
		"no kind":                 {[]Requirement{{Text: "x"}}, "requirements[0].kind"},
		"another kind":            {[]Requirement{{Kind: "script", Text: "x"}}, "requirements[0].kind"},
		"kind in capitals":        {[]Requirement{{Kind: "FILE", Path: "x"}}, "requirements[0].kind"},
		"a command without one":   {[]Requirement{{Kind: KindCommand, Text: "tests pass"}}, "requirements[0].command"},
		"a command of spaces":     {[]Requirement{{Kind: KindCommand, Command: " \t"}}, "requirements[0].command"},
		"a file without a path":   {[]Requirement{{Kind: KindFile, Text: "the file"}}, "requirements[0].path"},
		"a file of spaces":        {[]Requirement{{Kind: KindFile, Path: "  "}}, "requirements[0].path"},
		"a pattern that is none":  {[]Requirement{{Kind: KindFile, Path: "x", Pattern: "("}}, "requirements[0].pattern"},
		"a semantic without text": {[]Requirement{{Kind: KindSemantic}}, "requirements[0].text"},
		"a semantic of spaces":    {[]Requirement{{Kind: KindSemantic, Text: "  \n"}}, "requirements[0].text"},
		"an id used twice":        {[]Requirement{{ID: "a", Kind: KindFile, Path: "x"}, {ID: "a", Kind: KindFile, Path: "y"}}, "requirements[1].id"},
		"the objective's id":      {[]Requirement{{ID: objectiveID, Kind: KindFile, Path: "x"}}, "requirements[0].id"},
		"the second is wrong":     {[]Requirement{{Kind: KindFile, Path: "x"}, {Kind: KindFile}}, "requirements[1].path"},
	}
	for name, c := range cases {
		_, err := requirements("objective", c.given)
		var pe *ParamError
		if !errors.As(err, &pe) {
			t.Errorf("%s: accepted, or the wrong error: %v", name, err)
			continue
		}
		if pe.Member != c.member || pe.Message == "" {
			t.Errorf("%s: want the member %s, got %q", name, c.member, pe.Error())
		}
	}
	for _, objective := range []string{"", "  \n\t"} {
		var pe *ParamError
		if _, err := check(CreateParams{Objective: objective}); !errors.As(err, &pe) || pe.Member != "objective" {
			t.Errorf("the objective %q is not refused: %v", objective, err)
		}
	}
}

func TestRequirements_WhatIsFilledIn(t *testing.T) {
	reqs, err := requirements("objective", []Requirement{
		{Kind: KindCommand, Command: "make test"},
		{Kind: KindFile, Path: "a.txt", Pattern: "^ok$"},
		{ID: "mine", Kind: KindSemantic, Text: "It reads well."},
		{ID: "r9", Kind: KindFile, Path: "b.txt", Text: "b is there"},
	})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range reqs[1:] {
		got = append(got, r.ID+" "+string(r.Kind)+" "+r.Text)
	}
	want := []string{"r1 command make test", "r2 file a.txt", "mine semantic It reads well.", "r9 file b is there"}
	if !slices.Equal(got, want) {
		t.Errorf("want %q\ngot  %q", want, got)
	}
}

// Ids that code fills in give way to the ones the user chose.
func TestRequirements_FilledInIDsAreFree(t *testing.T) {
	reqs, err := requirements("objective", []Requirement{{Kind: KindFile, Path: "x"}, {ID: "r1", Kind: KindFile, Path: "y"}, {Kind: KindFile, Path: "z"}})
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, r := range reqs {
		if seen[r.ID] || r.ID == "" {
			t.Errorf("the id %q is used twice or empty", r.ID)
		}
		seen[r.ID] = true
	}
	if reqs[2].ID != "r1" {
		t.Errorf("the user's own id became %q", reqs[2].ID)
	}
}

// Whoever sets a Goal cannot bring the judgement along.
func TestRequirements_NothingIsJudgedYet(t *testing.T) {
	reqs, err := requirements("objective", []Requirement{
		{ID: "a", Kind: KindSemantic, Text: "x", Result: Met, Reason: "trust me", JudgedBy: "code", Evidence: []string{"e1"}},
		{ID: "b", Kind: KindFile, Path: "y", Result: Waived, Reason: "not needed", JudgedBy: "user"},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range reqs {
		if r.Result != Unknown || r.Reason != "" || r.JudgedBy != "" || len(r.Evidence) != 0 {
			t.Errorf("the requirement %s begins as judged: %+v", r.ID, r)
		}
	}
	if missing := verdicts(reqs); len(missing) != 3 {
		t.Errorf("%d of 3 requirements stand in the way: %s", len(missing), strings.Join(missing, "; "))
	}
}

func TestVerdicts_OnlyMetAndWaivedPass(t *testing.T) {
	for result, passes := range map[Result]bool{Met: true, Waived: true, Unmet: false, Unknown: false, "": false, "MET": false} {
		if got := len(verdicts([]Requirement{{ID: "a", Result: result}})) == 0; got != passes {
			t.Errorf("%q passes: %v, want %v", result, got, passes)
		}
	}
}
