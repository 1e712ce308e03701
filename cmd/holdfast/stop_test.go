package main

import (
	"context"
	"testing"

	"github.com/rs/zerolog"

	"holdfast/conformance/harness"
	"holdfast/session"
)

// late is a store in which something happens right before the commits of one name.
type late struct {
	session.Store
	point  string
	before func()
}

func (s late) Commit(ctx context.Context, point string, fn func(session.Tx) error) error {
	if point == s.point {
		s.before()
	}
	return s.Store.Commit(ctx, point, fn)
}

// counted is a model that says one word.
type counted struct{ asked int }

func (*counted) Identity() session.ModelIdentity {
	return session.ModelIdentity{Provider: "test", Name: "counted"}
}

func (m *counted) Stream(context.Context, session.ModelRequest, func(session.Delta) error) (session.ModelResponse, error) {
	m.asked++
	return session.ModelResponse{Text: "word", Finish: session.FinishStop}, nil
}

// A stop that is stored before a request is on record comes first, also when the process has not noticed it: it may have slept meanwhile.
func TestStop_BeforeARequestIsOnRecord(t *testing.T) {
	ctx := context.Background()
	n, err := openNode(ctx, t.TempDir(), kindACP, "", zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = n.close() }()
	model := &counted{}
	var id session.SessionID
	st := n.engine.Store
	n.engine.Model = func() (session.Model, error) { return model, nil }
	n.engine.Store = late{st, "request.started", func() {
		if _, err := n.engine.Stop(ctx, id); err != nil {
			t.Error(err)
		}
	}}
	dir := t.TempDir()
	s, err := n.engine.NewSession(ctx, session.Session{Cwd: dir, Roots: []string{dir}})
	if err != nil {
		t.Fatal(err)
	}
	id = s.ID
	n.engine.Admit()
	run, err := n.engine.Prompt(ctx, id, session.PromptInput{Text: "say something"})
	if err != nil {
		t.Fatal(err)
	}
	var r session.Run
	var requests []session.Request
	harness.Eventually(t, "the run ends", func() bool {
		err := st.Read(ctx, func(tx session.Tx) (err error) {
			if r, err = tx.Run(run); err == nil {
				requests, err = tx.RequestsOf(run)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return r.Phase == session.PhaseEnded
	})
	if r.Desired != session.DesiredCancelled || len(requests) != 0 || model.asked != 0 {
		t.Errorf("the stopped run is %s, with %d requests on record, and the model was asked %d times", r.Desired, len(requests), model.asked)
	}
}
