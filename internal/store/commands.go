package store

import (
	"time"

	"holdfast/session"
)

const insertCommand = `INSERT INTO commands (id, session, kind, ref, body, instance, at) VALUES (?, ?, ?, ?, ?, ?, ?)`

// InsertCommand stores an accepted control.
func (t *Tx) InsertCommand(c session.Command) error {
	body := t.raw(c.Body)
	if body == "" {
		body = "{}"
	}
	_, err := t.exec("insert command", insertCommand, c.ID, c.Session, c.Kind, c.Ref, body, c.Instance, ms(c.At))
	return err
}

const commandColumns = `SELECT id, session, kind, ref, body, instance, at, consumed_at, generation FROM commands`

func scanCommand(r scanner) (c session.Command, err error) {
	var body string
	var when, consumed int64
	err = r.Scan(&c.ID, &c.Session, &c.Kind, &c.Ref, &body, &c.Instance, &when, &consumed, &c.Generation)
	c.Body, c.At, c.ConsumedAt = []byte(body), at(when), at(consumed)
	return c, err
}

// Command returns one control.
func (t *Tx) Command(id string) (session.Command, error) {
	return get(t, "load command", scanCommand, commandColumns+` WHERE id = ?`, id)
}

// OpenCommands lists the controls of a session that nobody has acted on, in order.
func (t *Tx) OpenCommands(id session.SessionID) ([]session.Command, error) {
	return list(t, "list commands", scanCommand, commandColumns+` WHERE session = ? AND consumed_at = 0 ORDER BY rowid`, id)
}

const lastCommand = `SELECT coalesce(max(rowid), 0) FROM commands`

// LastCommand numbers the newest control of all: it rises with each.
func (t *Tx) LastCommand() (n int64, err error) {
	return get(t, "look for controls", func(r scanner) (n int64, err error) { err = r.Scan(&n); return n, err }, lastCommand)
}

const consumeCommand = `UPDATE commands SET consumed_at = ?, generation = ? WHERE id = ? AND consumed_at = 0`

// Consume marks a control as acted on; false when it was already.
func (t *Tx) Consume(id string, generation int64, now time.Time) (bool, error) {
	n, err := t.exec("consume command", consumeCommand, ms(now), generation, id)
	return n == 1, err
}
