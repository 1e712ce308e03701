package store

import (
	"encoding/json"
	"time"

	"holdfast/session"
)

const insertRun = `INSERT INTO runs (id, session, kind, ord, desired, phase, reason_code, reason, control_version, goal, revision, input,
	created_at, profile, client) VALUES (?1, ?2, ?3, (SELECT coalesce(max(ord), 0) + 1 FROM runs WHERE session = ?2), ?4, ?5, ?6, ?7, ?8, ?9, ?10,
	?11, ?12, ?13, ?14)`

// InsertRun stores accepted work after everything accepted before, and announces it.
func (t *Tx) InsertRun(r session.Run) error {
	if _, err := t.exec("insert run", insertRun, r.ID, r.Session, r.Kind, r.Desired, r.Phase, r.ReasonCode, r.Reason, r.ControlVersion,
		r.Goal, r.Revision, t.raw(r.Input), ms(r.CreatedAt), enc(t, r.Profile), r.Client); err != nil {
		return err
	}
	_, err := t.Announce(r.Session, session.EventRun, string(r.ID), r.CreatedAt)
	return err
}

const runColumns = `SELECT id, session, kind, ord, desired, phase, stop_reason, reason_code, reason, control_version, goal, revision, input,
	commit_point, deaths, faults, retry_at, retry_wait, created_at, ended_at, redo, left_behind, profile, client, past_limit FROM runs`

func scanRun(r scanner) (v session.Run, err error) {
	var input, profile string
	var retry, wait, created, ended int64
	err = r.Scan(&v.ID, &v.Session, &v.Kind, &v.Order, &v.Desired, &v.Phase, &v.StopReason, &v.ReasonCode, &v.Reason, &v.ControlVersion,
		&v.Goal, &v.Revision, &input, &v.CommitPoint, &v.Deaths, &v.Faults, &retry, &wait, &created, &ended, &v.Redo, &v.Left, &profile, &v.Client, &v.PastLimit)
	if err == nil {
		err = dec(profile, &v.Profile)
	}
	v.RetryWait = time.Duration(wait) * time.Millisecond
	v.Input = []byte(input)
	v.Broken = valid(nil, input == "" || json.Valid(v.Input), among(v.Kind, session.RunPrompt, session.RunGoal, session.RunVerification),
		among(v.Desired, session.DesiredRun, session.DesiredPaused, session.DesiredCancelled, session.DesiredDone),
		among(v.Phase, session.PhaseQueued, session.PhaseWorking, session.PhaseWaiting, session.PhaseEnded))
	v.RetryAt, v.CreatedAt, v.EndedAt = at(retry), at(created), at(ended)
	return v, err
}

// Run returns one run.
func (t *Tx) Run(id session.RunID) (session.Run, error) {
	return get(t, "load run "+string(id), scanRun, runColumns+` WHERE id = ?`, id)
}

// OpenRuns lists the runs of a session that have not ended, in order of acceptance.
func (t *Tx) OpenRuns(id session.SessionID) ([]session.Run, error) {
	return list(t, "list open runs", scanRun, runColumns+` WHERE session = ? AND phase <> 'ended' ORDER BY ord`, id)
}

// RunsOf lists every run of a session in order of acceptance.
func (t *Tx) RunsOf(id session.SessionID) ([]session.Run, error) {
	return list(t, "list runs", scanRun, runColumns+` WHERE session = ? ORDER BY ord`, id)
}

const updateRun = `UPDATE runs SET desired = ?, phase = ?, stop_reason = ?, reason_code = ?, reason = ?, control_version = ?, revision = ?,
	commit_point = ?, deaths = ?, faults = ?, retry_at = ?, retry_wait = ?, ended_at = ?,
	input = ?, redo = ?, left_behind = ?, profile = ?, client = ?, past_limit = ? WHERE id = ?`

// UpdateRun writes a run and announces it.
func (t *Tx) UpdateRun(r session.Run, now time.Time) error {
	if err := t.one("update run", updateRun, r.Desired, r.Phase, r.StopReason, r.ReasonCode, r.Reason, r.ControlVersion, r.Revision,
		r.CommitPoint, r.Deaths, r.Faults, ms(r.RetryAt), r.RetryWait.Milliseconds(), ms(r.EndedAt), t.raw(r.Input), r.Redo, r.Left,
		enc(t, r.Profile), r.Client, r.PastLimit, r.ID); err != nil {
		return err
	}
	_, err := t.Announce(r.Session, session.EventRun, string(r.ID), now)
	return err
}

const insertAttempt = `INSERT INTO attempts (id, run, number, generation, instance, pid, state, mode, rule, continuation_key, entry_tree,
	start_point, started_at, continued, fingerprint) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`

// InsertAttempt stores an attempt; a second one with the same continuation key is refused by the schema.
func (t *Tx) InsertAttempt(a session.Attempt) error {
	_, err := t.exec("insert attempt", insertAttempt, a.ID, a.Run, a.Number, a.Generation, a.Instance, a.PID, a.State, a.Mode, a.Rule,
		a.ContinuationKey, a.EntryTree, a.StartPoint, ms(a.StartedAt), a.Continued, a.Fingerprint)
	return err
}

const updateAttempt = `UPDATE attempts SET state = ?, entry_tree = ?, fingerprint = ?, ended_at = ?, handed_to = ? WHERE id = ?`

// UpdateAttempt writes what may change of an attempt.
func (t *Tx) UpdateAttempt(a session.Attempt) error {
	return t.one("update attempt", updateAttempt, a.State, a.EntryTree, a.Fingerprint, ms(a.EndedAt), a.HandedTo, a.ID)
}

const attemptColumns = `SELECT id, run, number, generation, instance, pid, state, mode, rule, continuation_key, entry_tree, start_point,
	started_at, ended_at, continued, fingerprint, handed_to, died FROM attempts`

func scanAttempt(r scanner) (a session.Attempt, err error) {
	var started, ended int64
	err = r.Scan(&a.ID, &a.Run, &a.Number, &a.Generation, &a.Instance, &a.PID, &a.State, &a.Mode, &a.Rule, &a.ContinuationKey, &a.EntryTree,
		&a.StartPoint, &started, &ended, &a.Continued, &a.Fingerprint, &a.HandedTo, &a.Died)
	a.StartedAt, a.EndedAt = at(started), at(ended)
	return a, err
}

const markDied = `UPDATE attempts SET died = 1 WHERE instance = ? AND state = 'running'`

// MarkDied records that a process died in what it was working on.
func (t *Tx) MarkDied(id session.InstanceID) error {
	_, err := t.exec("mark what a process died in", markDied, id)
	return err
}

// LastAttempt returns the newest attempt of a run.
func (t *Tx) LastAttempt(id session.RunID) (session.Attempt, error) {
	return get(t, "load last attempt", scanAttempt, attemptColumns+` WHERE run = ? ORDER BY number DESC LIMIT 1`, id)
}

// Attempts lists the attempts of a run in order.
func (t *Tx) Attempts(id session.RunID) ([]session.Attempt, error) {
	return list(t, "list attempts", scanAttempt, attemptColumns+` WHERE run = ? ORDER BY number`, id)
}
