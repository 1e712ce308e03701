package catalogue

import (
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// What real names find.
func TestFind_Names(t *testing.T) {
	for name, want := range map[string]struct {
		context int64 // 0 means unknown
		price   int64 // of an answer
		found   bool
	}{
		"openai/gpt-4o":                      {128000, 10_000_000, true},
		"openai/gpt-4o-2024-11-20":           {128000, 10_000_000, true},
		"openai/gpt-4o-2024-05-13":           {128000, 15_000_000, true}, // an entry of its own is the more exact one
		"openai/GPT-4o":                      {128000, 10_000_000, true},
		"OpenAI/gpt-4o":                      {128000, 10_000_000, true},
		"openai/gpt-4o-2024-13-20":           {}, // no such day
		"openai/gpt-4o-audio-preview":        {}, // another model
		"openai/gpt-4o-mini":                 {128000, 600_000, true},
		"openai/gpt-5.9":                     {},
		"openai/gpt-6.1-sol":                 {0, 0, true},
		"anthropic/claude-opus-4-5-20251101": {200000, 25_000_000, true},
		"anthropic/claude-opus-4-20250514":   {200000, 75_000_000, true},
		"anthropic/claude-opus-4-5@20251101": {200000, 25_000_000, true},
		"anthropic/claude-3-5-haiku-latest":  {200000, 4_000_000, true},
		"anthropic/claude-opus-4-5-2025110":  {},
		"anthropic/gpt-4o":                   {}, // another provider's
		"openai/":                            {},
		"/":                                  {},
	} {
		provider, model, _ := strings.Cut(name, "/")
		e, ok := Embedded().Find(provider, model)
		if ok != want.found || e.Context.Value != want.context || e.Prices.Output.Value != want.price || e.Context.Known() != (want.context > 0) {
			t.Errorf("%s: %t, %+v", name, ok, e)
		}
	}
}

// Which models take no images is known of families too, wherever they are served; of all others nothing is said.
func TestFind_Images(t *testing.T) {
	for name, want := range map[string]string{
		"gpt-3.5-turbo": "no", "o3-mini": "no", "deepseek-v3": "no", "vendor/qwen2.5-coder:7b": "no", "DeepSeek-R1": "no", "hub/a/codellama": "no",
		"gpt-4o": "yes", "qwen3-vl": "unknown", "fake": "unknown", "my-deepseek": "unknown", "deepseek/other": "unknown",
	} {
		e, _ := Embedded().Find("openai", name)
		got := "unknown"
		if e.Images.Known() {
			got = map[bool]string{true: "yes", false: "no"}[e.Images.Value]
		}
		if got != want {
			t.Errorf("%s: images %s, want %s", name, got, want)
		}
	}
}

var (
	names    = rapid.StringMatching(`[ab]{1,3}`)
	ends     = rapid.SampledFrom([]string{"", "-20260102", "-2026-01-02", "-latest"})
	patterns = rapid.SampledFrom([]string{"a", "b", "ab", "ba", "a*", "*a", "b*", "*b", "a*b", "*", "**", "a*2", "*-2*", "b*st", "*-20260102"})
)

// file of some entries whose patterns overlap.
func drawn(t *rapid.T) *Catalogue {
	c := &Catalogue{}
	seen := map[pattern]bool{}
	for i := range rapid.IntRange(0, 12).Draw(t, "entries") {
		p := pattern{provider: rapid.SampledFrom([]string{"p", "q", "*"}).Draw(t, "provider"), name: patterns.Draw(t, "pattern")}
		if seen[p] {
			continue
		}
		seen[p] = true
		p.dated = !strings.Contains(p.name, "*") && rapid.Bool().Draw(t, "dated")
		c.entries = append(c.entries, held{p, Entry{Released: rapid.SampledFrom([]string{"", "2025-01-01", "2026-01-01"}).Draw(t, "released"),
			Context: Is(int64(i+1), Origin{From: FromCatalogue})}})
	}
	return c
}

// The order of the entries decides nothing.
func TestFind_OrderDecidesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawn(t)
		name := names.Draw(t, "asked") + ends.Draw(t, "end")
		want, ok := c.Find("p", name)
		other := &Catalogue{entries: rapid.Permutation(c.entries).Draw(t, "order")}
		got, also := other.Find("p", name)
		if ok != also || got.Context != want.Context {
			t.Fatalf("%q finds %+v, and in another order %+v, in %+v", name, want, got, c.entries)
		}
	})
}

