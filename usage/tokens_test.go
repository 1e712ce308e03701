package usage

import (
	"encoding/json"
	"math"
	"testing"
)

func TestReportBelievesOnlyWhatCanBe(t *testing.T) {
	whole := Parts{Of(60), Of(40), Of(20)}
	for name, c := range map[string]struct {
		in, out int64
		parts   Parts
		want    Tokens
	}{
		"all parts":                       {100, 20, whole, Tokens{100, 20, whole, true}},
		"nothing said of the parts":       {100, 20, Parts{}, Tokens{Input: 100, Output: 20, Known: true}},
		"zero is said":                    {100, 20, Parts{CacheRead: Of(0)}, Tokens{100, 20, Parts{CacheRead: Of(0)}, true}},
		"nothing was counted":             {0, 0, whole, Tokens{}},
		"negative":                        {-1, 20, Parts{}, Tokens{}},
		"more from caches than the whole": {100, 20, Parts{Of(60), Of(41), Of(1)}, Tokens{100, 20, Parts{Reasoning: Of(1)}, true}},
		"more reasoning than output":      {100, 20, Parts{CacheRead: Of(5), Reasoning: Of(21)}, Tokens{100, 20, Parts{CacheRead: Of(5)}, true}},
		"a negative part":                 {100, 20, Parts{CacheRead: Of(-5)}, Tokens{Input: 100, Output: 20, Known: true}},
		"parts that overflow together":    {math.MaxInt64, 1, Parts{CacheRead: Of(math.MaxInt64), CacheWrite: Of(math.MaxInt64)}, Tokens{Input: math.MaxInt64, Output: 1, Known: true}},
	} {
		if got := Report(c.in, c.out, c.parts); got != c.want {
			t.Errorf("%s: %+v; want %+v", name, got, c.want)
		}
	}
}

// Snapshots of one request are cumulative, come in any order, and come again.
func TestRaiseMovesAWatermark(t *testing.T) {
	snapshots := []Tokens{Report(100, 1, Parts{CacheRead: Of(60)}), {}, Report(100, 9, Parts{}), Report(100, 5, Parts{Reasoning: Of(3)})}
	want := Tokens{100, 9, Parts{CacheRead: Of(60), Reasoning: Of(3)}, true}
	orders := [][]int{{0, 1, 2, 3}, {3, 2, 1, 0}, {0, 0, 2, 2, 3, 3}, {2, 3, 0, 2}}
	for _, order := range orders {
		var got Tokens
		for _, i := range order {
			got = got.Raise(snapshots[i])
		}
		if got != want {
			t.Errorf("in the order %v: %+v; want %+v", order, got, want)
		}
	}
}

func TestTotalKeepsUnknownApart(t *testing.T) {
	var total Total
	for _, r := range []Tokens{Report(100, 10, Parts{CacheRead: Of(60), Reasoning: Of(0)}), {Input: 7}, Report(50, 5, Parts{})} {
		total.Add(r)
	}
	b, err := json.Marshal(total)
	const want = `{"inputTokens":150,"outputTokens":15,"cacheReadTokens":60,"cacheWriteTokens":null,"reasoningTokens":0,"unknownRequests":1}`
	if err != nil || string(b) != want {
		t.Errorf("the total is %s, %v; want %s", b, err, want)
	}
	if total.CacheRead.Unreported != 1 || total.CacheWrite.Unreported != 2 {
		t.Errorf("unreported: %d and %d", total.CacheRead.Unreported, total.CacheWrite.Unreported)
	}
	total = Total{Input: math.MaxInt64 - 1}
	total.Add(Tokens{Input: 5, Known: true})
	if total.Input != math.MaxInt64 {
		t.Errorf("an overflow gives %d", total.Input)
	}
}
