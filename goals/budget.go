package goals

import (
	"cmp"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"holdfast/session"
	"holdfast/usage"
)

// Budget is what a Goal may use: its turns, reviews and summaries together, over all revisions. A member that is 0 is unlimited.
type Budget struct {
	CostMicros    int64  `json:"costMicros,omitempty"` // millionths of the currency unit
	Currency      string `json:"currency,omitempty"`   // of the cost; USD when missing
	Tokens        int64  `json:"tokens,omitempty"`     // input and output
	ActiveSeconds int64  `json:"activeSeconds,omitempty"`
}

// BudgetParams is a budget as a program gives it: what is missing is unlimited, and a limit of 0 is a mistake.
type BudgetParams struct {
	CostMicros    *int64 `json:"costMicros"`
	Currency      string `json:"currency"`
	Tokens        *int64 `json:"tokens"`
	ActiveSeconds *int64 `json:"activeSeconds"`
}

// Budget is what was given; one that cannot be kept is refused when it is stored.
func (p *BudgetParams) Budget() *Budget {
	if p == nil {
		return nil
	}
	limit := func(n *int64) int64 {
		switch {
		case n == nil:
			return 0
		case *n == 0:
			return -1
		}
		return *n
	}
	return &Budget{CostMicros: limit(p.CostMicros), Currency: p.Currency, Tokens: limit(p.Tokens), ActiveSeconds: limit(p.ActiveSeconds)}
}

// BudgetView is a budget with what was used of it. What is not known of a request is counted with the most that it was expected to take.
type BudgetView struct {
	Budget
	Used BudgetUse `json:"used"`
}

// BudgetUse is what was used, as it counts against a budget.
type BudgetUse struct {
	CostMicros    int64 `json:"costMicros"`
	Tokens        int64 `json:"tokens"`
	ActiveSeconds int64 `json:"activeSeconds"`
	// Unpriced is how many requests have no known price in the budget's currency, so that a budget of money cannot be kept with them.
	Unpriced int `json:"unpricedRequests"`
}

// assumedRequest stands in for a request of an earlier version, which did not store what it took at most.
const assumedRequest = 64_000

var threeLetters = regexp.MustCompile(`^[A-Z]{3}$`)

// checked is a budget as it can be kept.
func (b Budget) checked() (Budget, error) {
	b.Currency = strings.ToUpper(b.Currency)
	switch {
	case b.CostMicros < 0:
		return b, &ParamError{"budget.costMicros", "want a number above 0; leave it out for no limit"}
	case b.Tokens < 0:
		return b, &ParamError{"budget.tokens", "want a number above 0; leave it out for no limit"}
	case b.ActiveSeconds < 0:
		return b, &ParamError{"budget.activeSeconds", "want a number above 0; leave it out for no limit"}
	case b.CostMicros == 0 && b.Currency != "":
		return b, &ParamError{"budget.currency", "it belongs to costMicros"}
	case b.CostMicros > 0:
		b.Currency = cmp.Or(b.Currency, "USD")
		if !threeLetters.MatchString(b.Currency) {
			return b, &ParamError{"budget.currency", "want three letters, such as USD"}
		}
	}
	return b, nil
}

// String says it in words: "2.50 USD, 500000 tokens, 2h0m0s"; "unlimited" without one.
func (b Budget) String() string {
	var parts []string
	if b.CostMicros > 0 {
		parts = append(parts, usage.Amount(b.CostMicros)+" "+b.Currency)
	}
	if b.Tokens > 0 {
		parts = append(parts, fmt.Sprintf("%d tokens", b.Tokens))
	}
	if b.ActiveSeconds > 0 {
		parts = append(parts, (time.Duration(b.ActiveSeconds) * time.Second).String())
	}
	return cmp.Or(strings.Join(parts, ", "), "unlimited")
}

// used adds up what counts against a budget.
func (b Budget) used(reqs []session.Request, active time.Duration) BudgetUse {
	u := BudgetUse{ActiveSeconds: int64(active.Seconds())}
	for _, r := range reqs {
		input, output := r.Input, r.Output
		cost := r.Cost()
		if !r.Usage().Known { // not free: it counts with the most that it was expected to take
			if input, output = r.ReservedInput, r.ReservedOutput; input == 0 && output == 0 {
				output = assumedRequest
			}
			cost = r.Price.Most(input, output)
		}
		u.Tokens = usage.Plus(u.Tokens, usage.Plus(input, output))
		switch {
		case cost.Trust != usage.Unknown && (cost.Micros == 0 || cost.Currency == b.Currency):
			u.CostMicros = usage.Plus(u.CostMicros, cost.Micros)
		default:
			u.Unpriced++
		}
	}
	return u
}

