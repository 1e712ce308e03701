package store

import "holdfast/session"

const insertBackground = `INSERT INTO backgrounds (effect, session, number, command, dir, started_at) VALUES (?, ?, ?, ?, ?, ?)`

// InsertBackground stores a command before it starts.
func (t *Tx) InsertBackground(b session.Background) error {
	_, err := t.exec("insert background command", insertBackground, b.Effect, b.Session, b.Number, b.Command, b.Dir, ms(b.StartedAt))
	return err
}

// A command ends once, its output is never given out backwards, and a wish to stop it is never taken back.
const updateBackground = `UPDATE backgrounds SET desired = CASE WHEN desired = 'stopped' THEN desired ELSE ?1 END, state = ?2, exit_code = ?3, signal = ?4,
	stopped = ?5, note = ?6, read_to = max(read_to, ?7), ended_at = ?8, delivered_at = ?9
	WHERE effect = ?10 AND (state = 'running' OR state = ?2) AND (delivered_at = 0 OR delivered_at = ?9)`

// UpdateBackground writes what may change of a background command.
func (t *Tx) UpdateBackground(b session.Background) error {
	return t.one("update background command", updateBackground, b.Desired, b.State, b.ExitCode, b.Signal, b.Stopped, b.Note, b.ReadTo, ms(b.EndedAt),
		ms(b.DeliveredAt), b.Effect)
}

const backgroundColumns = `SELECT effect, session, number, command, dir, desired, state, exit_code, signal, stopped, note, read_to, started_at, ended_at,
	delivered_at FROM backgrounds`

func scanBackground(r scanner) (b session.Background, err error) {
	var started, ended, delivered int64
	err = r.Scan(&b.Effect, &b.Session, &b.Number, &b.Command, &b.Dir, &b.Desired, &b.State, &b.ExitCode, &b.Signal, &b.Stopped, &b.Note, &b.ReadTo,
		&started, &ended, &delivered)
	b.StartedAt, b.EndedAt, b.DeliveredAt = at(started), at(ended), at(delivered)
	return b, err
}

// Background returns the command that a call started.
func (t *Tx) Background(id session.EffectID) (session.Background, error) {
	return get(t, "load background command", scanBackground, backgroundColumns+` WHERE effect = ?`, id)
}

// Backgrounds lists the commands of a session in the order of their numbers.
func (t *Tx) Backgrounds(id session.SessionID) ([]session.Background, error) {
	return list(t, "list background commands", scanBackground, backgroundColumns+` WHERE session = ? ORDER BY number`, id)
}

// RunningBackgrounds lists the commands of every session that have no recorded end, oldest first.
func (t *Tx) RunningBackgrounds() ([]session.Background, error) {
	return list(t, "list running background commands", scanBackground, backgroundColumns+` WHERE state = 'running' ORDER BY started_at, effect`)
}

// UntoldBackgrounds lists the commands of a session whose end the model does not know.
func (t *Tx) UntoldBackgrounds(id session.SessionID) ([]session.Background, error) {
	return list(t, "list ended background commands", scanBackground, backgroundColumns+
		` WHERE session = ? AND state <> 'running' AND delivered_at = 0 ORDER BY number`, id)
}
