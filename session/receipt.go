package session

import "holdfast/usage"

// assumedOutput stands in for the longest answer of a model of which nobody knows how long it may be.
const assumedOutput = 32_000

// newRequest is a request as it is stored before it is sent: whose it is, at which prices, and how much it takes at most. Nothing of that ever
// changes.
func (t *turn) newRequest(p Purpose) Request {
	id := t.model.Identity()
	req := Request{ID: t.e.NewID(), Session: t.a.id, Run: t.run.ID, Attempt: t.att.ID, Goal: t.run.Goal, Revision: t.run.Revision, Purpose: p,
		State: RequestStarted, Model: t.modelName()}
	if t.e.Prices != nil {
		req.Price = t.e.Prices(id)
	}
	return req
}

// reserve says how much a request of so many bytes takes at most: a quarter more than is estimated, and the longest answer.
func (t *turn) reserve(req *Request, bytes int) {
	n := t.counting.tokens(bytes)
	req.ReservedInput, req.ReservedOutput = usage.Plus(n, n/4), assumedOutput
	if t.e.Longest != nil {
		if most := t.e.Longest(t.model.Identity()); most > 0 {
			req.ReservedOutput = most
		}
	}
}

// Cost is what the request cost, by the prices it was sent at.
func (r Request) Cost() usage.Cost { return r.Price.Of(r.Usage()) }

// Account adds up requests. Each counts once, whoever made it.
type Account struct {
	Tokens usage.Total
	Money  usage.Money
}

// AccountOf adds up these requests.
func AccountOf(reqs []Request) (a Account) {
	for _, r := range reqs {
		a.Tokens.Add(r.Usage())
		a.Money.Add(r.Cost())
	}
	return a
}

// CostView is what requests cost in one currency, in millionths of its unit. What is known and what is estimated are not added to each other.
type CostView struct {
	Currency          string `json:"currency"`
	KnownMicros       int64  `json:"knownMicros"`
	KnownRequests     int    `json:"knownRequests"`
	EstimatedMicros   int64  `json:"estimatedMicros"`
	EstimatedRequests int    `json:"estimatedRequests"`
}

// ViewCosts shows amounts, and of US dollars what is known as a number; nil when there is none.
func ViewCosts(m usage.Money) (costs []CostView, usd *float64) {
	costs = []CostView{}
	for _, s := range m.Sums {
		costs = append(costs, CostView{s.Currency, s.KnownMicros, s.KnownRequests, s.EstimatedMicros, s.EstimatedRequests})
		if s.Currency == "USD" && s.KnownRequests > 0 {
			n := float64(s.KnownMicros) / 1e6 // only to be shown
			usd = &n
		}
	}
	return costs, usd
}

// MoneyOf is what was shown, for a line of text.
func MoneyOf(costs []CostView, unknown int) usage.Money {
	m := usage.Money{UnknownRequests: unknown}
	for _, c := range costs {
		m.Sums = append(m.Sums, usage.Sums{Currency: c.Currency, KnownMicros: c.KnownMicros, KnownRequests: c.KnownRequests,
			EstimatedMicros: c.EstimatedMicros, EstimatedRequests: c.EstimatedRequests})
	}
	return m
}
