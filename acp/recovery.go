package acp

import (
	"context"
	"slices"

	"holdfast/session"
)

// recoveryMeans says each setting in words.
var recoveryMeans = map[session.Auto]string{
	session.AutoDefault:  "as recovery.auto of the configuration says",
	session.AutoAlways:   "it goes on by itself",
	session.AutoAttached: "it goes on once an editor opens the session",
	session.AutoOff:      "it waits for your word: /retry, or a new message",
}

// recovery shows or sets what is done by itself with work of the session whose process is gone.
func (s slash) recovery(ctx context.Context, b *Backend, id session.SessionID) (string, error) {
	auto := session.Auto(s.rest)
	switch {
	case s.rest == "":
		var now session.Session
		err := b.Engine.Store.Read(ctx, func(tx session.Tx) (err error) { now, err = tx.Session(id); return err })
		auto = now.Recovery
		if err != nil {
			return "", err
		}
	case s.rest == "default":
		auto = session.AutoDefault
		fallthrough
	case slices.Contains(session.Autos, auto):
		if err := b.Engine.SetRecovery(ctx, id, auto); err != nil {
			return "", err
		}
	default:
		return "Say /recovery always, attached, off or default.", nil
	}
	return "Work of this session whose process is gone: " + recoveryMeans[auto] + ".", nil
}
