package catalogue

import (
	"cmp"
	"slices"
	"strings"
)

// Catalogue is what is built in, with the user's own figures on top. It never changes.
type Catalogue struct {
	Written string            // the day of what is built in
	Sources map[string]string // where each kind of figure comes from, in general terms

	entries []held
	names   [][2]string // provider and name of each entry for one model, the newest first
	own     []Own
}

type held struct {
	pattern
	Entry
}

// Own is what the user says of the models that a pattern names. Figures without an origin say nothing.
type Own struct {
	Provider, Name string // Name may hold *
	Context        Figure[int64]
	Output         Figure[int64]
	Images         Figure[bool]
	Reasoning      Figure[Reasoning]
	Prices         Prices
}

// Embedded is what is built in.
func Embedded() *Catalogue { return builtIn() }

// With is the catalogue with the user's own figures, in the order of the file.
func (c *Catalogue) With(own []Own) *Catalogue {
	out := *c
	out.own = slices.Concat(c.own, own)
	return &out
}

// Find looks a name up. It is false when nothing is known of the name.
func (c *Catalogue) Find(provider, name string) (Entry, bool) {
	p, n := strings.ToLower(provider), strings.ToLower(name)
	var best *held
	for i := range c.entries {
		h := &c.entries[i]
		if h.match(p, n) != no && (best == nil || cmp.Or(rank(h.pattern, best.pattern, p, n), newer(h, best)) > 0) {
			best = h
		}
	}
	var e Entry
	if best != nil {
		e = best.Entry
	}
	e.Provider, e.Name = provider, name
	own := c.ownOf(p, n)
	for _, o := range own {
		e.take(o)
	}
	return e, best != nil || len(own) > 0
}

// newer decides between two patterns that are equally exact; the last word is the name's, so that the order of a file never has it.
func newer(a, b *held) int {
	return cmp.Or(strings.Compare(a.Released, b.Released), strings.Compare(b.name, a.name))
}

// ownOf are the user's figures for a name, the ones that count last.
func (c *Catalogue) ownOf(provider, name string) (out []Own) {
	for _, o := range c.own {
		if o.pattern().match(provider, name) != no {
			out = append(out, o)
		}
	}
	slices.SortStableFunc(out, func(a, b Own) int { return rank(a.pattern(), b.pattern(), provider, name) })
	return out
}

func (o Own) pattern() pattern {
	return pattern{provider: strings.ToLower(o.Provider), name: strings.ToLower(o.Name)}
}

// take lets every figure that the user gave count. Prices in another currency leave none of the old ones behind: nobody could add them up.
func (e *Entry) take(o Own) {
	over(&e.Context, o.Context)
	over(&e.Output, o.Output)
	over(&e.Images, o.Images)
	over(&e.Reasoning, o.Reasoning)
	p, q := &e.Prices, o.Prices
	if !q.Currency.Known() {
		return
	}
	if q.Currency.Value != p.Currency.Value {
		*p = Prices{}
	}
	if p.Currency.Value == "" {
		p.Currency = q.Currency
	}
	for _, f := range []struct{ to, from *Figure[int64] }{{&p.Input, &q.Input}, {&p.Cached, &q.Cached}, {&p.CacheWrite, &q.CacheWrite}, {&p.Output, &q.Output}} {
		over(f.to, *f.from)
	}
	// How long a prompt may be belongs to the prices it came with.
	if !slices.ContainsFunc([]Figure[int64]{p.Input, p.Cached, p.CacheWrite, p.Output}, func(f Figure[int64]) bool { return f.From == FromCatalogue }) {
		p.UpTo = Figure[int64]{}
	}
}

func over[T any](to *Figure[T], from Figure[T]) {
	if from.Known() {
		*to = from
	}
}

// Names lists the models of a provider that have an entry of their own, the newest first, then those that the user named without a *.
func (c *Catalogue) Names(provider string) (names []string) {
	for _, n := range c.names {
		if n[0] == provider {
			names = append(names, n[1])
		}
	}
	for _, o := range c.own {
		if strings.EqualFold(o.Provider, provider) && !strings.Contains(o.Name, "*") && !slices.Contains(names, o.Name) {
			names = append(names, o.Name)
		}
	}
	return names
}
