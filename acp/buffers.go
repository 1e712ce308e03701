package acp

import (
	"context"
	"sync/atomic"
	"time"

	v1 "holdfast/acp/v1"
	"holdfast/session"
)

// bufferWithin is how long a client may take to say what is in a file; a read goes to the disk then. One that took so long twice in a row
// is not asked again on this connection.
const (
	bufferWithin = 5 * time.Second
	bufferMisses = 2
)

// offerBuffers lets calls of the session read what is in the client's editor, when it offers that.
func (f *follower) offerBuffers() (withdraw func()) {
	f.a.mu.Lock()
	offered := f.a.buffers
	f.a.mu.Unlock()
	if !offered {
		return func() {}
	}
	var missed atomic.Int32
	return f.b.Engine.OfferBuffers(f.id, session.Buffers(func(ctx context.Context, path string) (string, bool) {
		if missed.Load() >= bufferMisses {
			return "", false
		}
		ctx, cancel := context.WithTimeout(ctx, bufferWithin)
		defer cancel()
		stop := context.AfterFunc(f.ctx, cancel)
		defer stop()
		var got v1.ReadTextFileResponse
		err := f.a.conn.Call(ctx, v1.MethodFsReadTextFile, v1.ReadTextFileRequest{SessionID: v1.SessionID(f.id), Path: path}, &got)
		if ctx.Err() == context.DeadlineExceeded {
			missed.Add(1)
		} else {
			missed.Store(0)
		}
		return got.Content, err == nil
	}))
}
