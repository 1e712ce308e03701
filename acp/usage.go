package acp

import (
	"slices"
	"strings"

	v1 "holdfast/acp/v1"
	"holdfast/session"
	"holdfast/usage"
)

// meter is what the client was told of a session's usage.
type meter struct {
	row   int64       // requests up to here are settled and counted
	money usage.Money // of those
	used  int64       // tokens of the newest answer with all that it read; 0 while nothing is known
	model string      // that gave it
	told  string      // digest of what was told
}

// usage tells the client how full the context is, and what the session has cost, when either has changed. The protocol wants the size of the
// context with it: of a model of which nobody knows that, nothing is told.
func (f *follower) usage() {
	var later []session.Request
	err := f.b.Engine.Store.Read(f.ctx, func(tx session.Tx) (err error) {
		if later, err = tx.RequestsAfter(f.id, f.meter.row); err != nil {
			return err
		}
		return f.meter.fill(tx, later)
	})
	if err != nil {
		f.fail(err, "reading the usage failed")
		return
	}
	size, ok := f.window(f.meter.model)
	money := f.meter.count(later)
	if !ok || f.meter.used == 0 {
		return
	}
	u := usageUpdate(f.meter.used, size, money)
	if key := session.Digest(string(raw(u))); key != f.meter.told {
		f.meter.told = key
		f.send(u)
	}
}

// fill looks for the newest answer of the conversation: it says how full the context is. Reviews and summaries have one of their own.
func (m *meter) fill(tx session.Tx, later []session.Request) error {
	for _, r := range slices.Backward(later) {
		t := r.Usage()
		if !t.Known || t.Input == 0 || r.Purpose != session.PurposeAnswer {
			continue
		}
		run, err := tx.Run(r.Run)
		if err != nil {
			return err
		}
		if run.Kind != session.RunVerification {
			m.used, m.model = usage.Plus(t.Input, t.Output), r.Model
			return nil
		}
	}
	return nil
}

// count adds what the later requests cost; what is on its way is not counted yet. Those that are settled need not be looked at again.
func (m *meter) count(later []session.Request) usage.Money {
	all, settled := m.money.Clone(), true
	for i, r := range later {
		if r.State == session.RequestStarted && i == len(later)-1 {
			break
		}
		all.Add(r.Cost())
		if settled = settled && r.State != session.RequestStarted; settled {
			m.row = r.Row
			m.money.Add(r.Cost())
		}
	}
	return all
}

// window is how many tokens a model reads, if that is known.
func (f *follower) window(model string) (int64, bool) {
	if f.b.Engine.Limits == nil {
		return 0, false
	}
	provider, name, _ := strings.Cut(model, "/")
	size, _, known := f.b.Engine.Limits(session.ModelIdentity{Provider: provider, Name: name})
	return size, known && size > 0
}

// usageUpdate has the amount that is known, when there is one currency. What is estimated or unknown besides is beside it, not in it.
func usageUpdate(used, size int64, m usage.Money) update {
	u := v1.UsageUpdate{Used: uint64(used), Size: uint64(size)}
	if len(m.Sums) == 1 && m.Sums[0].KnownRequests > 0 {
		s := m.Sums[0]
		u.Cost = &v1.Cost{Amount: float64(s.KnownMicros) / 1e6, Currency: s.Currency, Meta: v1.Meta{"holdfast": map[string]any{
			"estimatedMicros": s.EstimatedMicros, "unknownCostRequests": m.UnknownRequests}}}
	}
	return update{UsageUpdate: &u}
}
