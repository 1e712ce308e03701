package acp

import (
	"fmt"
	"time"

	"holdfast/session"
)

// How calls that run are shown while nothing else is to be told of them.
const (
	beatEvery = time.Second
	sayAfter  = 8500 * time.Millisecond // of silence; with a beat more it stays below the ten seconds that a client may expect
)

// ongoing is a call that the client was told is running.
type ongoing struct {
	item  session.Item
	text  string    // last live output
	told  time.Time // when the client last heard of it
	since time.Time // when it was dispatched
}

// truthful is an item as it may be shown: a call is running only while somebody who lives executes it. Until it is known what became of a
// dead one's call, it is pending.
func (f *follower) truthful(it session.Item) session.Item {
	if it.Kind != session.ItemTool || it.Body.Tool.Status != session.ToolInProgress {
		delete(f.ongoing, it.ID)
		return it
	}
	var since time.Time
	var owner session.InstanceID
	runs := false
	err := f.b.Engine.Store.Read(f.ctx, func(tx session.Tx) (err error) {
		owner, runs, since, err = session.Executing(tx, it)
		return err
	})
	if err != nil {
		f.fail(err, "looking whether a call runs failed")
	}
	if runs && owner != f.b.Engine.Self.ID && f.b.Dead != nil {
		runs = !f.b.Dead(owner)
	}
	if !runs {
		delete(f.ongoing, it.ID)
		shown := *it.Body.Tool
		shown.Status = session.ToolPending
		it.Body.Tool = &shown
		return it
	}
	if f.ongoing[it.ID] == nil {
		f.ongoing[it.ID] = &ongoing{item: it, told: f.a.Now(), since: since}
		if len(f.ongoing) == 1 {
			f.after(beatEvery, f.beat)
		}
	}
	return it
}

// live shows what a running call has printed so far.
func (f *follower) live(id session.ItemID, out session.Output) {
	if o := f.ongoing[id]; o != nil {
		o.text, o.told = out.Text, f.a.Now()
	}
	f.send(liveOutput(id, out))
}

// beat looks at the calls that run: what another process executes is read here, and a call that is silent is shown all the same.
func (f *follower) beat() {
	for id, o := range f.ongoing {
		if f.muted[o.item.Run] || f.isQuiet() {
			continue
		}
		if !f.b.Engine.Owns(f.id) {
			if out, ok := f.b.Engine.Peek(f.ctx, o.item); ok && out.Text != o.text {
				f.live(id, out)
				continue
			}
		}
		if f.a.Now().Sub(o.told) < sayAfter {
			continue
		}
		f.again(o)
	}
	if len(f.ongoing) > 0 {
		f.after(beatEvery, f.beat)
	}
}

// again says once more that a call runs, and for how long it has.
func (f *follower) again(o *ongoing) {
	if it := f.truthful(o.item); it.Body.Tool.Status != session.ToolInProgress {
		f.send(pendingAgain(it.ID))
		return
	}
	o.told = f.a.Now()
	text := o.text
	if text != "" && text[len(text)-1] != '\n' {
		text += "\n"
	}
	text += fmt.Sprintf("[running for %s]", max(0, o.told.Sub(o.since)).Round(time.Second)) // a clock may be put back
	f.send(liveOutput(o.item.ID, session.Output{Text: text}))
}
