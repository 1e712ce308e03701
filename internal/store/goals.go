package store

import (
	"errors"
	"time"

	"holdfast/goals"
	"holdfast/session"
)

var _ goals.Tx = (*Tx)(nil)

const insertGoal = `INSERT INTO goals (id, session, run, revision, control_version, objective, status, grants, budget, asked_budget, idempotency_key, program, extraction, created_at,
	updated_at)
	VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`

// InsertGoal stores a new Goal and announces it.
func (t *Tx) InsertGoal(g goals.Goal) error {
	if _, err := t.exec("insert goal", insertGoal, g.ID, g.Session, g.Run, g.Revision, g.ControlVersion, g.Objective, g.Status, enc(t, append([]goals.Grant{}, g.Grants...)), enc(t, g.Budget),
		enc(t, g.Asked), g.IdempotencyKey, g.Program, g.Extraction, ms(g.CreatedAt), ms(g.UpdatedAt)); err != nil {
		return err
	}
	_, err := t.Announce(g.Session, session.EventGoal, g.ID, g.CreatedAt)
	return err
}

const updateGoal = `UPDATE goals SET revision = ?, control_version = ?, objective = ?, status = ?, reason_code = ?, reason = ?, candidate = ?,
	blocker = ?, blocker_turns = ?, idle_turns = ?, progress = ?, reviewed = ?, reviews = ?, todo_seen = ?, feedback = ?, cancel_command = ?,
	extraction = ?, extraction_note = ?, budget = ?, program = ?, updated_at = ?, ended_at = ?
	WHERE id = ? AND status NOT IN ('achieved', 'cancelled')`

// UpdateGoal writes a Goal that has not ended and announces it.
func (t *Tx) UpdateGoal(g goals.Goal, now time.Time) error {
	if err := t.one("update goal", updateGoal, g.Revision, g.ControlVersion, g.Objective, g.Status, g.ReasonCode, g.Reason, g.Candidate, g.Blocker,
		g.BlockerTurns, g.IdleTurns, g.Progress, g.Reviewed, g.Reviews, g.TodoSeen, g.Feedback, g.CancelCommand, g.Extraction, g.ExtractionNote, enc(t, g.Budget),
		g.Program, ms(g.UpdatedAt), ms(g.EndedAt), g.ID); err != nil {
		return err
	}
	_, err := t.Announce(g.Session, session.EventGoal, g.ID, now)
	return err
}

const goalColumns = `SELECT id, session, run, revision, control_version, objective, status, reason_code, reason, candidate, blocker, blocker_turns,
	idle_turns, progress, reviewed, reviews, todo_seen, feedback, cancel_command, extraction, extraction_note, grants, budget, asked_budget,
	idempotency_key, program, created_at, updated_at, ended_at FROM goals`

func scanGoal(r scanner) (g goals.Goal, err error) {
	var grants, budget, asked string
	var created, updated, ended int64
	if err = r.Scan(&g.ID, &g.Session, &g.Run, &g.Revision, &g.ControlVersion, &g.Objective, &g.Status, &g.ReasonCode, &g.Reason, &g.Candidate, &g.Blocker,
		&g.BlockerTurns, &g.IdleTurns, &g.Progress, &g.Reviewed, &g.Reviews, &g.TodoSeen, &g.Feedback, &g.CancelCommand, &g.Extraction, &g.ExtractionNote, &grants, &budget, &asked, &g.IdempotencyKey, &g.Program,
		&created, &updated, &ended); err == nil {
		g.Broken = valid(errors.Join(dec(grants, &g.Grants), dec(budget, &g.Budget), dec(asked, &g.Asked)), knownGoal(g.Status))
	}
	g.CreatedAt, g.UpdatedAt, g.EndedAt = at(created), at(updated), at(ended)
	return g, err
}