// The more exact pattern counts: a name before its date, a date before a star, the longer before the shorter; and what is found does match.
func TestFind_TheMoreExactCounts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawn(t)
		name := names.Draw(t, "asked") + ends.Draw(t, "end")
		got, ok := c.Find("p", name)
		any := false
		for _, h := range c.entries {
			how := h.match("p", name)
			any = any || how != no
			for _, found := range c.entries {
				if found.Context != got.Context || !ok {
					continue
				}
				if mine := found.match("p", name); mine == no || mine < how {
					t.Fatalf("%q finds %+v although %+v is more exact", name, found.pattern, h.pattern)
				}
			}
		}
		if any != ok {
			t.Fatalf("%q: found %t, matched %t", name, ok, any)
		}
	})
}

// Between patterns that are equally exact the newer model counts, and one whose day is known before one whose day is not.
func TestFind_TheNewerOfEquals(t *testing.T) {
	for name, days := range map[string][2]string{"later": {"2025-01-01", "2026-01-01"}, "known": {"", "2025-01-01"}} {
		for _, first := range []int{0, 1} {
			entries := []held{{pattern{"p", "a*", false}, Entry{Released: days[first]}}, {pattern{"p", "*b", false}, Entry{Released: days[1-first]}}}
			if e, ok := (&Catalogue{entries: entries}).Find("p", "ab"); !ok || e.Released != days[1] {
				t.Errorf("%s, %d: %+v", name, first, e)
			}
		}
	}
}

// What is said of a provider's own model counts before what is said of that name anywhere.
func TestFind_TheProvidersOwn(t *testing.T) {
	for _, providers := range [][2]string{{"p", "*"}, {"*", "p"}} {
		var c Catalogue
		for _, p := range providers {
			c.entries = append(c.entries, held{pattern{p, "a", false}, Entry{Context: Is(int64(len(p)), Origin{From: p})}})
		}
		if e, _ := c.Find("p", "a"); e.Context.From != "p" {
			t.Errorf("%q: %+v", providers, e)
		}
	}
}

// A date is a day that there is, in a spelling of the providers, and only at the end.
func TestFind_Dates(t *testing.T) {
	c := &Catalogue{entries: []held{{pattern{"p", "ab", true}, Entry{}}}}
	rapid.Check(t, func(t *rapid.T) {
		day := time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC).AddDate(0, 0, rapid.IntRange(0, 9999).Draw(t, "day"))
		for _, layout := range []string{"-2006-01-02", "-20060102", "@20060102"} {
			end := day.Format(layout)
			if _, ok := c.Find("p", "ab"+end); !ok {
				t.Fatalf("ab%s is not found", end)
			}
			for _, wrong := range []string{"ab" + end + "0", "ab" + end + "-x", "ab" + end[1:], "b" + end, "abb" + end, "ab" + strings.TrimSuffix(end, end[len(end)-2:]) + "99"} {
				if _, ok := c.Find("p", wrong); ok {
					t.Fatalf("%s is found", wrong)
				}
			}
		}
	})
}

// A star stands for any characters, none too: compared with a slow comparison that tries everything.
func TestGlob_IsWhatItSays(t *testing.T) {
	var slow func(p, s string) bool
	slow = func(p, s string) bool {
		if p == "" {
			return s == ""
		}
		if p[0] == '*' {
			return slow(p[1:], s) || s != "" && slow(p, s[1:])
		}
		return s != "" && p[0] == s[0] && slow(p[1:], s[1:])
	}
	rapid.Check(t, func(t *rapid.T) {
		p, s := rapid.StringMatching(`[ab*]{0,8}`).Draw(t, "pattern"), rapid.StringMatching(`[ab]{0,10}`).Draw(t, "name")
		if got := glob(p, s); got != slow(p, s) {
			t.Fatalf("%q with %q: %t", p, s, got)
		}
	})
}

