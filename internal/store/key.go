package store

import (
	"context"
	"database/sql"
	"encoding/hex"
	"fmt"
)

const credentialKey = `SELECT value FROM meta WHERE key = 'cred_key'`

// CredentialKey is this store's own key for hashing credentials: two stores never show the same hash for one credential.
func (d *DB) CredentialKey(ctx context.Context) ([]byte, error) {
	var s string
	if err := d.Read(ctx, func(tx *sql.Tx) error { return tx.QueryRow(credentialKey).Scan(&s) }); err != nil {
		return nil, fmt.Errorf("read the credential key: %w", err)
	}
	return hex.DecodeString(s)
}
