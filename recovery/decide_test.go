package recovery

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

// every lists all facts there can be.
func every() []Facts {
	var all []Facts
	bools := []bool{false, true}
	for _, desired := range []session.Desired{session.DesiredRun, session.DesiredPaused, session.DesiredCancelled, session.DesiredDone} {
		for _, closed := range bools {
			for _, approval := range []Approval{NoQuestion, Pending, Answered} {
				for _, dir := range []Directory{DirSame, DirMissing, DirChanged} {
					for _, model := range []Model{ModelSame, ModelMissing, ModelDiffers} {
						for _, tools := range []Tools{ToolsHere, ToolsMissing} {
							for _, loop := range bools {
								for _, attempt := range []Attempt{NeverTried, EndedTry, HandedTry, LostTry} {
									for _, calls := range []Calls{CallsClosed, CallsPlanned, CallsLive, CallsUnseen, CallsUnknown} {
										for _, streaming := range bools {
											for _, redo := range []Redo{NoRedo, RedoProven, RedoConfirm, RedoFromHere, RedoAll} {
												for _, auto := range []Auto{AutoGoes, AutoOff, AutoAttached} {
													all = append(all, Facts{desired, closed, approval, dir, model, tools, loop, attempt, calls, streaming, redo, auto})
												}
											}
										}
									}
								}
							}
						}
					}
				}
			}
		}
	}
	return all
}

func TestDecide_EveryFact(t *testing.T) {
	counts := map[Decision]int{}
	examples := map[Decision]Facts{}
	all := every()
	for _, f := range all {
		d := Decide(f)
		if counts[d]++; counts[d] == 1 {
			examples[d] = f
		}
		if f.Desired != session.DesiredRun && d.Action != Leave {
			t.Fatalf("I3: stopped work is not left alone: %+v: %+v", f, d)
		}
		if d.Action == Wait != (d.Code != session.CodeNone) {
			t.Fatalf("a wait names its code and nothing else does: %+v: %+v", f, d)
		}
		if _, known := session.Diagnostics[d.Code]; d.Action == Wait && !known {
			t.Fatalf("code %q is not in the closed list", d.Code)
		}
		if f.Attempt == LostTry && (f.Calls == CallsUnknown || f.Calls == CallsUnseen) && d.Action != Wait && d.Action != Leave && d.Action != NewTurn && d.Action != Again {
			t.Fatalf("I2: an unknown outcome must lead to a new turn: %+v: %+v", f, d)
		}
	}
	t.Logf("%d facts, %d decisions", len(all), len(counts))
	var lines []string
	for d, n := range counts {
		lines = append(lines, fmt.Sprintf("%-44s %-11s %-20s %6d  first: %+v", d.Rule, d.Action, d.Code, n, examples[d]))
	}
	sort.Slice(lines, func(i, j int) bool { return ruleNumber(lines[i]) < ruleNumber(lines[j]) })
	golden(t, "decide.golden", fmt.Sprintf("%d facts\n%s\n", len(all), strings.Join(lines, "\n")))
}

func ruleNumber(s string) (n int) {
	_, _ = fmt.Sscanf(s, "R%d", &n)
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
		t.Errorf("%s differs; run go test ./recovery -update and read the diff\n%s", path, got)
	}
}
