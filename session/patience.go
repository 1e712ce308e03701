package session

import (
	"errors"
	"time"
)

// How soon a commit is tried again that cannot be stored now.
const (
	againFirst = 100 * time.Millisecond
	againMost  = 5 * time.Second
)

// untilStored repeats a commit of an executor while the store cannot take it: the disk is full, or the store is held, moved or not
// writable. What is to be stored stays in memory: no call is made whose record is not stored, and the model goes on only from results
// that are. It ends with the ownership or the process; what was not stored is then found as after a crash.
func (t *turn) untilStored(commit func() error) error {
	wait, told := againFirst, false
	for {
		err := commit()
		if !errors.Is(err, ErrNotNow) || t.a.ctx.Err() != nil {
			return err
		}
		if !told {
			told = true
			t.a.log(err, "nothing can be stored now; waiting")
			t.e.bus.publish(t.a.id, Live{Item: ItemID(t.e.NewID()), Kind: ItemMarker, Run: t.run.ID, Thread: t.setup.Thread,
				Text: "\n[" + Plainly(err) + ". The work waits and goes on by itself.]\n"})
		}
		t.pulse.beat() // it is not the work that stands still
		select {
		case <-time.After(wait):
			wait = min(wait*2, againMost)
		case <-t.a.ctx.Done():
			return err
		}
	}
}

// Plainly is what a state says of itself, or the error as one line.
func Plainly(err error) string {
	var state interface{ Plain() string }
	if errors.As(err, &state) {
		return state.Plain()
	}
	return safeText(err)
}
