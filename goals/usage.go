package goals

import (
	"holdfast/session"
	"holdfast/usage"
)

// UsageView keeps known, estimated and unknown apart.
type UsageView struct {
	Input  int64 `json:"inputTokens"`
	Output int64 `json:"outputTokens"`
	// Parts of the two; null when no request reported them.
	CacheRead  *int64 `json:"cacheReadTokens"`
	CacheWrite *int64 `json:"cacheWriteTokens"`
	Reasoning  *int64 `json:"reasoningTokens"`
	// CostUSD is what is known to have been spent in US dollars; null when nothing is known.
	CostUSD     *float64           `json:"costUsd"`
	Costs       []session.CostView `json:"costs"`
	UnknownCost int                `json:"unknownCostRequests"` // requests of which nobody knows what they cost
	Unknown     int                `json:"unknownRequests"`     // requests of which nobody knows what they consumed
}

func viewUsage(reqs []session.Request) UsageView {
	a := session.AccountOf(reqs)
	u := a.Tokens
	v := UsageView{Input: u.Input, Output: u.Output, CacheRead: u.CacheRead.Pointer(), CacheWrite: u.CacheWrite.Pointer(), Reasoning: u.Reasoning.Pointer(),
		Unknown: u.UnknownRequests, UnknownCost: a.Money.UnknownRequests}
	v.Costs, v.CostUSD = session.ViewCosts(a.Money)
	return v
}

// Money is the costs for a line of text.
func (u UsageView) Money() usage.Money {
	return session.MoneyOf(u.Costs, u.UnknownCost)
}

// MomentCost is what one request cost, by the prices it was sent at.
type MomentCost struct {
	Micros   int64       `json:"micros"`
	Currency string      `json:"currency"`
	Trust    usage.Trust `json:"trust"`
}

func requestMoment(r session.Request) Moment {
	c := r.Cost()
	return Moment{At: r.StartedAt, What: "request", Run: r.Run, Kind: r.Model, State: string(r.State), Title: string(r.Purpose), Input: r.Input, Output: r.Output,
		CacheRead: r.Parts.CacheRead.Pointer(), CacheWrite: r.Parts.CacheWrite.Pointer(), Reasoning: r.Parts.Reasoning.Pointer(),
		Cost: &MomentCost{c.Micros, c.Currency, c.Trust}}
}
