package acp

import (
	"context"
	"errors"
	"fmt"
	"time"

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
	open, pid, err := unconfirmed(ctx, b, ids)
	if err != nil {
		return "", err
	}
	if len(open) > 0 {
		return fmt.Sprintf("Stopping: the stop is stored, and nothing of it goes on by itself. Process %d has not confirmed it yet; the commands that it started "+
			"are being ended.", pid), nil
	}
	if which == "" {
		return "Stopped. Background commands of this session are being ended; nothing of it goes on by itself.", nil
	}
	return fmt.Sprintf("Stopped %d session(s). Their background commands are being ended; nothing goes on by itself.", stopped), nil
}

// unconfirmed waits a moment for the processes that execute stopped sessions, and ends the commands of those that do not respond.
func unconfirmed(ctx context.Context, b *Backend, ids []session.SessionID) (open []session.SessionID, pid int, err error) {
	for deadline := time.Now().Add(confirmWithin); ; {
		open, pid, err = b.Engine.Unconfirmed(ctx, ids)
		if err != nil || len(open) == 0 {
			return nil, 0, err
		}
		if !time.Now().Before(deadline) {
			break
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return nil, 0, context.Cause(ctx)
		}
	}
	for _, id := range open {
		b.Engine.EndCommandsSoon(id)
	}
	return open, pid, nil
}
