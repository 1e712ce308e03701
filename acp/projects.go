package acp

import (
	"context"
	"strings"

	"holdfast/session"
)

// Projects decides about what the directory of a session brings along. The answers are texts for the user.
type Projects interface {
	// Trust shows the project's configuration, trusts what was shown ("yes"), or takes that back ("no").
	Trust(ctx context.Context, s session.Session, words []string) (string, error)
	// Context says which instruction files the next request carries.
	Context(context.Context, session.Session) (string, error)
}

// project answers /trust and /context. What was trusted or not any more counts at once where this process runs the session's servers.
func (s slash) project(ctx context.Context, b *Backend, id session.SessionID) (string, error) {
	if b.Projects == nil {
		return "", &invalid{s.name[1:], "this process looks at no projects"}
	}
	var sess session.Session
	if err := b.Engine.Store.Read(ctx, func(tx session.Tx) (err error) { sess, err = tx.Session(id); return err }); err != nil {
		return "", err
	}
	if s.name == "/context" {
		return b.Projects.Context(ctx, sess)
	}
	words := strings.Fields(s.rest)
	if len(words) > 1 || len(words) == 1 && words[0] != "yes" && words[0] != "no" {
		return "", &invalid{"trust", "want /trust, /trust yes or /trust no"}
	}
	text, err := b.Projects.Trust(ctx, sess, words)
	if err == nil && b.Servers != nil && b.Engine.Owns(id) {
		b.Servers.Warm(ctx, sess)
	}
	return text, err
}
