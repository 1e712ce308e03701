package acp

import (
	"context"
	"errors"
	"fmt"

	"holdfast/session"
)

// stopCommand is /stop and /stop all: requests are cancelled, goals paused, background commands ended. It is stored when it is answered.
func stopCommand(ctx context.Context, b *Backend, id session.SessionID, which string) (string, error) {
	ids := []session.SessionID{id}
	switch which {
	case "":
	case "all":
		var err error
		if ids, err = b.Engine.Stoppable(ctx); err != nil {
			return "", err
		}
	default:
		return "Say /stop for this session, or /stop all for every one.", nil
	}
	var failed error
	stopped := 0
	for _, s := range ids { // one that cannot be stopped keeps no other from it
		if _, err := b.Engine.Stop(ctx, s); err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		stopped++
	}
	if failed != nil {
		return "", failed
	}
	if which == "" {
		return "Stopped. Background commands of this session are being ended; nothing of it goes on by itself.", nil
	}
	return fmt.Sprintf("Stopped %d session(s). Their background commands are being ended; nothing goes on by itself.", stopped), nil
}
