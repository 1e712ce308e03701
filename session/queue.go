package session

import (
	"cmp"
	"slices"
	"time"
)

// WorkingDefault is how many runs work unattended at once, unless the configuration says otherwise.
const WorkingDefault = 4

// SlotState is what a place in the queue is good for.
type SlotState string

const (
	SlotWaiting SlotState = "waiting" // in line for a slot; entered by an admission that found none, and between two turns
	SlotWorking SlotState = "working" // it has a slot; left with the attempt, whatever ends it
)

// Slot is the place of a session's next unattended run among those of all processes.
type Slot struct {
	Session  SessionID
	Run      RunID
	Instance InstanceID
	WorkTree string // what the run may write, "" for nothing
	State    SlotState
	Keeps    bool // its work tree stays its own between two turns
	Since    time.Time
	Served   time.Time // when work of the session last began
}

// holds tells whether the work tree is not for others.
func (p Slot) holds() bool { return p.WorkTree != "" && (p.State == SlotWorking || p.Keeps) }

// Standings is what shows that something about a session has changed.
type Standings struct {
	Session  SessionID
	Seq      int64
	Attached int
}

// Next lists the waiting places that may have a slot now, the one that goes first in front. The session that was served least recently goes
// first, then the one that has waited longest; a place whose work tree another holds is passed over. A late one was offered a slot and has
// not taken it, because its process is suspended or busy: it may still have it, and holds nobody up.
func Next(working int, places []Slot, late func(Slot) bool) []Slot {
	free := working
	trees := map[string]SessionID{}
	for _, p := range places {
		if p.holds() {
			trees[p.WorkTree] = p.Session
		}
		if p.State == SlotWorking {
			free--
		}
	}
	var next []Slot
	for _, p := range Order(places) {
		if free <= 0 {
			break
		}
		if by, held := trees[p.WorkTree]; held && by != p.Session {
			continue
		}
		next = append(next, p)
		if late(p) {
			continue
		}
		free--
		if p.WorkTree != "" {
			trees[p.WorkTree] = p.Session
		}
	}
	return next
}

// Order is the line: the waiting places, the one that goes first in front.
func Order(places []Slot) []Slot {
	var line []Slot
	for _, p := range places {
		if p.State == SlotWaiting {
			line = append(line, p)
		}
	}
	slices.SortFunc(line, func(a, b Slot) int {
		return cmp.Or(a.Served.Compare(b.Served), a.Since.Compare(b.Since), cmp.Compare(a.Session, b.Session))
	})
	return line
}

// Waiting says why a place that is not among the next waits: for a slot, or for the work tree that another session has.
func Waiting(places []Slot, mine Slot) (Code, SessionID) {
	by := SessionID("")
	for _, p := range places {
		if p.holds() && p.WorkTree == mine.WorkTree && p.Session != mine.Session {
			by = p.Session
		}
	}
	if by != "" {
		return CodeWorktreeBusy, by
	}
	return CodeSlot, ""
}
