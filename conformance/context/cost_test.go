package context_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"holdfast/conformance/fakemodel"
)

// exported is what a session's export says of usage.
type exported struct {
	Requests, UnknownRequests, InputTokens, OutputTokens int64
	CostUsd                                              *float64
	Costs                                                []struct {
		Currency                                                       string
		KnownMicros, KnownRequests, EstimatedMicros, EstimatedRequests int64
	}
	UnknownCostRequests int64
}

func (w *world) usage(session string) exported {
	w.t.Helper()
	var x struct{ Usage exported }
	if err := json.Unmarshal([]byte(w.command(0, "sessions", "export", "--format", "json", session)), &x); err != nil {
		w.t.Fatal(err)
	}
	return x.Usage
}

// priced is a configuration with prices for the played model.
func (w *world) priced(more string) {
	w.configure(fmt.Sprintf("[[models]]\nname = %q\n%s\n", w.named(), more))
}

// What a request cost follows from the tokens that were reported and the prices that counted when it was sent: a new table of prices changes
// nothing of it, also over restarts. Known, estimated and unknown are told apart.
func TestCostKeepsItsPrices(t *testing.T) {
	w := newWorld(t)
	w.answer = func(r fakemodel.Request) fakemodel.Reply {
		reply := fakemodel.Text("yes")
		switch {
		case strings.HasPrefix(r.LastUser(), "long"):
			reply.Usage = &fakemodel.Usage{Prompt: 1000, CacheRead: 9000, Completion: 100}
		case strings.HasPrefix(r.LastUser(), "bare"):
			reply.Usage = &fakemodel.Usage{Prompt: 10000, Completion: 100, Bare: true}
		case strings.HasPrefix(r.LastUser(), "uncounted"):
			reply.Usage = nil
		case strings.HasPrefix(r.LastUser(), "refused"):
			return fakemodel.Error(400, "no", "")
		}
		return reply
	}
	say := func(session string, texts ...string) string {
		t.Helper()
		a := w.launch("", nil)
		if session == "" {
			session = a.NewSession(w.work)
		} else {
			w.load(a, session)
		}
		for _, text := range texts {
			a.Await(a.Prompt(session, text))
		}
		if err := a.CloseInput(); err != nil {
			t.Fatal(err)
		}
		return session
	}
	s := say("", "long without a price")
	w.priced("price_input = 3\nprice_cached = 0.3\nprice_output = 15")
	say(s, "long", "bare", "uncounted", "refused")
	// 1000 at 3, 9000 at 0.30 and 100 at 15; 10000 at 3 and 100 at 15 at most
	const known, estimated = 3000 + 2700 + 1500, 30000 + 1500
	check := func(what string, k, kn, e, unknown int64) {
		t.Helper()
		u := w.usage(s)
		if len(u.Costs) != 1 || u.Costs[0].Currency != "USD" || u.Costs[0].KnownMicros != k || u.Costs[0].KnownRequests != kn || u.Costs[0].EstimatedMicros != e ||
			u.Costs[0].EstimatedRequests != 1 || u.UnknownCostRequests != unknown || u.CostUsd == nil || int64(*u.CostUsd*1e6+0.5) != k {
			t.Errorf("%s: %+v", what, u)
		}
	}
	check("one of each", known, 2, estimated, 2)
	w.priced("price_input = 300\nprice_cached = 30\nprice_output = 1500")
	check("another table of prices", known, 2, estimated, 2)
	say(s, "long")
	check("a request at the new prices", known+100*known, 3, estimated, 2)
	w.priced("price_input = 1\nprice_output = 1\ncurrency = \"EUR\"")
	say(s, "bare")
	u := w.usage(s)
	if len(u.Costs) != 2 || u.Costs[1].Currency != "EUR" || u.Costs[1].KnownMicros != 10100 || *u.CostUsd != float64(101*known)/1e6 {
		t.Errorf("another currency: %+v", u)
	}
	md := w.command(0, "sessions", "export", s)
	w.holds("the export", md, "- Cost: 0.7272 USD known, 0.0315 USD estimated, 0.0101 EUR known, unknown for 2 more requests")
}
