package store

import (
	"context"
	"testing"
	"time"

	"holdfast/session"
	"holdfast/usage"
)

// What a provider did not tell of a request's tokens stays unknown; a request is settled once.
func TestRequests_KeepWhatIsUnknown(t *testing.T) {
	d := open(t, Options{Home: newHome(t)})
	commit := func(fn func(session.Tx) error) {
		t.Helper()
		must(t, Store{DB: d}.Commit(context.Background(), "test", fn))
	}
	now := time.UnixMilli(1000)
	parts := usage.Parts{CacheRead: usage.Of(60), Reasoning: usage.Of(0)}
	req := session.Request{ID: "q", Session: "s", Run: "r", Attempt: "a", Goal: "g", Revision: 2, Model: "m", State: session.RequestStarted, StartedAt: now,
		Price: usage.Price{Currency: "USD", Input: usage.Of(3_000_000), Output: usage.Of(15_000_000), From: "config"}, ReservedInput: 120, ReservedOutput: 32_000}
	commit(func(tx session.Tx) error {
		must(t, tx.InsertSession(session.Session{ID: "s", Cwd: "/w", Roots: []string{"/w"}, Mode: session.ModeAsk, CreatedAt: now, UpdatedAt: now}))
		must(t, tx.InsertRun(session.Run{ID: "r", Session: "s", Kind: session.RunPrompt, Desired: session.DesiredRun, Phase: session.PhaseQueued, CreatedAt: now}))
		return tx.InsertRequest(req)
	})
	req.State, req.Input, req.Output, req.Parts, req.SettledAt = session.RequestSettled, 100, 20, parts, now
	commit(func(tx session.Tx) error { return tx.UpdateRequest(req) })
	again := req
	again.Input, again.Parts = 7, usage.Parts{}
	again.Price.Input, again.ReservedInput = usage.Of(1), 1 // both are from before it was sent
	commit(func(tx session.Tx) error { return tx.UpdateRequest(again) })
	must(t, Store{DB: d}.Read(context.Background(), func(tx session.Tx) error {
		all, err := tx.RequestsOfGoal("g")
		if err == nil && (len(all) != 1 || all[0].Usage() != usage.Report(100, 20, parts) || all[0].Price != req.Price || all[0].ReservedInput != 120 ||
			all[0].ReservedOutput != 32_000 || all[0].Cost().Micros != 600) {
			t.Errorf("stored: %+v", all)
		}
		return err
	}))
}
