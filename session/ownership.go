package session

import (
	"fmt"
	"time"
)

// Life is what is certain about a process that has a row.
type Life string

const (
	// LifeUnclear: nothing can be told from here; it counts as alive.
	LifeUnclear Life = ""
	LifeAlive   Life = "alive"
	// LifeSilent: it lives, and gives no sign of it: suspended, or stuck. It is never taken for dead.
	LifeSilent Life = "not_responding"
	// LifeDead: it has provably ended. The next process that executes takes its work over.
	LifeDead Life = "dead"
	// LifeElsewhere: it was recorded on another machine. Locks and numbers of this one say nothing about it.
	LifeElsewhere Life = "other_host"
)

// Condition is what is known of a process at one moment.
type Condition struct {
	Life      Life
	PID       int
	Host      string    // a short name of its machine that tells nothing of it
	Since     time.Time // of a silent one: its last sign of life; of one elsewhere: when it was recorded
	Suspended bool      // the system says that it was stopped
}

// waitsForOwner tells why work does not move that belongs to an owner of this condition; CodeNone when the owner is not the reason.
func (s Condition) waitsForOwner() Code {
	switch s.Life {
	case LifeDead:
		return CodeOwnerLost
	case LifeSilent:
		return CodeOwnerSilent
	case LifeElsewhere:
		return CodeOtherHost
	}
	return CodeNone
}

// OwnerWait says why work in the hands of an owner does not move, CodeNone when that is not because of the owner.
func OwnerWait(tx Tx, owner InstanceID) (Code, string) {
	if tx.Lost(owner) {
		return CodeOwnerLost, ""
	}
	s := tx.Condition(owner)
	code := s.waitsForOwner()
	return code, s.Explain(code)
}

// Explain is the sentence of a code with the particulars of this process; "" when there are none.
func (s Condition) Explain(code Code) string {
	since := ""
	if !s.Since.IsZero() {
		since = s.Since.Local().Format("2006-01-02 15:04:05")
	}
	switch code {
	case CodeOwnerSilent:
		return silentSentence(s.PID, since, s.Suspended)
	case CodeOtherHost:
		return elsewhereSentence(s.PID, since, s.Host)
	}
	return ""
}

func silentSentence(pid int, since string, suspended bool) string {
	why := "it may be suspended or stuck"
	if suspended {
		why = "it is suspended"
	}
	return fmt.Sprintf("Process %d executes this session and has not responded since %s (%s).", pid, since, why)
}

func elsewhereSentence(pid int, since, host string) string {
	return fmt.Sprintf("The work belongs to process %d of another machine (%s), recorded there at %s. Nothing of it is executed here.", pid, host, since)
}
