package acp

import (
	"context"
	"errors"

	"holdfast/acp/rpc"
	v1 "holdfast/acp/v1"
	"holdfast/session"
)

// deleteSession removes a session for good. One that is not there is deleted already.
func (a *Agent) deleteSession(ctx context.Context, b *Backend, req *rpc.Request) error {
	p, err := parse[v1.DeleteSessionRequest](req)
	if err != nil {
		return err
	}
	id := session.SessionID(p.SessionID)
	if id == "" {
		return &invalid{"sessionId", "name the session"}
	}
	if b.Delete == nil {
		return errors.ErrUnsupported
	}
	if err := b.Delete(ctx, id); session.IsNotFound(err) {
		req.Reply(map[string]any{})
		return nil
	} else if err != nil {
		return err
	}
	a.letGo(b, id)
	req.Reply(map[string]any{})
	return nil
}