// Goal returns one Goal.
func (t *Tx) Goal(id string) (goals.Goal, error) {
	return get(t, "load goal "+id, scanGoal, goalColumns+` WHERE id = ?`, id)
}

// OpenGoal returns the Goal of a session that has not ended.
func (t *Tx) OpenGoal(id session.SessionID) (goals.Goal, error) {
	return get(t, "load open goal", scanGoal, goalColumns+` WHERE session = ? AND status IN ('active', 'paused', 'blocked', 'budget_exhausted')`, id)
}

// Goals lists the Goals of a session, oldest first.
func (t *Tx) Goals(id session.SessionID) ([]goals.Goal, error) {
	return list(t, "list goals", scanGoal, goalColumns+` WHERE session = ? ORDER BY rowid`, id)
}

// GoalByKey returns the Goal that was created with an idempotency key.
func (t *Tx) GoalByKey(id session.SessionID, key string) (goals.Goal, error) {
	return get(t, "load goal by key", scanGoal, goalColumns+` WHERE session = ? AND idempotency_key = ?`, id, key)
}

// GoalsByKey lists the Goals of every session that were created with an idempotency key.
func (t *Tx) GoalsByKey(key string) ([]goals.Goal, error) {
	return list(t, "list goals by key", scanGoal, goalColumns+` WHERE idempotency_key = ? AND idempotency_key <> '' ORDER BY rowid`, key)
}

const goalPage = ` WHERE (?5 = '' OR session = ?5) AND (?1 = '' OR status = ?1) AND (?2 = 0 OR (updated_at, id) < (?2, ?3)) ORDER BY updated_at DESC, id DESC LIMIT ?4`

// AllGoals lists Goals, newest first, after the place (updated, id); of one session when it is named.
func (t *Tx) AllGoals(sess session.SessionID, status goals.Status, updated time.Time, id string, limit int) ([]goals.Goal, error) {
	return list(t, "list all goals", scanGoal, goalColumns+goalPage, status, ms(updated), id, limit, sess)
}

const putRequirement = `INSERT INTO requirements (goal, revision, id, ord, kind, text, command, path, pattern, result, reason, evidence, judged_by, origin, confirmed,
	sent_back) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
	ON CONFLICT (goal, revision, id) DO UPDATE SET result = excluded.result, reason = excluded.reason, evidence = excluded.evidence,
	judged_by = excluded.judged_by, confirmed = excluded.confirmed, sent_back = excluded.sent_back`

// PutRequirements stores the requirements of a revision; of those that exist only the judgement changes, and whether they are confirmed.
func (t *Tx) PutRequirements(goal string, revision int64, reqs []goals.Requirement) error {
	for i, q := range reqs {
		if _, err := t.exec("store requirement", putRequirement, goal, revision, q.ID, i, q.Kind, q.Text, q.Command, q.Path, q.Pattern, q.Result, q.Reason,
			enc(t, append([]string{}, q.Evidence...)), q.JudgedBy, q.Origin, q.Confirmed, q.SentBack); err != nil {
			return err
		}
	}
	return nil
}

const requirementsOf = `SELECT id, kind, text, command, path, pattern, result, reason, evidence, judged_by, origin, confirmed, sent_back FROM requirements
	WHERE goal = ? AND revision = ? ORDER BY ord`

// Requirements lists the requirements of a revision.
func (t *Tx) Requirements(goal string, revision int64) ([]goals.Requirement, error) {
	return list(t, "list requirements", func(r scanner) (q goals.Requirement, err error) {
		var evidence string
		if err = r.Scan(&q.ID, &q.Kind, &q.Text, &q.Command, &q.Path, &q.Pattern, &q.Result, &q.Reason, &evidence, &q.JudgedBy, &q.Origin, &q.Confirmed, &q.SentBack); err == nil {
			err = malformed("requirement "+q.ID, dec(evidence, &q.Evidence))
		}
		return q, err
	}, requirementsOf, goal, revision)
}
