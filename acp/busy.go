package acp

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"holdfast/acp/rpc"
	"holdfast/session"
)

// The store can be kept from being written by one process that was suspended inside a write. Whoever waits for it is named that process;
// reading goes on.

// HeldStore names who keeps the store.
func HeldStore(pid int, since time.Time) string {
	if pid == 0 {
		return "store_busy: another program has locked the store since " + since.Local().Format("2006-01-02 15:04:05") + "."
	}
	return fmt.Sprintf("store_busy: process %d has held the store since %s; it may be suspended.", pid, since.Local().Format("2006-01-02 15:04:05"))
}

// FreeStore is what a person can do about it.
func FreeStore(pid int) string {
	if pid == 0 {
		return "End what reads or writes holdfast.db besides Holdfast; work goes on by itself."
	}
	return fmt.Sprintf("Continue it (kill -CONT %d) or end it (kill -KILL %d; what it had not stored is safe to lose).", pid, pid)
}

// busyError is what a request answers with that could not be stored.
func busyError(err error, data func(...any) map[string]any) *rpc.Error {
	var busy session.StoreBusy
	errors.As(err, &busy)
	pid, since := busy.Holder()
	if pid == 0 {
		return &rpc.Error{Code: rpc.CodeInternalError, Message: "store_busy: another program is writing to the store. Nothing of this was stored; try again.",
			Data: data("code", "store_busy", "action", "Try again when it has finished.")}
	}
	return &rpc.Error{Code: rpc.CodeInternalError, Message: HeldStore(pid, since) + " Nothing of this was stored. " + FreeStore(pid) + " Then try again.",
		Data: data("code", "store_busy", "pid", pid, "since", since.UTC(), "action", FreeStore(pid))}
}

// held is a store that could not be opened yet because of that.
type heldStore struct {
	pid   int
	since time.Time
}

func (h *heldStore) Error() string                      { return HeldStore(h.pid, h.since) }
func (h *heldStore) Holder() (pid int, since time.Time) { return h.pid, h.since }

// Busy tells the client who has kept the store for seconds. Requests that wait for the store to be opened are answered with it; what waits
// inside a request goes on waiting.
func (a *Agent) Busy(pid int, since time.Time) {
	a.mu.Lock()
	opening := a.back == nil
	if opening {
		a.held = &heldStore{pid, since}
		select {
		case <-a.stuck:
		default:
			close(a.stuck)
		}
	}
	var all []*follower
	if !a.toldBusy.Equal(since) { // one turn of one process holds up many waits
		all = slices.Collect(maps.Values(a.open))
	}
	a.toldBusy = since
	a.mu.Unlock()
	for _, f := range all {
		text := HeldStore(pid, since) + " What you do here waits for it. " + FreeStore(pid)
		a.wg.Go(func() { f.post(func() { f.notice(text) }) }) // whoever waits for the store must not wait for the follower
	}
}

// attachWithin is how long opening a session waits for the store before its history is shown without.
const attachWithin = 3 * time.Second

// attach stores that the session is open here. With a busy store it says so in time for the history to be shown all the same.
func (a *Agent) attach(ctx context.Context, b *Backend, s session.Session, p reopening, roots []string) (session.Session, error) {
	short, cancel := context.WithTimeout(ctx, attachWithin)
	defer cancel()
	opened, err := a.attachOnce(short, b, s, p, roots)
	if err != nil && !session.IsBusy(err) && short.Err() != nil && ctx.Err() == nil {
		return a.attachOnce(ctx, b, s, p, roots) // many writers, none of them stuck
	}
	return opened, err
}

func (a *Agent) attachOnce(ctx context.Context, b *Backend, s session.Session, p reopening, roots []string) (session.Session, error) {
	if err := a.supply(ctx, b, s, p.servers, p.notices); err != nil {
		return s, err
	}
	a.introduce(b)
	opened, err := b.Engine.Open(ctx, s.ID, roots)
	if err != nil {
		return s, err
	}
	a.warm(a.ctx, b, opened)
	return opened, nil
}

// attachLater goes on trying, beside the follower, as long as the client has the session open.
func (f *follower) attachLater(s session.Session, p reopening, roots []string, why error) {
	var busy session.StoreBusy
	if errors.As(why, &busy) {
		pid, since := busy.Holder()
		f.notice(HeldStore(pid, since) + " You see what is stored. " + FreeStore(pid))
	}
	p.notices = nil // told already
	f.a.wg.Go(func() {
		for f.ctx.Err() == nil {
			_, err := f.a.attachOnce(f.ctx, f.b, s, p, roots)
			if err == nil {
				f.post(f.catchUp)
				return
			}
			if !session.IsBusy(err) {
				f.fail(err, "opening a session failed")
				return
			}
		}
	})
}
