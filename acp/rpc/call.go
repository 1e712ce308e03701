package rpc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/sourcegraph/jsonrpc2"
)

// methodCancel is how either side says that it no longer waits for an answer.
const methodCancel = "$/cancel_request"

// call is one of our requests.
type call struct {
	answered bool    // under Conn.mu
	answer   message // set before answered
}

// Call asks the peer and waits for its answer, which is read into result unless that is nil. An error that the peer answers with is an
// *Error. When ctx ends first, the peer is told with $/cancel_request, and the cause of ctx is returned.
func (c *Conn) Call(ctx context.Context, method string, params, result any) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	c.mu.Lock()
	c.lastCall++
	id, state := c.lastCall, &call{}
	c.calls[id] = state
	c.mu.Unlock()

	pending, err := c.lib.DispatchCall(ctx, method, params, jsonrpc2.PickID(jsonrpc2.ID{Num: id}))
	if err == nil {
		err = pending.Wait(ctx, nil)
	}
	c.mu.Lock()
	delete(c.calls, id)
	answered := state.answered
	c.mu.Unlock()
	switch {
	case answered:
		return state.answer.into(method, result)
	case errors.Is(err, jsonrpc2.ErrClosed):
		return ErrClosed
	case ctx.Err() != nil:
		c.forsake(id)
		return context.Cause(ctx)
	}
	return fmt.Errorf("call %s: %w", method, err)
}

// into reads the answer to a call.
func (m message) into(method string, result any) error {
	if m.err != nil && m.err[0] != 'n' {
		return peerError(m.err)
	}
	if result == nil || m.result == nil {
		return nil
	}
	if err := json.Unmarshal(m.result, result); err != nil {
		return fmt.Errorf("read the answer to %s: %w", method, err)
	}
	return nil
}

// forsake tells the peer, and the library, that nobody waits for an answer.
func (c *Conn) forsake(id uint64) {
	_ = c.send(notice{"2.0", methodCancel, map[string]any{"requestId": id}}) // only fails with the connection
	c.mu.Lock()
	c.forsaken = append(c.forsaken, id)
	c.mu.Unlock()
	select {
	case c.dropped <- struct{}{}:
	default:
	}
}

// takeForsaken returns a call that the library shall forget.
func (c *Conn) takeForsaken() (id uint64, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.forsaken) == 0 {
		return 0, false
	}
	id = c.forsaken[0]
	c.forsaken = c.forsaken[1:]
	return id, true
}

// settle keeps the answer to one of our calls. A stray answer belongs to none.
func (c *Conn) settle(m message) (id uint64, ok bool) {
	if id, ok = callID(m.id); !ok {
		return 0, false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	state := c.calls[id]
	if state == nil || state.answered {
		return 0, false
	}
	state.answer, state.answered = m, true
	return id, true
}

// callID reads an id of ours. 3.0 is 3: some peers have one kind of number only.
func callID(raw json.RawMessage) (uint64, bool) {
	if id, err := strconv.ParseUint(string(raw), 10, 64); err == nil {
		return id, true
	}
	f, err := strconv.ParseFloat(string(raw), 64)
	if err != nil || f < 1 || f > 1<<53 || f != float64(uint64(f)) {
		return 0, false
	}
	return uint64(f), true
}
