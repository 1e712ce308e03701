package store

import (
	"errors"

	"database/sql"
	"time"

	"holdfast/session"
)

const insertEffect = `INSERT INTO effects (id, session, run, attempt, item, tool, version, class, args_digest, state, fact, plan, dir, planned_at)
	VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`

// InsertEffect journals a planned call.
func (t *Tx) InsertEffect(e session.Effect) error {
	plan, err := t.apart(e.Plan)
	if err != nil {
		return err
	}
	_, err = t.exec("insert effect", insertEffect, e.ID, e.Session, e.Run, e.Attempt, e.Item, e.Tool, e.Version, e.Class, e.ArgsDigest, e.State,
		e.Fact, enc(t, plan), e.Dir, ms(e.PlannedAt))
	return err
}

const updateEffect = `UPDATE effects SET attempt = ?1, version = ?2, class = ?3, state = ?4, fact = ?5, plan = CASE WHEN ?17 THEN plan ELSE ?6 END, dir = ?7, result_digest = ?8,
	exit_code = ?9, settled_by = ?10, note = ?11, dispatched_at = ?12, settled_at = ?13, settled_seq = ?14, lookup = ?15
	WHERE id = ?16 AND (state <> 'settled' OR settled_by = 'person' AND ?4 = 'settled' AND ?10 IN ('result', 'receipt', 'probe'))`

// UpdateEffect moves a call on. A settled one is never changed, except that what really came of it goes over a person's word.
func (t *Tx) UpdateEffect(e session.Effect) error {
	var code sql.NullInt64
	if e.ExitCode != nil {
		code = sql.NullInt64{Int64: int64(*e.ExitCode), Valid: true}
	}
	plan, err := t.apart(e.Plan)
	if err != nil {
		return err
	}
	return t.one("update effect", updateEffect, e.Attempt, e.Version, e.Class, e.State, e.Fact, enc(t, plan), e.Dir, e.ResultDigest, code,
		e.SettledBy, e.Note, ms(e.DispatchedAt), ms(e.SettledAt), e.SettledSeq, e.Lookup, e.ID, e.Broken != session.CodeNone)
}

const effectColumns = `SELECT id, session, run, attempt, item, tool, version, class, args_digest, state, fact, plan, dir, result_digest, exit_code,
	settled_by, note, planned_at, dispatched_at, settled_at, settled_seq, lookup FROM effects`

func scanEffect(r scanner) (e session.Effect, err error) {
	var plan string
	var code sql.NullInt64
	var planned, dispatched, settled int64
	if err = r.Scan(&e.ID, &e.Session, &e.Run, &e.Attempt, &e.Item, &e.Tool, &e.Version, &e.Class, &e.ArgsDigest, &e.State, &e.Fact, &plan, &e.Dir,
		&e.ResultDigest, &code, &e.SettledBy, &e.Note, &planned, &dispatched, &settled, &e.SettledSeq,
		&e.Lookup); err == nil {
		e.Broken = valid(dec(plan, &e.Plan), among(e.Class, session.ReadOnly, session.Idempotent, session.StateProbe, session.Unknown),
			among(e.State, session.EffectPlanned, session.EffectDispatched, session.EffectSettled),
			among(e.Fact, session.FactNone, session.FactNotStarted, session.FactUnknown, session.FactCompleted, session.FactRunning))
	}
	if code.Valid {
		n := int(code.Int64)
		e.ExitCode = &n
	}
	e.PlannedAt, e.DispatchedAt, e.SettledAt = at(planned), at(dispatched), at(settled)
	return e, err
}

// Effect returns one journal record.
func (t *Tx) Effect(id session.EffectID) (session.Effect, error) {
	return get(t, "load effect "+string(id), scanEffect, effectColumns+` WHERE id = ?`, id)
}

// EffectsOf lists the calls of a run in order.
func (t *Tx) EffectsOf(id session.RunID) ([]session.Effect, error) {
	return list(t, "list effects", scanEffect, effectColumns+` WHERE run = ? ORDER BY rowid`, id)
}

