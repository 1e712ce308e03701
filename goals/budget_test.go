package goals

import (
	"math"
	"testing"
	"time"

	"holdfast/session"
	"holdfast/usage"
)

var (
	dollars = usage.Price{Currency: "USD", Input: usage.Of(3_000_000), Output: usage.Of(15_000_000)}
	known   = session.Request{State: session.RequestSettled, Input: 1000, Output: 100, Price: dollars, ReservedInput: 2000, ReservedOutput: 200}
	next    = session.Request{State: session.RequestStarted, Model: "openai/x", Price: dollars, ReservedInput: 2000, ReservedOutput: 200}
)

// What is not known of a request counts with the most that it was expected to take: it is never free.
func TestBudget_Used(t *testing.T) {
	lost, sent, old, free, refused, euros := known, known, known, known, known, known
	lost.State, lost.Input, lost.Output = session.RequestUnknown, 0, 0
	sent.State, sent.Input, sent.Output = session.RequestStarted, 0, 0
	old.State, old.Input, old.Output, old.ReservedInput, old.ReservedOutput, old.Price = session.RequestUnknown, 0, 0, 0, 0, usage.Price{}
	free.Price = usage.Price{}
	refused.Input, refused.Output, refused.Price = 0, 0, usage.Price{}
	euros.Price.Currency = "EUR"
	for name, c := range map[string]struct {
		req  session.Request
		want BudgetUse
	}{
		"known":                      {known, BudgetUse{4500, 1100, 7, 0}},
		"unknown":                    {lost, BudgetUse{9000, 2200, 7, 0}},
		"on its way, or never ended": {sent, BudgetUse{9000, 2200, 7, 0}},
		"of an earlier version":      {old, BudgetUse{0, assumedRequest, 7, 1}},
		"without a price":            {free, BudgetUse{0, 1100, 7, 1}},
		"refused":                    {refused, BudgetUse{0, 0, 7, 0}},
		"in another currency":        {euros, BudgetUse{0, 1100, 7, 1}},
	} {
		if got := (Budget{CostMicros: 1, Currency: "USD"}).used([]session.Request{c.req}, 7500*time.Millisecond); got != c.want {
			t.Errorf("%s: %+v; want %+v", name, got, c.want)
		}
	}
}

// The next request is counted with the most that it may take. A limit that is just kept lets it be made.
func TestBudget_Refuses(t *testing.T) {
	unpricedNext, endless := next, next
	unpricedNext.Price = usage.Price{}
	endless.ReservedOutput = math.MaxInt64
	usd := func(micros int64) Budget { return Budget{CostMicros: micros, Currency: "USD"} }
	for name, c := range map[string]struct {
		budget Budget
		used   BudgetUse
		next   session.Request
		want   session.Code
	}{
		"unlimited":             {Budget{}, BudgetUse{math.MaxInt64, math.MaxInt64, math.MaxInt64, 9}, unpricedNext, session.CodeNone},
		"tokens just kept":      {Budget{Tokens: 5000}, BudgetUse{Tokens: 2800}, next, session.CodeNone},
		"tokens":                {Budget{Tokens: 5000}, BudgetUse{Tokens: 2801}, next, session.CodeBudget},
		"tokens beyond numbers": {Budget{Tokens: 5000}, BudgetUse{Tokens: 1}, endless, session.CodeBudget},
		"money just kept":       {usd(10000), BudgetUse{CostMicros: 1000}, next, session.CodeNone},
		"money":                 {usd(10000), BudgetUse{CostMicros: 1001}, next, session.CodeBudget},
		"money without a price": {usd(10000), BudgetUse{}, unpricedNext, session.CodeBudgetUnpriced},
		"other money":           {Budget{CostMicros: 10000, Currency: "EUR"}, BudgetUse{}, next, session.CodeBudgetUnpriced},
		"money, spent unseen":   {usd(math.MaxInt64), BudgetUse{Unpriced: 1}, next, session.CodeBudgetUnpriced},
		"time left":             {Budget{ActiveSeconds: 10}, BudgetUse{ActiveSeconds: 9}, unpricedNext, session.CodeNone},
		"time":                  {Budget{ActiveSeconds: 10}, BudgetUse{ActiveSeconds: 10}, next, session.CodeBudget},
		"each limit counts":     {Budget{CostMicros: 10000, Currency: "USD", Tokens: 5000, ActiveSeconds: 10}, BudgetUse{Tokens: 4000}, next, session.CodeBudget},
	} {
		got := session.CodeNone
		if why := c.budget.refuses(c.used, c.next); why != nil {
			got = why.code
		}
		if got != c.want {
			t.Errorf("%s: %q; want %q", name, got, c.want)
		}
	}
}

func TestBudget_AsAPersonWritesIt(t *testing.T) {
	for text, want := range map[string]Budget{
		"2.50 USD, 500000 tokens, 2h": {2_500_000, "USD", 500_000, 7200},
		" 90s ":                       {ActiveSeconds: 90},
		"1 token":                     {Tokens: 1},
		"0.000001 eur":                {CostMicros: 1, Currency: "EUR"},
		"none":                        {},
	} {
		if got, err := ParseBudget(text); got != want || err != nil {
			t.Errorf("%q: %+v, %v; want %+v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "5", "0 USD", "-1 tokens", "2 dollars", "1 USD, 2 EUR", "1 USD, 1 USD", "1h, 2h", "500ms", "the trip", "none, 1h", "1e6 tokens"} {
		if got, err := ParseBudget(text); err == nil {
			t.Errorf("%q is %+v", text, got)
		}
	}
}
