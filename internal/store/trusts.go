package store

import "holdfast/session"

const putTrust = `INSERT INTO trusts (dir, digest, shown, door, at, ended_at) VALUES (?, ?, ?, ?, ?, ?)
	ON CONFLICT (dir) DO UPDATE SET digest = excluded.digest, shown = excluded.shown, door = excluded.door, at = excluded.at, ended_at = excluded.ended_at`

// PutTrust stores the trust in a directory in place of an earlier one.
func (t *Tx) PutTrust(u session.Trust) error {
	_, err := t.exec("store trust", putTrust, u.Dir, u.Digest, u.Shown, u.Door, ms(u.At), ms(u.Ended))
	return err
}

const trustColumns = `SELECT dir, digest, shown, door, at, ended_at FROM trusts`

func scanTrust(r scanner) (u session.Trust, err error) {
	var given, ended int64
	err = r.Scan(&u.Dir, &u.Digest, &u.Shown, &u.Door, &given, &ended)
	u.At, u.Ended = at(given), at(ended)
	return u, err
}

// Trust returns what there is of a directory, revoked or not.
func (t *Tx) Trust(dir string) (session.Trust, error) {
	return get(t, "load trust in "+dir, scanTrust, trustColumns+` WHERE dir = ?`, dir)
}

// Trusts lists the trusts that were not revoked, by directory.
func (t *Tx) Trusts() ([]session.Trust, error) {
	return list(t, "list trusts", scanTrust, trustColumns+` WHERE ended_at = 0 ORDER BY dir`)
}