// refusal is why a request may not be made.
type refusal struct {
	code   session.Code
	reason string
}

// refuses decides about the next request, of which the most that it can take is counted. nil lets it be made.
func (b Budget) refuses(u BudgetUse, next session.Request) *refusal {
	most := usage.Plus(next.ReservedInput, next.ReservedOutput)
	if b.ActiveSeconds > 0 && u.ActiveSeconds >= b.ActiveSeconds {
		return spent("It was active for %v of %v.", seconds(u.ActiveSeconds), seconds(b.ActiveSeconds))
	}
	if b.Tokens > 0 && usage.Plus(u.Tokens, most) > b.Tokens {
		return spent("Of %d tokens, %d are used, and the next request may take %d.", b.Tokens, u.Tokens, most)
	}
	if b.CostMicros == 0 {
		return nil
	}
	cost := next.Price.Most(next.ReservedInput, next.ReservedOutput)
	switch {
	case cost.Trust == usage.Unknown || cost.Currency != b.Currency:
		return &refusal{session.CodeBudgetUnpriced, fmt.Sprintf("It has a budget of money, and what the model %s costs in %s is not known here. "+
			"Give its prices in [[models]], or take the limit away.", next.Model, b.Currency)}
	case u.Unpriced > 0:
		return &refusal{session.CodeBudgetUnpriced, unpriced(u.Unpriced, b.Currency)}
	case usage.Plus(u.CostMicros, cost.Micros) > b.CostMicros:
		return spent("Of %s %s, %s are used, and the next request may cost %s.", usage.Amount(b.CostMicros), b.Currency, usage.Amount(u.CostMicros),
			usage.Amount(cost.Micros))
	}
	return nil
}

func spent(format string, args ...any) *refusal {
	return &refusal{session.CodeBudget, "Its budget is used up. " + fmt.Sprintf(format, args...)}
}

func seconds(n int64) time.Duration { return time.Duration(n) * time.Second }

func unpriced(n int, currency string) string {
	return fmt.Sprintf("A budget of money cannot be kept: what requests of this goal cost in %s is not known (%d of them).", currency, n)
}

// ParseBudget reads a budget as a person types it: "2.50 USD, 500000 tokens, 2h", in any order; "none" is unlimited.
func ParseBudget(text string) (b Budget, err error) {
	if strings.TrimSpace(text) == "none" {
		return b, nil
	}
	for part := range strings.SplitSeq(text, ",") {
		n, unit, _ := strings.Cut(strings.TrimSpace(part), " ")
		unit = strings.TrimSpace(unit)
		set := &b.CostMicros
		var v int64
		switch {
		case unit == "tokens" || unit == "token":
			set = &b.Tokens
			v, err = strconv.ParseInt(n, 10, 64)
		case unit == "":
			var d time.Duration
			set = &b.ActiveSeconds
			d, err = time.ParseDuration(n)
			v = int64(d / time.Second)
		default:
			b.Currency = unit
			v, err = usage.Micros(n)
		}
		if err != nil || v <= 0 || *set != 0 {
			return Budget{}, &ParamError{"budget", fmt.Sprintf("%q is no limit; say for example 2.50 USD, 500000 tokens, 2h", strings.TrimSpace(part))}
		}
		*set = v
	}
	return b.checked()
}

// Counted says in words what was used of the limits that there are.
func (v BudgetView) Counted() string {
	var parts []string
	if v.CostMicros > 0 {
		parts = append(parts, usage.Amount(v.Used.CostMicros)+" "+v.Currency)
	}
	if v.Tokens > 0 {
		parts = append(parts, fmt.Sprintf("%d tokens", v.Used.Tokens))
	}
	if v.ActiveSeconds > 0 {
		parts = append(parts, seconds(v.Used.ActiveSeconds).String())
	}
	return strings.Join(parts, ", ")
}
