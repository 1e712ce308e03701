package ident

import (
	"errors"
	"os"
)

// Process identifies one process for as long as the machine exists. Two are the same process if they are equal.
type Process struct {
	PID   int    `json:"pid"`
	Start uint64 `json:"start"` // when it started, in units of the system, never from a wall clock that can be set
	Boot  string `json:"boot"`
	Space string `json:"space,omitempty"` // in which the PID counts: containers on one kernel have their own
}

var (
	// ErrGone: the process has ended, or its PID now belongs to another.
	ErrGone = errors.New("the process is gone")

	// ErrOtherSpace: the process belongs to another container of this machine, where our PIDs mean nothing.
	ErrOtherSpace = errors.New("the process cannot be asked about from this PID namespace")
)

// Running tells whether exactly this process still runs. A zombie does not. False without an error is a proof (I1).
func (p Process) Running() (bool, error) {
	boot, err := BootID()
	if err != nil {
		return false, err
	}
	if p.Boot != boot || p.PID <= 0 {
		return false, nil // no process outlives its boot
	}
	if p.Space != space() {
		return false, ErrOtherSpace
	}
	now, err := Start(p.PID)
	if errors.Is(err, ErrGone) {
		return false, nil
	}
	return err == nil && now == p, err
}

// Alive tells whether this process is known to run. Who acts on its death asks Running, which tells dead from unknown.
func (p Process) Alive() bool {
	running, err := p.Running()
	return err == nil && running
}

// Self identifies this process, by its PID alone where the system says no more.
func Self() Process {
	p, err := Start(os.Getpid())
	if err != nil {
		return Process{PID: os.Getpid()}
	}
	return p
}

// below picks from all processes, by parent, the ones under a root.
func below(root int, byParent map[int][]Process) []Process {
	var all []Process
	seen := map[int]bool{root: true} // a PID reused while the list was read could close a ring
	for todo := []int{root}; len(todo) > 0; todo = todo[1:] {
		for _, p := range byParent[todo[0]] {
			if !seen[p.PID] {
				seen[p.PID] = true
				all, todo = append(all, p), append(todo, p.PID)
			}
		}
	}
	return all
}
