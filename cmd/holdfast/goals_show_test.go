package main

import (
	"bytes"
	"testing"

	"holdfast/goals"
	"holdfast/session"
)

// What a goal is held to is shown with where it comes from and what it counts for.
func TestGoalShow_Contract(t *testing.T) {
	v := goals.View{Extraction: goals.ExtractionView{State: "failed", Note: "the answer was no list"},
		Requirements: []goals.Requirement{
			{ID: "objective", Kind: goals.KindSemantic, Text: "Write.", Result: goals.Unknown, Origin: goals.FromUser, Confirmed: true},
			{ID: "r1", Kind: goals.KindFile, Text: "a file", Result: goals.Unmet, Reason: "the file is absent", Origin: goals.FromModel},
			{ID: "r2", Kind: goals.KindSemantic, Text: "it lasts", Result: goals.Met, Origin: goals.FromModel, Confirmed: true},
			{ID: "r3", Kind: goals.KindCommand, Text: "make", Result: goals.Waived, Origin: goals.Added, Confirmed: true}},
		Todo: []session.PlanEntry{{ID: "t1", Content: "look", Status: "completed", Evidence: []string{"e1", "e2"}},
			{ID: "t2", Content: "ask\x1b[0m", Status: "pending", Optional: true, Blocked: true}}}
	want := `read       reading the objective for requirements failed: the answer was no list
  unknown  objective semantic user  Write.
  unmet    r1        file     model a file [not confirmed, does not bind]
                                   the file is absent
  met      r2        semantic model it lasts [confirmed]
  waived   r3        command  added make
  todo     completed t1: look, evidence e1, e2
  todo     pending t2: ask[0m (optional) (nothing can be done about it for now)
`
	var b bytes.Buffer
	if contractLines(&b, v); b.String() != want {
		t.Errorf("shown as\n%s\nwant\n%s", b.String(), want)
	}
	v.Extraction.State = "pending"
	b.Reset()
	if contractLines(&b, v); !bytes.HasPrefix(b.Bytes(), []byte("read       the objective is being read for requirements\n")) {
		t.Errorf("shown as\n%s", b.String())
	}
}
