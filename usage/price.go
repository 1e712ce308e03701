package usage

import (
	"fmt"
	"slices"
	"strings"
)

// Price is what the tokens of a model cost when a request was sent, in millionths of the currency unit for a million tokens. It is stored
// with the request, so that a new table of prices rewrites nothing.
type Price struct {
	Currency   string `json:"currency"` // "" when no price is known
	Input      Count  `json:"input"`
	CacheRead  Count  `json:"cacheRead"`
	CacheWrite Count  `json:"cacheWrite"`
	Output     Count  `json:"output"`
	UpTo       Count  `json:"upToTokens"` // the longest input for which it holds; unknown when it holds for every length
	From       string `json:"from"`       // where it comes from: the catalogue with its day, or the user's configuration
}

// Usable tells whether a request can be priced at all.
func (p Price) Usable() bool { return p.Currency != "" && p.Input.Known && p.Output.Known }

// Trust is how far an amount can be relied on.
type Trust string

const (
	Known     Trust = "known"     // counts and prices are known
	Estimated Trust = "estimated" // one of them stands in for another that is not
	Unknown   Trust = "unknown"   // nothing can be said; never free
)

// Cost is what a request cost, in millionths of the currency unit.
type Cost struct {
	Micros   int64
	Currency string
	Trust    Trust
}

// Of is what a request cost. A request without tokens, such as a refused one, cost nothing. Ordinary input stands in for a share of a cache of
// which the count or the price is unknown, and the price of shorter inputs for that of a longer one; both are estimates.
func (p Price) Of(t Tokens) Cost {
	switch {
	case t.Known && t.Input == 0 && t.Output == 0:
		return Cost{Currency: p.Currency, Trust: Known}
	case !t.Known || !p.Usable():
		return Cost{Trust: Unknown}
	}
	c := Cost{Currency: p.Currency, Trust: Known}
	var sum product
	rest := t.Input
	for _, part := range []struct{ tokens, price Count }{{t.CacheRead, p.CacheRead}, {t.CacheWrite, p.CacheWrite}} {
		switch {
		case !part.price.Known && part.tokens.N > 0, !part.tokens.Known && part.price.Known && part.price.N != p.Input.N:
			c.Trust = Estimated
		case part.price.Known:
			rest -= part.tokens.N
			sum.add(part.tokens.N, part.price.N)
		}
	}
	sum.add(rest, p.Input.N)
	sum.add(t.Output, p.Output.N)
	if p.UpTo.Known && t.Input > p.UpTo.N {
		c.Trust = Estimated
	}
	c.Micros = sum.millionth()
	return c
}

// Most is what a request costs at most that takes so much at most: every input token at the dearest price of input.
func (p Price) Most(input, output int64) Cost {
	if !p.Usable() {
		return Cost{Trust: Unknown}
	}
	var sum product
	sum.add(input, max(p.Input.N, p.CacheWrite.N))
	sum.add(output, p.Output.N)
	return Cost{Micros: sum.millionth(), Currency: p.Currency, Trust: Estimated}
}

// Money adds up what requests cost, each currency for itself.
type Money struct {
	Sums            []Sums
	UnknownRequests int // of which nobody knows what they cost
}

// Sums are the amounts in one currency. They are not added to each other: one is known and one is not.
type Sums struct {
	Currency                         string
	KnownMicros, EstimatedMicros     int64
	KnownRequests, EstimatedRequests int
}

// Clone is a copy that is added to by itself.
func (m Money) Clone() Money {
	m.Sums = slices.Clone(m.Sums)
	return m
}

// Add counts one request.
func (m *Money) Add(c Cost) {
	if c.Trust == Unknown {
		m.UnknownRequests++
		return
	}
	if c.Currency == "" { // it cost nothing, whatever the currency
		return
	}
	i := 0
	for i < len(m.Sums) && m.Sums[i].Currency != c.Currency {
		i++
	}
	if i == len(m.Sums) {
		m.Sums = append(m.Sums, Sums{Currency: c.Currency})
	}
	s := &m.Sums[i]
	if c.Trust == Known {
		s.KnownMicros, s.KnownRequests = plus(s.KnownMicros, c.Micros), s.KnownRequests+1
	} else {
		s.EstimatedMicros, s.EstimatedRequests = plus(s.EstimatedMicros, c.Micros), s.EstimatedRequests+1
	}
}

// String says it in words: "0.42 USD known, 0.10 USD estimated, unknown for 1 more request"; "" when there is nothing to say.
func (m Money) String() string {
	var parts []string
	for _, s := range m.Sums {
		if s.KnownRequests > 0 {
			parts = append(parts, Amount(s.KnownMicros)+" "+s.Currency+" known")
		}
		if s.EstimatedRequests > 0 {
			parts = append(parts, Amount(s.EstimatedMicros)+" "+s.Currency+" estimated")
		}
	}
	if n := m.UnknownRequests; n > 0 {
		more, requests := "", "requests"
		if len(parts) > 0 {
			more = "more "
		}
		if n == 1 {
			requests = "request"
		}
		parts = append(parts, fmt.Sprintf("unknown for %d %s%s", n, more, requests))
	}
	return strings.Join(parts, ", ")
}
