package store

import (
	"holdfast/session"
	"holdfast/usage"
)

const insertRequest = `INSERT INTO requests (id, session, run, attempt, goal, revision, model, state, started_at, purpose, price,
	reserved_input, reserved_output) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`

// InsertRequest stores a provider request before it is sent.
func (t *Tx) InsertRequest(r session.Request) error {
	var price any = ""
	if r.Price.Currency != "" {
		price = enc(t, r.Price)
	}
	_, err := t.exec("insert request", insertRequest, r.ID, r.Session, r.Run, r.Attempt, r.Goal, r.Revision, r.Model, r.State, ms(r.StartedAt), r.Purpose,
		price, r.ReservedInput, r.ReservedOutput)
	return err
}

const updateRequest = `UPDATE requests SET state = ?, input_tokens = ?, output_tokens = ?, cache_read_tokens = ?, cache_write_tokens = ?,
	reasoning_tokens = ?, settled_at = ? WHERE id = ? AND state <> 'settled'`

// UpdateRequest settles a provider request, once.
func (t *Tx) UpdateRequest(r session.Request) error {
	_, err := t.exec("update request", updateRequest, r.State, r.Input, r.Output, r.Parts.CacheRead.Pointer(), r.Parts.CacheWrite.Pointer(),
		r.Parts.Reasoning.Pointer(), ms(r.SettledAt), r.ID)
	return err
}

const requestColumns = `SELECT id, session, run, attempt, goal, revision, model, state, input_tokens, output_tokens, cache_read_tokens, cache_write_tokens,
	reasoning_tokens, started_at, settled_at, purpose, price, reserved_input, reserved_output, rowid FROM requests`

func scanRequest(r scanner) (v session.Request, err error) {
	var started, settled int64
	var read, written, reasoning *int64
	var price string
	err = r.Scan(&v.ID, &v.Session, &v.Run, &v.Attempt, &v.Goal, &v.Revision, &v.Model, &v.State, &v.Input, &v.Output, &read, &written, &reasoning,
		&started, &settled, &v.Purpose, &price, &v.ReservedInput, &v.ReservedOutput, &v.Row)
	if dec(price, &v.Price) != nil {
		v.Price = usage.Price{} // one that cannot be read is not known
	}
	v.Parts = usage.Parts{CacheRead: usage.MaybeOf(read), CacheWrite: usage.MaybeOf(written), Reasoning: usage.MaybeOf(reasoning)}
	v.StartedAt, v.SettledAt = at(started), at(settled)
	return v, err
}

// RequestsOf lists the provider requests of a run.
func (t *Tx) RequestsOf(id session.RunID) ([]session.Request, error) {
	return list(t, "list requests", scanRequest, requestColumns+` WHERE run = ? ORDER BY rowid`, id)
}

// RequestsOfSession lists the provider requests of a session.
func (t *Tx) RequestsOfSession(id session.SessionID) ([]session.Request, error) {
	return list(t, "list requests of a session", scanRequest, requestColumns+` WHERE session = ? ORDER BY rowid`, id)
}

// RequestsAfter lists those behind a row.
func (t *Tx) RequestsAfter(id session.SessionID, row int64) ([]session.Request, error) {
	return list(t, "list later requests", scanRequest, requestColumns+` WHERE session = ? AND rowid > ? ORDER BY rowid`, id, row)
}

// RequestsOfGoal lists the provider requests made for a Goal, in every run of it.
func (t *Tx) RequestsOfGoal(goal string) ([]session.Request, error) {
	return list(t, "list requests of a goal", scanRequest, requestColumns+` WHERE goal = ? ORDER BY rowid`, goal)
}