// OpenEffects lists the calls of a session that are not settled.
func (t *Tx) OpenEffects(id session.SessionID) ([]session.Effect, error) {
	return list(t, "list open effects", scanEffect, effectColumns+` WHERE session = ? AND state <> 'settled' ORDER BY rowid`, id)
}

const effectPage = ` WHERE (?1 = '' OR session = ?1) AND (?2 = '' OR fact = ?2) AND (?3 = 0 OR state <> 'settled')
	AND (?4 = 0 OR (planned_at, id) < (?4, ?5)) ORDER BY planned_at DESC, id DESC LIMIT ?6`

// Effects lists journal records over all sessions, newest first.
func (t *Tx) Effects(f session.EffectFilter, planned time.Time, id session.EffectID, limit int) ([]session.Effect, error) {
	return list(t, "list effects", scanEffect, effectColumns+effectPage, f.Session, f.Fact, f.Open, ms(planned), id, limit)
}

const insertApproval = `INSERT INTO approvals (id, session, run, effect, binding, unknown, always, state, asked_at, question, choices)
	VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`

// InsertApproval stores a question and announces it.
func (t *Tx) InsertApproval(a session.Approval) error {
	if _, err := t.exec("insert approval", insertApproval, a.ID, a.Session, a.Run, a.Effect, a.Binding, enc(t, append([]session.EffectID{}, a.Unknown...)),
		a.Always, a.State, ms(a.AskedAt), a.Question, enc(t, append([]string{}, a.Choices...))); err != nil {
		return err
	}
	_, err := t.Announce(a.Session, session.EventApproval, string(a.ID), a.AskedAt)
	return err
}

const updateApproval = `UPDATE approvals SET state = ?, option = ?, answer = ?, answered_by = ?, answered_at = ? WHERE id = ?`

// UpdateApproval moves a question on and announces it.
func (t *Tx) UpdateApproval(a session.Approval, now time.Time) error {
	if err := t.one("update approval", updateApproval, a.State, a.Option, a.Answer, a.AnsweredBy, ms(a.AnsweredAt), a.ID); err != nil {
		return err
	}
	_, err := t.Announce(a.Session, session.EventApproval, string(a.ID), now)
	return err
}

const approvalColumns = `SELECT id, session, run, effect, binding, unknown, always, state, option, answered_by, asked_at, answered_at, question, choices, answer FROM approvals`

func scanApproval(r scanner) (a session.Approval, err error) {
	var unknown, choices string
	var asked, answered int64
	if err = r.Scan(&a.ID, &a.Session, &a.Run, &a.Effect, &a.Binding, &unknown, &a.Always, &a.State, &a.Option, &a.AnsweredBy, &asked, &answered,
		&a.Question, &choices, &a.Answer); err == nil {
		a.Broken = valid(errors.Join(dec(unknown, &a.Unknown), dec(choices, &a.Choices)), among(a.State, session.ApprovalPending, session.ApprovalAnswered, session.ApprovalConsumed, session.ApprovalVoid))
	}
	a.AskedAt, a.AnsweredAt = at(asked), at(answered)
	return a, err
}

// Approval returns one question.
func (t *Tx) Approval(id session.ApprovalID) (session.Approval, error) {
	return get(t, "load approval "+string(id), scanApproval, approvalColumns+` WHERE id = ?`, id)
}

// OpenApprovals lists the questions of a session that are pending or answered and not yet acted on.
func (t *Tx) OpenApprovals(id session.SessionID) ([]session.Approval, error) {
	return list(t, "list open approvals", scanApproval, approvalColumns+` WHERE session = ? AND state IN ('pending', 'answered') ORDER BY asked_at, rowid`, id)
}

// PendingApprovals lists the questions of every session that wait for an answer.
func (t *Tx) PendingApprovals() ([]session.Approval, error) {
	return list(t, "list pending approvals", scanApproval, approvalColumns+` WHERE state = 'pending' ORDER BY asked_at, rowid`)
}