// Own figures count each for itself; the others stay, with where they come from.
func TestWith_EachFigureForItself(t *testing.T) {
	at := func(line int) Origin { return Origin{From: FromConfig, File: "/c", Line: line} }
	c := Embedded().With([]Own{
		{Provider: "openai", Name: "gpt-4o", Context: Is(int64(1000), at(2))},
		{Provider: "openai", Name: "gpt-*", Context: Is(int64(5), at(4)), Images: Is(false, at(5))},
		{Provider: "openai", Name: "mine", Output: Is(int64(7), at(7)), Prices: Prices{Currency: Is("EUR", at(8)), Input: Is(int64(0), at(9))}},
		{Provider: "openai", Name: "gpt-4o-mini", Prices: Prices{Currency: Is("EUR", at(10)), Output: Is(int64(3), at(11))}},
		{Provider: "openai", Name: "gpt-4.1", Prices: Prices{Currency: Is("USD", at(12)), Output: Is(int64(3), at(13))}},
	})
	e, ok := c.Find("openai", "gpt-4o")
	if !ok || e.Context != Is(int64(1000), at(2)) || e.Images != Is(false, at(5)) || e.Output.From != FromCatalogue || e.Output.Value != 16384 {
		t.Errorf("gpt-4o is %+v", e)
	}
	if e, ok := c.Find("openai", "mine"); !ok || !e.Prices.Input.Known() || e.Prices.Input.Value != 0 || e.Prices.Output.Known() || e.Context.Known() {
		t.Errorf("mine is %t, %+v", ok, e)
	}
	if e, _ := c.Find("openai", "gpt-4o-mini"); e.Prices.Currency.Value != "EUR" || e.Prices.Input.Known() || e.Prices.Output.Value != 3 {
		t.Errorf("prices of two currencies: %+v", e.Prices)
	}
	if e, _ := c.Find("openai", "gpt-4.1"); e.Prices.Input.From != FromCatalogue || e.Prices.Output != Is(int64(3), at(13)) {
		t.Errorf("prices of one currency: %+v", e.Prices)
	}
	if _, ok := Embedded().Find("openai", "mine"); ok {
		t.Error("what is built in was changed")
	}
	if n := c.Names("openai"); !slices.Contains(n, "mine") || slices.Contains(n, "gpt-*") || slices.Index(n, "gpt-4o") != slices.Index(Embedded().Names("openai"), "gpt-4o") {
		t.Errorf("listed are %q", n)
	}
}

// Among equals the later one counts, and a more exact one before both.
func TestWith_TheLaterOfEquals(t *testing.T) {
	own := func(name string, n int64) Own {
		return Own{Provider: "openai", Name: name, Context: Is(n, Origin{From: FromConfig, Line: int(n)})}
	}
	c := Embedded().With([]Own{own("ab", 1), own("a*", 2), own("*b", 3)})
	for name, want := range map[string]int64{"ab": 1, "axb": 3, "ax": 2} {
		if e, _ := c.Find("openai", name); e.Context.Value != want {
			t.Errorf("%s is %d, want %d", name, e.Context.Value, want)
		}
	}
}

// What others charge for the same model is not known.
func TestElsewhere_LeavesOutPrices(t *testing.T) {
	e, _ := Embedded().Find("openai", "gpt-4o")
	if e = e.Elsewhere(); e.Prices != (Prices{}) || !e.Context.Known() {
		t.Errorf("%+v", e)
	}
	own, _ := Embedded().With([]Own{{Provider: "openai", Name: "gpt-4o", Prices: Prices{Currency: Is("USD", Origin{From: FromConfig}), Input: Is(int64(1), Origin{From: FromConfig})}}}).Find("openai", "gpt-4o")
	if own = own.Elsewhere(); !own.Prices.Input.Known() || own.Prices.Output.Known() {
		t.Errorf("of one's own: %+v", own.Prices)
	}
}
