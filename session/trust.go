package session

import (
	"context"
	"fmt"
	"time"
)

// Trust is the user's word that what a directory brings along counts: its configuration and what that starts, exactly as the digest says.
// A directory has one; trusting it anew replaces it, and a revoked one stays on record.
type Trust struct {
	Dir    string // without links
	Digest string // of the files concerned; others are not trusted
	Shown  string // what the user was shown, in words
	Door   string // where it was given: "editor" or "command line"
	At     time.Time
	Ended  time.Time // revoked
}

// Covers tells whether it counts for files as they are.
func (t Trust) Covers(digest string) bool {
	return digest != "" && t.Digest == digest && t.Ended.IsZero()
}

// TrustProject stores that the user trusts a directory's files as they are. Only what a person does may lead here.
func (e *Engine) TrustProject(ctx context.Context, t Trust) (Trust, error) {
	t.At, t.Ended = e.Now(), time.Time{}
	if err := e.Store.Commit(ctx, "trust.given", func(tx Tx) error { return tx.PutTrust(t) }); err != nil {
		return t, fmt.Errorf("store the trust in %s: %w", t.Dir, err)
	}
	return t, nil
}

// RevokeTrust ends the trust in a directory. It is ErrNotFound when there is none; revoking it twice is the same as once.
func (e *Engine) RevokeTrust(ctx context.Context, dir string) (Trust, error) {
	var t Trust
	err := e.Store.Commit(ctx, "trust.revoked", func(tx Tx) (err error) {
		if t, err = tx.Trust(dir); err != nil || !t.Ended.IsZero() {
			return err
		}
		t.Ended = e.Now()
		return tx.PutTrust(t)
	})
	if err != nil {
		return t, fmt.Errorf("revoke the trust in %s: %w", dir, err)
	}
	return t, nil
}
