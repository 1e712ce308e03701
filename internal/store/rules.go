package store

import (
	"time"

	"holdfast/session"
)

const insertRule = `INSERT INTO rules (id, verdict, kind, session, cwd, tool, version, value, programs, approval, created_at)
	VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`

// InsertRule stores a standing answer of the user.
func (t *Tx) InsertRule(r session.Rule) error {
	_, err := t.exec("insert rule", insertRule, r.ID, r.Verdict, r.Kind, r.Session, place(r.Cwd), r.Tool, r.Version, r.Value, r.Programs, r.Approval, ms(r.CreatedAt))
	return err
}

const revokeRule = `UPDATE rules SET revoked_at = ? WHERE id = ? AND revoked_at = 0`

// RevokeRule ends a rule; false when it had ended before.
func (t *Tx) RevokeRule(id session.RuleID, now time.Time) (bool, error) {
	n, err := t.exec("revoke rule", revokeRule, ms(now), id)
	return n > 0, err
}

const ruleColumns = `SELECT id, verdict, kind, session, cwd, tool, version, value, programs, approval, created_at, revoked_at FROM rules`

func scanRule(r scanner) (u session.Rule, err error) {
	var created, revoked int64
	err = r.Scan(&u.ID, &u.Verdict, &u.Kind, &u.Session, &u.Cwd, &u.Tool, &u.Version, &u.Value, &u.Programs, &u.Approval, &created, &revoked)
	u.CreatedAt, u.RevokedAt = at(created), at(revoked)
	return u, err
}

// Rule returns one rule, revoked or not.
func (t *Tx) Rule(id session.RuleID) (session.Rule, error) {
	return get(t, "load rule "+string(id), scanRule, ruleColumns+` WHERE id = ?`, id)
}

// Rules lists the rules that were not revoked, oldest first.
func (t *Tx) Rules() ([]session.Rule, error) {
	return list(t, "list rules", scanRule, ruleColumns+` WHERE revoked_at = 0 ORDER BY created_at, rowid`)
}
