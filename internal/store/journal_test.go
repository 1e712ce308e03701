package store

import (
	"context"
	"fmt"
	"testing"
	"time"

	"holdfast/session"
)

// journal is a store with one session that has one run.
func journal(t testing.TB) (Store, session.Run) {
	t.Helper()
	db, err := Open(context.Background(), Options{Home: newHome(t), Now: time.Now, NewID: func() string { return "s" }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	s := Store{DB: db}
	r := session.Run{ID: "r", Session: "s", Kind: session.RunPrompt, Desired: session.DesiredRun, Phase: session.PhaseWorking, CreatedAt: time.Now()}
	commit(t, s, func(tx session.Tx) error {
		if err := tx.InsertSession(session.Session{ID: "s", Cwd: "/", Roots: []string{"/"}, Mode: session.ModeAsk, Generation: 1, CreatedAt: time.Now()}); err != nil {
			return err
		}
		return tx.InsertRun(r)
	})
	return s, r
}

func commit(t testing.TB, s Store, fn func(session.Tx) error) {
	t.Helper()
	if err := s.Commit(context.Background(), "effect.settled", fn); err != nil {
		t.Fatal(err)
	}
}

// plan journals a planned call.
func plan(tx session.Tx, id string) error {
	tc := &session.ToolCall{CallID: id, Name: "read", Effect: session.EffectID(id), Args: `{"path":"f"}`}
	it := session.Item{ID: session.ItemID(id), Session: "s", Run: "r", Kind: session.ItemTool, State: session.ItemOpen, Body: session.ItemBody{Tool: tc}}
	if err := tx.InsertItem(&it); err != nil {
		return err
	}
	return tx.InsertEffect(session.Effect{ID: tc.Effect, Session: "s", Run: "r", Item: it.ID, Tool: "read", Class: session.ReadOnly, State: session.EffectPlanned,
		PlannedAt: time.Now()})
}

var result = session.Finding{Fact: session.FactCompleted, By: session.SettledByResult, Output: &session.Output{Text: "one line\n", Digest: "sha256:1"}}

// A settlement is appended once, the same one again is not news, and none is changed or removed.
func TestSettlements_AppendedOnly(t *testing.T) {
	s, _ := journal(t)
	unknown := session.Finding{Fact: session.FactUnknown, Note: "nobody saw it", Lookup: session.LookupNothing}
	word := session.Finding{Fact: session.FactNotStarted, By: session.SettledByPerson, Note: "it did not"}
	commit(t, s, func(tx session.Tx) error {
		if err := plan(tx, "e"); err != nil {
			return err
		}
		for _, f := range []session.Finding{unknown, unknown, word, word, result, result, word} {
			if err := session.SettleFinding(tx, "e", f, time.Now()); err != nil {
				return err
			}
		}
		all, err := tx.Settlements("e")
		if got := fmt.Sprintf("%d %s %s %s", len(all), all[0].Fact, all[1].Fact, all[2].Fact); got != "3 unknown not_started completed" {
			t.Errorf("settled as %s: %+v", got, all)
		}
		e, err2 := tx.Effect("e")
		if e.Fact != session.FactCompleted || e.SettledBy != session.SettledByResult || e.Lookup != "" {
			t.Errorf("the call shows %+v", e)
		}
		for _, q := range []string{"UPDATE settlements SET note = 'x'", "DELETE FROM settlements"} {
			if _, err := tx.(*Tx).tx.Exec(q); err == nil {
				t.Errorf("%s went through", q)
			}
		}
		if err != nil {
			return err
		}
		return err2
	})
}

// What the journal costs for a call that only reads: it is planned with its answer and settled with others.
func BenchmarkJournal_ReadOnlyCall(b *testing.B) {
	const together = 32
	s, _ := journal(b)
	n := 0
	for b.Loop() {
		first := n
		commit(b, s, func(tx session.Tx) error {
			for range together {
				if err := plan(tx, fmt.Sprint(n)); err != nil {
					return err
				}
				n++
			}
			return nil
		})
		commit(b, s, func(tx session.Tx) error {
			for i := range together {
				if err := session.SettleFinding(tx, session.EffectID(fmt.Sprint(first+i)), result, time.Now()); err != nil {
					return err
				}
			}
			return nil
		})
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/1000/float64(n), "ms/call")
	b.ReportMetric(0, "ns/op")
}
