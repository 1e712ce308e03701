package server

import (
	"context"
	"errors"

	"holdfast/session"
)

type listEffects struct {
	SessionID session.SessionID `json:"sessionId,omitempty" jsonschema:"only calls of this session"`
	Fact      fact              `json:"fact,omitempty" jsonschema:"only calls of which this is certain, for example unknown"`
	Open      bool              `json:"open,omitempty" jsonschema:"only calls that are not settled"`
	page
}

type effectPage struct {
	Effects    []session.EffectView `json:"effects"`
	NextCursor string               `json:"nextCursor,omitempty" jsonschema:"missing on the last page"`
}

type settleEffect struct {
	EffectID session.EffectID `json:"effectId" jsonschema:"a call whose outcome is unknown"`
	Happened bool             `json:"happened" jsonschema:"whether it took effect"`
	Note     string           `json:"note,omitempty" jsonschema:"how that is known"`
}

type effectResult struct {
	Effect   session.EffectView `json:"effect"`
	Executor Executor           `json:"executor"`
}

type listApprovals struct {
	SessionID session.SessionID `json:"sessionId,omitempty" jsonschema:"only questions of this session"`
}

type approvalList struct {
	Approvals []session.ApprovalView `json:"approvals"`
}

type answerApproval struct {
	ApprovalID session.ApprovalID `json:"approvalId" jsonschema:"the question"`
	Option     string             `json:"option" jsonschema:"one of the question's options"`
	Text       string             `json:"text,omitempty" jsonschema:"the words of the answer, with the option answer"`
}

type approvalResult struct {
	Approval session.ApprovalView `json:"approval"`
	Executor Executor             `json:"executor"`
}

func journalTools() []tool {
	return []tool{
		define(tool{name: "list_effects", title: "List tool calls", hints: looks, needs: AuthorityRead,
			about: "The journal of the agent's tool calls, newest first, in pages: what was done, and how certain that is."}, runListEffects),
		define(tool{name: "settle_effect", title: "Settle an unknown outcome", hints: decides, needs: AuthorityFull,
			about: "Say what became of a call whose outcome nobody knows. Nothing runs because of it. It is a person's word and needs authority full."},
			runSettleEffect),
		define(tool{name: "list_approvals", title: "List open questions", hints: looks, needs: AuthorityRead,
			about: "The agent's permission questions that wait for an answer, oldest first, with what each is about."}, runListApprovals),
		define(tool{name: "answer_approval", title: "Answer a question", hints: decides, needs: AuthorityFull,
			about: "Answer a permission question. It is a person's word and needs authority full."}, runAnswerApproval),
	}
}

func runListEffects(ctx context.Context, c call, a listEffects) (out effectPage, err error) {
	limit, err := a.limit()
	if err != nil {
		return out, err
	}
	err = c.read(ctx, func(tx session.Tx) error {
		f := session.EffectFilter{Session: a.SessionID, Fact: session.Fact(a.Fact), Open: a.Open}
		out.Effects, out.NextCursor, err = session.ListEffects(tx, f, a.Cursor, limit)
		return err
	})
	return out, err
}

func runSettleEffect(ctx context.Context, c call, a settleEffect) (out effectResult, err error) {
	if err := c.Engine.Settle(ctx, a.EffectID, a.Happened, a.Note); err != nil {
		if errors.Is(err, session.ErrNotFound) {
			err = &missingError{"effectId", "call", string(a.EffectID)}
		}
		return out, err
	}
	if err := c.read(ctx, func(tx session.Tx) error {
		e, err := tx.Effect(a.EffectID)
		if err == nil {
			out.Effect, err = session.ViewEffect(tx, e)
		}
		return err
	}); err != nil {
		return out, err
	}
	out.Executor = c.Executor(ctx)
	return out, nil
}

func runListApprovals(ctx context.Context, c call, a listApprovals) (out approvalList, err error) {
	err = c.read(ctx, func(tx session.Tx) error { out.Approvals, err = session.ListApprovals(tx, a.SessionID); return err })
	return out, err
}

func runAnswerApproval(ctx context.Context, c call, a answerApproval) (out approvalResult, err error) {
	if err := c.Engine.AnswerIn(ctx, a.ApprovalID, a.Option, a.Text); err != nil {
		if errors.Is(err, session.ErrNotFound) {
			err = &missingError{"approvalId", "question", string(a.ApprovalID)}
		}
		return out, err
	}
	if err := c.read(ctx, func(tx session.Tx) error {
		p, err := tx.Approval(a.ApprovalID)
		if err == nil {
			out.Approval, err = session.ViewApproval(tx, p)
		}
		return err
	}); err != nil {
		return out, err
	}
	out.Executor = c.Executor(ctx)
	return out, nil
}
