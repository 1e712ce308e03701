package soak_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
)

// owned is the ownership of one session: what must be true of it between any two transactions.
type owned struct {
	exists     bool
	owner      string
	generation int64
}

// take is the rule of one step. ok is false when it must not happen, or not with that outcome. held tells that the transaction has shown
// before to be that of the owner, who alone may hand over.
func (o owned) take(s step, held bool) (next owned, ok bool) {
	switch s.Op {
	case "create":
		return owned{true, s.Instance, s.Generation}, !o.exists
	case "leave": // of an instance: what it owned has no owner
		if o.owner == s.Instance {
			o.owner = ""
		}
		return o, true
	case "own":
		if s.Instance == "" { // let go of
			o.owner = ""
			return o, s.Generation == o.generation
		}
		free := o.exists && (o.owner == "" || held) && s.Generation == o.generation+1
		return owned{true, s.Instance, s.Generation}, free
	case "fence": // a write of an executor happens if and only if it owns the session under its generation
		holds := o.exists && o.owner == s.Instance && o.generation == s.Generation
		return o, holds != s.Fenced
	}
	return o, true
}

// ownership is the sequential model of one session. A transaction is a list of steps, which happen together or, when it was refused, only
// looked. One whose process died may have happened or not.
var ownership = porcupine.NondeterministicModel{
	Init: func() []any { return []any{owned{}} },
	Step: func(state, input, output any) []any {
		before := state.(owned)
		after, held := before, false
		for _, s := range input.([]step) {
			var ok bool
			after, ok = after.take(s, held)
			if held = held || s.Op == "fence" && !s.Fenced; !ok {
				if output.(string) == "unknown" {
					return []any{before}
				}
				return nil
			}
		}
		switch output.(string) {
		case "ok":
			return []any{after}
		case "refused":
			return []any{before}
		}
		return []any{before, after}
	},
	DescribeOperation: func(input, output any) string { return fmt.Sprintf("%+v -> %v", input, output) },
	DescribeState:     func(state any) string { return fmt.Sprintf("%+v", state) },
}

// histories sorts transactions by the session they concern. The end of an instance concerns every session that it ever owned.
func histories(all []*transaction) map[string][]porcupine.Operation {
	owners := map[string]map[string]bool{} // by instance: sessions
	for _, x := range all {
		for _, s := range x.steps {
			if (s.Op == "own" || s.Op == "create") && s.Instance != "" {
				if owners[s.Instance] == nil {
					owners[s.Instance] = map[string]bool{}
				}
				owners[s.Instance][s.Session] = true
			}
		}
	}
	out := map[string][]porcupine.Operation{}
	for client, x := range all {
		per := map[string][]step{}
		for _, s := range x.steps {
			switch s.Op {
			case "leave":
				for id := range owners[s.Instance] {
					per[id] = append(per[id], s)
				}
			case "create", "own", "fence":
				per[s.Session] = append(per[s.Session], s)
			}
		}
		for id, steps := range per {
			out[id] = append(out[id], porcupine.Operation{ClientId: client, Input: steps, Output: x.result, Call: x.start, Return: x.end})
		}
	}
	return out
}

// linearizable tells of each session whether its history is one of a session with one owner at a time. It returns those where it is not.
func linearizable(all []*transaction) (sessions int, bad []string) {
	model := ownership.ToModel()
	for id, ops := range histories(all) {
		sessions++
		if r := porcupine.CheckOperationsTimeout(model, ops, time.Minute); r != porcupine.Ok {
			bad = append(bad, fmt.Sprintf("session %s: %d transactions: %s", id, len(ops), r))
		}
	}
	return sessions, bad
}

// A checker that accepts anything would accept the real history as well.
func TestOwnership_PlantedFaultsAreSeen(t *testing.T) {
	write := func(i string, gen int64, fenced bool) []step {
		return []step{{Op: "fence", Session: "s", Instance: i, Generation: gen, Fenced: fenced}}
	}
	own := func(i string, gen int64) step { return step{Op: "own", Session: "s", Instance: i, Generation: gen} }
	leave := func(i string) step { return step{Op: "leave", Instance: i} }
	create := []step{{Op: "create", Session: "s", Instance: "a", Generation: 1}}
	takeover := []step{leave("a"), own("b", 2)}
	x := func(start, end int64, result string, steps []step) *transaction {
		return &transaction{start: start, end: end, result: result, steps: steps}
	}
	never := int64(1 << 62)
	cases := []struct {
		name string
		ok   bool
		all  []*transaction
	}{
		{"one owner after the other", true, []*transaction{x(1, 2, "ok", create), x(3, 4, "ok", write("a", 1, false)), x(5, 6, "ok", takeover),
			x(7, 8, "ok", write("b", 2, false)), x(9, 10, "refused", write("a", 1, true))}},
		{"a write of the old owner beside the takeover", true, []*transaction{x(1, 2, "ok", create), x(3, 6, "ok", takeover),
			x(4, 5, "ok", write("a", 1, false))}},
		{"a killed takeover that was stored", true, []*transaction{x(1, 2, "ok", create), x(3, never, "unknown", takeover),
			x(5, 6, "ok", []step{leave("b"), own("c", 3)})}},
		{"a killed takeover that was not stored", true, []*transaction{x(1, 2, "ok", create), x(3, never, "unknown", takeover),
			x(5, 6, "ok", []step{leave("a"), own("c", 2)})}},
		{"handed over by its owner", true, []*transaction{x(1, 2, "ok", create), x(3, 4, "ok", append(write("a", 1, false), own("b", 2))),
			x(5, 6, "ok", write("b", 2, false)), x(7, 8, "refused", write("a", 1, true))}},
		{"handed over by one that had lost it", false, []*transaction{x(1, 2, "ok", create), x(3, 4, "ok", takeover),
			x(5, 6, "ok", append(write("a", 1, false), own("c", 3)))}},
		{"a stale write", false, []*transaction{x(1, 2, "ok", create), x(5, 6, "ok", takeover), x(9, 10, "ok", write("a", 1, false))}},
		{"a write under an old generation of the same owner", false, []*transaction{x(1, 2, "ok", create), x(3, 4, "ok", []step{own("", 1)}),
			x(5, 6, "ok", []step{own("a", 2)}), x(7, 8, "ok", write("a", 1, false))}},
		{"the owner is turned away", false, []*transaction{x(1, 2, "ok", create), x(3, 4, "refused", write("a", 1, true))}},
		{"two processes take the same session", false, []*transaction{x(1, 2, "ok", create), x(3, 4, "ok", takeover),
			x(3, 4, "ok", []step{leave("a"), own("c", 2)})}},
		{"a session is taken from its owner", false, []*transaction{x(1, 2, "ok", create), x(3, 4, "ok", []step{own("b", 2)})}},
		{"a generation is skipped", false, []*transaction{x(1, 2, "ok", create), x(3, 4, "ok", []step{leave("a"), own("b", 3)})}},
		{"what was stored is lost", false, []*transaction{x(1, 2, "ok", create), x(3, 4, "ok", takeover), x(5, 6, "ok", write("a", 1, false))}},
	}
	for _, c := range cases {
		sessions, bad := linearizable(c.all)
		if sessions != 1 || (len(bad) == 0) != c.ok {
			t.Errorf("%s: %d sessions, %v", c.name, sessions, bad)
		}
	}
}
