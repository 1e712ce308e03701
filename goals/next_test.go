package goals

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"testing"

	"holdfast/session"
)

var update = flag.Bool("update", false, "rewrite testdata/*.golden")

var everyStatus = []Status{Active, Paused, Blocked, Achieved, Cancelled, Exhausted}

// every lists all facts there can be; more idle turns than the limit plus one are like one more. A user's wish is a candidate too, and a
// todo that is done has nothing open.
func every() []Facts {
	var all []Facts
	for _, status := range everyStatus {
		for idle := range idleTurns + 2 {
			for bits := range 1 << 12 {
				bit := func(n int) bool { return bits>>n&1 == 1 }
				f := Facts{Status: status, Asked: bit(0), Candidate: bit(1), TodoOpen: bit(2), TodoDone: bit(3), Unknown: bit(4), Live: bit(5),
					Reviewed: bit(6), Blocker: bit(7), SameBlocker: bit(8), Workable: bit(9), Progress: bit(10), Subtasks: bit(11), IdleTurns: idle}
				if f.TodoOpen && f.TodoDone || f.Asked && !f.Candidate {
					continue
				}
				all = append(all, f)
			}
		}
	}
	return all
}

func TestNext_EveryFact(t *testing.T) {
	counts, examples := map[Decision]int{}, map[Decision]Facts{}
	all := every()
	for _, f := range all {
		d := Next(f)
		if counts[d]++; counts[d] == 1 {
			examples[d] = f
		}
		checkDecision(t, f, d)
	}
	t.Logf("%d facts, %d decisions", len(all), len(counts))
	var lines []string
	for d, n := range counts {
		lines = append(lines, fmt.Sprintf("%-60s %-9s %-17s %6d  first: %+v", d.Rule, d.Act, d.Code, n, examples[d]))
	}
	sort.Slice(lines, func(i, j int) bool { return ruleNumber(lines[i]) < ruleNumber(lines[j]) })
	golden(t, "next.golden", fmt.Sprintf("%d facts\n%s\n", len(all), strings.Join(lines, "\n")))
}

// checkDecision is what must hold whatever the rules are.
func checkDecision(t *testing.T, f Facts, d Decision) {
	t.Helper()
	_, known := session.Diagnostics[d.Code]
	switch {
	case (f.Status == Active) == (d.Act == Rest):
		t.Errorf("%+v: only an active goal goes on: %+v", f, d)
	case d.Act == Verify && !f.Asked && (f.TodoOpen || f.Unknown || f.Subtasks || f.Reviewed || !f.Candidate && !f.TodoDone):
		t.Errorf("%+v: a review that the user did not ask for needs an offer, and nothing that refuses it beforehand: %+v", f, d)
	case f.Asked && f.Status == Active && d.Act != Verify:
		t.Errorf("%+v: a review that the user asked for takes place: %+v", f, d)
	case d.Act == Block && !(f.Blocker && f.SameBlocker && !f.Workable) && (f.Progress || f.IdleTurns < idleTurns):
		t.Errorf("%+v: blocked without the same obstacle or idleness for %d turns: %+v", f, blockerTurns, d)
	case d.Act == Wait && (!f.Live || f.Progress):
		t.Errorf("%+v: a wait without something that runs, or in the middle of progress: %+v", f, d)
	case d.Act == Continue && !f.Progress && f.IdleTurns >= idleTurns:
		t.Errorf("%+v: patience has an end: %+v", f, d)
	case (d.Act == Block || d.Act == Verify || d.Act == Wait) != (d.Code != session.CodeNone):
		t.Errorf("%+v: a stop names its code and nothing else does: %+v", f, d)
	case d.Code != session.CodeNone && !known:
		t.Errorf("%+v: code %q is not in the closed list", f, d.Code)
	case d.Rule == "":
		t.Errorf("%+v: no rule", f)
	}
}

// A finished candidate is reviewed even when the last turns brought nothing new: the candidate is what ends them.
func TestNext_CandidateBeforePatience(t *testing.T) {
	d := Next(Facts{Status: Active, Candidate: true, Blocker: true, SameBlocker: true, IdleTurns: idleTurns})
	if d.Act != Verify {
		t.Errorf("a candidate after idle turns leads to %s", d.Act)
	}
}

func ruleNumber(s string) (n int) {
	_, _ = fmt.Sscanf(s, "G%d", &n)
	return n
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(want) != got {
		t.Errorf("%s differs; run go test ./goals -update and read the diff\n%s", path, got)
	}
}
