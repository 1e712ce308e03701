package server

import (
	"fmt"
	"slices"
)

// Authority is what a client of this server may do. It changes what a call does, never which tools are listed (I3).
type Authority string

const (
	AuthorityRead  Authority = "read"  // look
	AuthorityGoals Authority = "goals" // hand over and steer work that asks before it changes anything; the default
	AuthorityFull  Authority = "full"  // also what is a person's word: answers, settled outcomes, waivers, work that does not ask
)

var authorities = []Authority{AuthorityRead, AuthorityGoals, AuthorityFull}

// ParseAuthority reads a setting; "" is the default.
func ParseAuthority(s string) (Authority, error) {
	if s == "" {
		return AuthorityGoals, nil
	}
	if a := Authority(s); slices.Contains(authorities, a) {
		return a, nil
	}
	return "", fmt.Errorf("authority %q is none of read, goals, full", s)
}

func (a Authority) allows(needed Authority) bool {
	return slices.Index(authorities, a) >= slices.Index(authorities, needed)
}
