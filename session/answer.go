package session

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

// VoidApprovals voids every question of a session that was not acted on: a stop takes back what was allowed.
func VoidApprovals(tx Tx, id SessionID, now time.Time) error {
	open, err := tx.OpenApprovals(id)
	if err != nil {
		return err
	}
	for _, p := range open {
		p.State = ApprovalVoid
		if err := tx.UpdateApproval(p, now); err != nil {
			return err
		}
	}
	return nil
}

// Answer stores a person's answer to a question. The same answer once more changes nothing; another one is an *AnsweredError, and a
// question that was taken back ErrAnswered.
func (e *Engine) Answer(ctx context.Context, id ApprovalID, option string) error {
	return e.AnswerIn(ctx, id, option, "")
}

// AnswerIn is Answer with the words of an answer to a question of the model.
func (e *Engine) AnswerIn(ctx context.Context, id ApprovalID, option, text string) error {
	var session SessionID
	err := e.Store.Commit(ctx, "approval.answered", func(tx Tx) error {
		p, err := tx.Approval(id)
		if err != nil {
			return err
		}
		session = p.Session
		switch {
		case p.State == ApprovalPending:
		case p.State == ApprovalVoid:
			return ErrAnswered
		case p.Option == option && p.Answer == text:
			return nil
		default:
			return &AnsweredError{p.Option}
		}
		if err := checkAnswer(p, option, text); err != nil {
			return err
		}
		now := e.Now()
		if err := e.stand(tx, p, option, now); err != nil {
			return err
		}
		p.State, p.Option, p.Answer, p.AnsweredBy, p.AnsweredAt = ApprovalAnswered, option, text, e.Self.ID, now
		if err := tx.UpdateApproval(p, now); err != nil {
			return err
		}
		if r, err := tx.Run(p.Run); err != nil {
			return err
		} else if r.Left { // the answer is a person's word on it
			if r.Left = false; heldBack(r.ReasonCode) {
				r.Phase, r.ReasonCode, r.Reason = PhaseQueued, CodeNone, ""
			}
			if err := tx.UpdateRun(r, now); err != nil {
				return err
			}
		}
		return tx.InsertCommand(Command{ID: e.NewID(), Session: p.Session, Kind: CommandAnswer, Ref: string(id), Instance: e.Self.ID, At: now})
	})
	if err != nil {
		return fmt.Errorf("store the answer: %w", err)
	}
	e.changed(session)
	return nil
}

// Options are the answers that a question takes.
func Options(p Approval) []string {
	if p.Question != "" {
		return askOptions(p)
	}
	out := []string{OptionAllow}
	if p.Always != "" && len(p.Unknown) == 0 { // nothing allows beforehand what an unknown outcome asks about
		out = append(out, OptionAllowAlways)
	}
	out = append(out, OptionReject)
	if p.Always != "" {
		out = append(out, OptionNever)
	}
	if len(p.Unknown) > 0 {
		out = append(out, OptionHappened, OptionNotHappened)
	}
	return out
}

// OptionError: the answer was not offered.
type OptionError struct {
	Option  string
	Offered []string
}

func (e *OptionError) Error() string {
	return fmt.Sprintf("%q was not offered; the question takes %s", e.Option, strings.Join(e.Offered, ", "))
}

// NotUnknownError: there is nothing to settle, the outcome of the call is known or still in the hands of a live owner.
type NotUnknownError struct {
	Effect EffectID
	State  EffectState
	Fact   Fact
}

func (e *NotUnknownError) Error() string {
	return fmt.Sprintf("call %s is %s %s: only an unknown outcome can be settled", e.Effect, e.State, e.Fact)
}

// Settle stores a person's word on a call whose outcome is unknown. Nothing runs because of it. Questions that named the call are taken
// back, because what they asked has changed.
func (e *Engine) Settle(ctx context.Context, id EffectID, happened bool, note string) error {
	var session SessionID
	err := e.Store.Commit(ctx, "effect.settled_by_person", func(tx Tx) error {
		ef, err := tx.Effect(id)
		if err != nil {
			return err
		}
		session = ef.Session
		if ef.State == EffectSettled || ef.Fact != FactUnknown {
			return &NotUnknownError{id, ef.State, ef.Fact}
		}
		now := e.Now()
		if err := SettleByPerson(tx, id, happened, note, e.Self.ID, now); err != nil {
			return err
		}
		if err := voidNaming(tx, session, id, now); err != nil {
			return err
		}
		return tx.InsertCommand(Command{ID: e.NewID(), Session: session, Kind: CommandSettle, Ref: string(id), Instance: e.Self.ID, At: now})
	})
	if err != nil {
		return fmt.Errorf("settle call %s: %w", id, err)
	}
	e.changed(session)
	return nil
}

// voidNaming takes back the questions that name an unknown effect which is no longer one.
func voidNaming(tx Tx, id SessionID, effect EffectID, now time.Time) error {
	open, err := tx.OpenApprovals(id)
	if err != nil {
		return err
	}
	for _, p := range open {
		if !slices.Contains(p.Unknown, effect) {
			continue
		}
		p.State = ApprovalVoid
		if err := tx.UpdateApproval(p, now); err != nil {
			return err
		}
	}
	return nil
}
