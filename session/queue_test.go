package session

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

// everyLine lists every queue of up to so many sessions: each holds a slot, waits, or waits and keeps its tree; in no tree or in the
// same; served long ago or lately.
func everyLine(sessions int, visit func([]Slot)) (n int) {
	kinds := []Slot{{State: SlotWorking}, {State: SlotWaiting}, {State: SlotWaiting, Keeps: true}}
	var grow func([]Slot)
	grow = func(line []Slot) {
		n++
		visit(line)
		if len(line) == sessions {
			return
		}
		for _, p := range kinds {
			for _, tree := range []string{"", "x"} {
				for served := range 2 {
					q := p
					q.Session, q.WorkTree = SessionID(fmt.Sprint(len(line))), tree
					q.Served = time.Unix(int64(served), 0)
					grow(append(slices.Clone(line), q))
				}
			}
		}
	}
	grow(nil)
	return n
}

func never(Slot) bool { return false }

func TestNext_EveryLine(t *testing.T) {
	cases := 0
	lines := everyLine(4, func(line []Slot) {
		for working := 1; working <= 3; working++ {
			for late := range len(line) + 1 {
				isLate := func(p Slot) bool { return late < len(line) && p.Session == line[late].Session }
				checkNext(t, working, line, isLate)
				cases++
			}
		}
	})
	t.Logf("%d lines, %d cases", lines, cases)
}

// checkNext holds one answer to what every answer promises.
func checkNext(t *testing.T, working int, line []Slot, late func(Slot) bool) {
	next := Next(working, line, late)
	fail := func(what string) { t.Fatalf("%s: %d slots, line %+v, next %+v", what, working, line, next) }
	busy, punctual := 0, 0
	holder := map[string]SessionID{}
	for _, p := range line {
		if p.State == SlotWorking {
			busy++
		}
		if p.holds() {
			holder[p.WorkTree] = p.Session
		}
	}
	taken := map[SessionID]bool{}
	for _, p := range next {
		taken[p.Session] = true
		if p.State != SlotWaiting {
			fail("who works is next")
		}
		if by, held := holder[p.WorkTree]; held && by != p.Session && p.WorkTree != "" {
			fail("two would write in one tree")
		}
		if !late(p) {
			punctual++
			holder[p.WorkTree] = p.Session
		}
	}
	if busy+punctual > working && punctual > 0 {
		fail("more would work than may")
	}
	for _, p := range line { // nobody is left out without a reason
		by, held := holder[p.WorkTree]
		if p.State == SlotWaiting && !taken[p.Session] && busy+punctual < working && (p.WorkTree == "" || !held || by == p.Session) {
			fail("somebody who may go on is not next")
		}
	}
	for _, p := range next { // nobody goes before who was served less recently and could go on
		for _, q := range line {
			if q.State == SlotWaiting && !taken[q.Session] && q.WorkTree == "" && q.Served.Before(p.Served) {
				fail("it goes before one that was served less recently")
			}
		}
	}
}

// By turns nobody starves: in any line each waiting session works after at most as many turns as there are sessions.
func TestNext_NobodyStarves(t *testing.T) {
	everyLine(3, func(line []Slot) {
		line = slices.Clone(line)
		clock := time.Unix(10, 0)
		worked := map[SessionID]bool{}
		for range 3 * len(line) {
			for i, p := range line { // a turn ends: a goal that goes on keeps its tree
				if p.State == SlotWorking {
					worked[p.Session] = true
					line[i].State, line[i].Keeps = SlotWaiting, false
				}
			}
			for _, p := range Next(1, line, never) {
				i := slices.IndexFunc(line, func(q Slot) bool { return q.Session == p.Session })
				clock = clock.Add(time.Second)
				line[i].State, line[i].Keeps, line[i].Served = SlotWorking, false, clock
			}
		}
		for _, p := range line {
			if !worked[p.Session] && len(Next(1, line, never)) > 0 && !keptFromIt(line, p) {
				t.Fatalf("session %s never works in %+v", p.Session, line)
			}
		}
	})
}

// keptFromIt tells whether another keeps the tree for good.
func keptFromIt(line []Slot, p Slot) bool {
	return slices.ContainsFunc(line, func(q Slot) bool { return q.Keeps && q.WorkTree == p.WorkTree && q.Session != p.Session })
}
