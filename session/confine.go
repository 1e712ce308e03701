package session

import (
	"context"
	"errors"
	"fmt"
)

// Confinement is what a command is confined to. It is stored with the plan, so that whoever reads the command's result later knows how it ran.
type Confinement struct {
	Wall     string   `json:"wall"`     // the name of what confines it
	Writable []string `json:"writable"` // folders, with everything below them
	Hidden   []string `json:"hidden"`   // what cannot be read
	Network  bool     `json:"network"`  // it may use the network
	Limits   string   `json:"limits,omitempty"`
}

// ConfineWhen is which commands are confined.
type ConfineWhen string

const (
	ConfineOff     ConfineWhen = "off"
	ConfineUnasked ConfineWhen = "unasked" // those that no person was asked about and no rule of theirs allows
	ConfineAlways  ConfineWhen = "always"
)

// Confiner knows what confines commands on this system.
type Confiner interface {
	When() ConfineWhen
	// Confine says what a command in the session's directories is confined to. The error says why it cannot be.
	Confine(ctx context.Context, s Session) (Confinement, error)
}

// wall is what would confine a call, looked up before it is judged.
type wall struct {
	looked bool
	by     *Confinement
	why    string // without one
}

// lookForWall finds out whether the call can be confined, when that matters.
func (c *call) lookForWall(ctx context.Context) error {
	c.wall = wall{}
	conf := c.t.e.Confiner
	if c.effect.Plan.Command == "" || c.effect.Plan.External != nil {
		return nil
	}
	switch {
	case conf == nil || conf.When() == ConfineOff:
		c.wall = wall{looked: true, why: "confining commands is switched off"}
		return nil
	case conf.When() == ConfineUnasked && c.t.sess.Mode != ModeAuto && c.t.run.Goal == "" && !c.item.Body.Tool.ByCode:
		return nil
	}
	by, err := conf.Confine(ctx, c.t.sess)
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	c.wall.looked = true
	if err != nil {
		c.wall.why = err.Error()
		return nil
	}
	c.wall.by = &by
	return nil
}

// needsWall tells whether the judgement lets a command run only confined: nobody was asked, and no rule of a person allows it. In auto mode a
// rule is not enough: another command that nobody saw may have changed what this one obeys. What reaches outside by its nature would be of no
// use confined, and was allowed as such.
func (c *call) needsWall(j judgement) bool {
	free := j.standing == StandingAllow && (c.t.sess.Mode != ModeAuto || c.effect.Plan.Reach == ReachOutside)
	return c.wall.by != nil && (c.t.e.Confiner.When() == ConfineAlways || j.ruling == Allow && !free)
}

// errUnconfined: every command is to be confined and this one cannot be.
var errUnconfined = errors.New("it cannot be confined")

// confine says in the plan how the command runs. asked: a person allowed this very call.
func (c *call) confine(j judgement, asked bool) error {
	p := &c.effect.Plan
	always := c.t.e.Confiner != nil && c.t.e.Confiner.When() == ConfineAlways
	switch {
	case p.Command == "" || p.External != nil:
		return nil
	case always && c.wall.by == nil:
		return fmt.Errorf("%w: %s", errUnconfined, c.wall.why)
	case !always && asked, !c.needsWall(j):
		if !asked && j.standing != StandingAllow {
			p.Permission += "; not confined: " + c.wall.why
		}
		return nil
	}
	by := *c.wall.by
	if (j.standing == StandingGranted || j.standing == StandingAllow) && p.Reach == ReachNetwork {
		by.Network = true // it was allowed as a command that does nothing without
	}
	p.Confined = &by
	p.Permission += "; confined by " + by.Wall
	p.Title += " (confined)"
	c.item.Body.Tool.Title = p.Title
	return nil
}
