package crash_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
)

// recovery are the points at which the next process may die while it recovers.
var recovery = []string{"owner.takeover:before", "owner.takeover:after", "recovery.decided:before", "recovery.decided:after"}

// The second death comes while the first is recovered from.
func TestTwice(t *testing.T) {
	for _, first := range []string{"request.started:after", "effect.dispatched:after", "proc.launched", "effect.settled:after/2"} {
		for _, again := range recovery {
			t.Run(first+" "+again, func(t *testing.T) {
				t.Parallel()
				trial{point: first, again: again, play: goalPlay, check: achieved}.run(t)
			})
		}
	}
}

// onTheWay is how often a Goal meets each point, where that is certain.
var onTheWay = map[string]int{"request.started": 5, "response.stored": 5, "approval.raised": 3, "approval.answered": 3, "effect.dispatched": 3,
	"effect.settled": 6, "run.admitted": 2, "turn.ended": 2, "proc.spec": 2, "proc.claimed": 2, "proc.launched": 2}

// occasions are all times that a Goal meets a point.
func occasions() []string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(onTheWay)) {
		instants := []string{name + ":before", name + ":after"}
		if strings.HasPrefix(name, "proc.") {
			instants = []string{name}
		}
		for _, instant := range instants {
			for n := range onTheWay[name] {
				out = append(out, fmt.Sprintf("%s/%d", instant, n+1))
			}
		}
	}
	return out
}

// TestLong_EveryOccasion dies each time that a point is met, not only the first.
func TestLong_EveryOccasion(t *testing.T) {
	long(t)
	for _, point := range occasions() {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			trial{point: point, play: goalPlay, check: achieved}.run(t)
		})
	}
}

// TestLong_Twice dies on every occasion, and again at every point of the recovery from that.
func TestLong_Twice(t *testing.T) {
	long(t)
	for _, point := range occasions() {
		for _, again := range recovery {
			if point == "turn.ended:after/2" {
				continue // the Goal has ended: nothing is recovered
			}
			t.Run(point+" "+again, func(t *testing.T) {
				t.Parallel()
				trial{point: point, again: again, play: goalPlay, check: achieved}.run(t)
			})
		}
	}
}
