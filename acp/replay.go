package acp

import (
	"fmt"

	"holdfast/session"
)

// replayPage is how many bytes of a history are read at a time. What waits for the client is bounded by the connection, so that memory does
// not follow the length of a history.
const replayPage = 512 << 10

// before makes the follower know the history up to a place, and shows it when it was asked for. open are the items there that may still
// change: of the others only those of calls ever do, and are then shown as they are.
func (f *follower) before(last int64, open []session.Item, replay bool) error {
	var whole int64
	if replay {
		defer f.plan() // as it is now, after the history
		if err := f.b.Engine.Store.Read(f.ctx, func(tx session.Tx) (err error) { whole, err = session.WholeSince(tx, f.id); return err }); err != nil {
			return fmt.Errorf("look at a history: %w", err)
		}
	}
	for after := int64(0); replay; {
		page, err := f.pageOf(after, whole)
		if err != nil {
			return err
		}
		if len(page) == 0 {
			break
		}
		for _, it := range page {
			if after = it.Seq; it.Seq > last {
				replay = false // what came meanwhile is told by its events
				break
			}
			f.replay(it)
		}
	}
	for _, it := range open {
		if it.Thread == "" && f.items[it.ID] == nil {
			f.assume(it)
		}
	}
	f.known = last
	return nil
}

// pageOf reads the next items, with results whole from a place on.
func (f *follower) pageOf(after, whole int64) (page []session.Item, err error) {
	err = f.b.Engine.Store.Read(f.ctx, func(tx session.Tx) error {
		if page, err = tx.Page(f.id, "", after, replayPage); err != nil {
			return err
		}
		for i := range page {
			if page[i].Seq < whole {
				session.Short(&page[i])
			} else if err := session.Whole(tx, &page[i]); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("replay a history: %w", err)
	}
	return page, nil
}

// replay shows an item of the past; own prompts are shown again as well. What is closed is forgotten once it was shown.
func (f *follower) replay(it session.Item) {
	own := f.own
	f.own = map[session.RunID]bool{}
	f.item(it)
	f.own = own
	if it.State != session.ItemOpen {
		delete(f.items, it.ID)
	}
}

// assume records an item as known to the client without showing it.
func (f *follower) assume(it session.Item) {
	sh := f.shown(it.ID)
	sh.text, sh.closed = len(it.Body.Text), it.State != session.ItemOpen
	if it.Kind == session.ItemTool {
		_ = f.truthful(it) // it is told from now on how long it runs
		_, sh.tool = toolUpdate(it, true)
	}
}

// first tells whether the client has never heard of a call.
func (f *follower) first(it session.Item, sh *shownItem) bool {
	return sh.tool == "" && (it.Seq > f.known || it.Thread != "")
}

// drop ends a follower whose session could not be shown. It runs in the follower's goroutine.
func (a *Agent) drop(f *follower) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.open[f.id] == f {
		delete(a.open, f.id)
	}
	f.stop()
}
