package session

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite testdata/*.golden")

var (
	everyClass = []Class{ReadOnly, Idempotent, StateProbe, Unknown}
	everyStand = []Standing{StandingNone, StandingAllow, StandingGranted, StandingAsk, StandingDeny, StandingDoubt}
	everyKind  = []Kind{KindRead, KindEdit, KindDelete, KindMove, KindSearch, KindExecute, KindThink, KindOther}
)

// everyInput lists all the policy can be asked, for the given modes, classes and kinds.
func everyInput(modes []Mode, classes []Class, kinds []Kind) []PolicyInput {
	var all []PolicyInput
	bools := []bool{false, true}
	for _, mode := range modes {
		for _, class := range classes {
			for _, kind := range kinds {
				for _, unknown := range bools {
					for _, reviewer := range bools {
						for _, code := range bools {
							for _, standing := range everyStand {
								for _, place := range append(Places, "elsewhere") {
									in := PolicyInput{Mode: mode, Class: class, Kind: kind, Place: place, Unknown: unknown, Reviewer: reviewer, FromCode: code, Standing: standing}
									all = append(all, everyReach(in)...)
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

// everyReach lists an input with all that can be said of a command.
func everyReach(in PolicyInput) (all []PolicyInput) {
	for _, reach := range append(Reaches, "far") {
		for _, wall := range []bool{false, true} {
			in.Reach, in.Wall = reach, wall
			all = append(all, in)
		}
	}
	return all
}

func TestPermit_EveryInput(t *testing.T) {
	type outcome struct {
		ruling Ruling
		rule   string
	}
	counts, examples := map[outcome]int{}, map[outcome]PolicyInput{}
	all := everyInput(Modes, everyClass, everyKind)
	for _, in := range all {
		var o outcome
		o.ruling, o.rule = Permit(in)
		if counts[o]++; counts[o] == 1 {
			examples[o] = in
		}
		checkRuling(t, in, o.ruling)
	}
	t.Logf("%d inputs, %d outcomes", len(all), len(counts))
	var lines []string
	for o, n := range counts {
		lines = append(lines, fmt.Sprintf("%-36s %-8s %5d  first: %+v", o.rule, o.ruling, n, examples[o]))
	}
	sort.Strings(lines)
	golden(t, "policy.golden", fmt.Sprintf("%d inputs\n%s\n", len(all), strings.Join(lines, "\n")))
}

// checkRuling is what must hold whatever the rules are.
func checkRuling(t *testing.T, in PolicyInput, ruling Ruling) {
	t.Helper()
	reads := in.Class == ReadOnly
	free := in.Place == PlaceInside || in.Place == PlaceProtected && reads
	switch {
	case ruling != Allow && ruling != Question && ruling != Refuse:
		t.Errorf("%+v: no ruling: %q", in, ruling)
	case reads && free && !in.Standing.hinders() && ruling != Allow:
		t.Errorf("%+v: a trusted reader is not free: %s", in, ruling)
	case !free && ruling == Allow && (in.Place != PlaceOutside || reads || in.Standing != StandingAllow):
		t.Errorf("%+v: a place that asks is free", in)
	case !reads && in.Unknown && ruling == Allow:
		t.Errorf("I9: %+v: allowed while an outcome is unknown", in)
	case !reads && in.Mode == ModePlan && ruling != Refuse:
		t.Errorf("%+v: plan mode does not refuse a change: %s", in, ruling)
	case !reads && in.Reviewer && !in.FromCode && ruling != Refuse:
		t.Errorf("%+v: a reviewer's change is not refused: %s", in, ruling)
	case in.Standing == StandingDeny && ruling != Refuse:
		t.Errorf("%+v: what the user rejects is not refused: %s", in, ruling)
	case in.Standing.hinders() && ruling == Allow:
		t.Errorf("%+v: what the user wants to be asked about is allowed", in)
	case in.Class == Unknown && ruling == Allow && in.Standing != StandingAllow && in.Standing != StandingGranted &&
		(in.Mode != ModeAuto || in.Kind != KindExecute || in.Reach != ReachReads && (in.Reach != ReachWorks || !in.Wall)):
		t.Errorf("%+v: a call with an unprovable outcome is allowed and nobody said so", in)
	}
}

// What this binary does not know, for example from a store of a newer one, is never a way in.
func TestPermit_UnlistedValuesOpenNothing(t *testing.T) {
	odd := everyInput([]Mode{"", "free", "EDIT", "AUTO"}, everyClass, everyKind)
	odd = append(odd, everyInput(Modes, []Class{"", "READ_ONLY", "safe"}, append(everyKind, "", "erase"))...)
	for _, in := range odd {
		if ruling, rule := Permit(in); ruling == Allow && (in.Class != ReadOnly || in.placeAsks()) {
			t.Errorf("%+v is allowed by %q", in, rule)
		}
	}
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
		t.Errorf("%s differs; run go test ./session -update and read the diff\n%s", path, got)
	}
}
