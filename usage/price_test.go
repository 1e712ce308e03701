package usage

import (
	"math"
	"reflect"
	"testing"
)

// price is 3 for a million tokens of input, 0.30 from the cache, 3.75 to it, and 15 for output.
var price = Price{Currency: "USD", Input: Of(3_000_000), CacheRead: Of(300_000), CacheWrite: Of(3_750_000), Output: Of(15_000_000)}

func TestPriceOf(t *testing.T) {
	plain := Price{Currency: "USD", Input: Of(3_000_000), Output: Of(15_000_000)}
	short := price
	short.UpTo = Of(999)
	half := price
	half.Output = Count{}
	for name, c := range map[string]struct {
		price  Price
		tokens Tokens
		want   Cost
	}{
		"all known":                   {price, Report(1000, 100, Parts{Of(800), Of(100), Of(50)}), Cost{2415, "USD", Known}},
		"nothing of it in a cache":    {price, Report(1000, 100, Parts{CacheRead: Of(0), CacheWrite: Of(0)}), Cost{4500, "USD", Known}},
		"shares of caches unsaid":     {price, Report(1000, 100, Parts{}), Cost{4500, "USD", Estimated}},
		"one price for all input":     {plain, Report(1000, 100, Parts{}), Cost{4500, "USD", Known}},
		"no price for the cache":      {plain, Report(1000, 100, Parts{CacheRead: Of(800)}), Cost{4500, "USD", Estimated}},
		"longer than the price holds": {short, Report(1000, 100, Parts{Of(0), Of(0), Count{}}), Cost{4500, "USD", Estimated}},
		"as long as the price holds":  {short, Report(999, 100, Parts{Of(0), Of(0), Count{}}), Cost{4497, "USD", Known}},
		"a started millionth":         {price, Report(1, 0, Parts{Of(1), Of(0), Count{}}), Cost{1, "USD", Known}},
		"no price for output":         {half, Report(1000, 100, Parts{}), Cost{Trust: Unknown}},
		"no price":                    {Price{}, Report(1000, 100, Parts{}), Cost{Trust: Unknown}},
		"unknown usage":               {price, Tokens{Input: 5}, Cost{Trust: Unknown}},
		"refused":                     {price, Tokens{Known: true}, Cost{0, "USD", Known}},
		"refused, without a price":    {Price{}, Tokens{Known: true}, Cost{Trust: Known}},
		"more than there are numbers": {Price{Currency: "USD", Input: Of(math.MaxInt64), Output: Of(math.MaxInt64)}, Tokens{Input: math.MaxInt64, Output: math.MaxInt64, Known: true},
			Cost{math.MaxInt64, "USD", Known}},
	} {
		if got := c.price.Of(c.tokens); got != c.want {
			t.Errorf("%s: %+v; want %+v", name, got, c.want)
		}
	}
	if got := price.Most(1000, 100); got != (Cost{5250, "USD", Estimated}) {
		t.Errorf("at most: %+v", got)
	}
}

func TestMoneyKeepsKnownEstimatedAndUnknownApart(t *testing.T) {
	var m Money
	for _, c := range []Cost{{10, "USD", Known}, {5, "USD", Estimated}, {Trust: Unknown}, {7, "EUR", Known}, {1, "USD", Known}, {Trust: Known}, {math.MaxInt64, "EUR", Known}} {
		m.Add(c)
	}
	want := Money{[]Sums{{"USD", 11, 5, 2, 1}, {"EUR", math.MaxInt64, 0, 2, 0}}, 1}
	if !reflect.DeepEqual(m, want) {
		t.Errorf("%+v; want %+v", m, want)
	}
	m = Money{[]Sums{{"USD", 420_000, 100_000, 2, 1}, {"EUR", 10_000, 0, 1, 0}}, 1}
	if got := m.String(); got != "0.42 USD known, 0.10 USD estimated, 0.01 EUR known, unknown for 1 more request" {
		t.Error(got)
	}
	if got := (Money{UnknownRequests: 2}).String() + (Money{}).String(); got != "unknown for 2 requests" {
		t.Error(got)
	}
}

func TestAmountsAreExact(t *testing.T) {
	for text, n := range map[string]int64{"0.42": 420_000, "1.000005": 1_000_005, "12.00": 12_000_000, "0.10": 100_000, "9223372036854.775807": math.MaxInt64} {
		if got := Amount(n); got != text {
			t.Errorf("Amount(%d) is %q; want %q", n, got, text)
		}
		if got, err := Micros(text); got != n || err != nil {
			t.Errorf("Micros(%q) is %d, %v; want %d", text, got, err, n)
		}
	}
	for text, n := range map[string]int64{"5": 5_000_000, ".5": 500_000, "2.5000000": 2_500_000} {
		if got, err := Micros(text); got != n || err != nil {
			t.Errorf("Micros(%q) is %d, %v; want %d", text, got, err, n)
		}
	}
	for _, text := range []string{"", "0", "0.000000", "-1", "+1", "1e3", "NaN", "1.0000001", "9223372036854.775808", "1.2.3", " 1"} {
		if got, err := Micros(text); err == nil {
			t.Errorf("Micros(%q) is %d", text, got)
		}
	}
}
