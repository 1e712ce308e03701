package main

import (
	"context"
	"fmt"

	"holdfast/session"
)

// interrupted is a call that was in flight in a process that has died since. The next process that executes finds out what can be known of it;
// until then the records still say that it runs.
type interrupted struct {
	session.Effect
	pid int
}

func (i interrupted) String() string {
	return fmt.Sprintf("%s %s (%s) was in flight in process %d, which is dead; whether it happened is not known", i.Tool, i.ID,
		line(or(i.Plan.Title, i.Tool), 100), i.pid)
}

// interruptions lists them, of one session or, with "", of all. Commands are not among them: they have supervisors of their own.
func (c *cli) interruptions(ctx context.Context, id session.SessionID) (out []interrupted, err error) {
	if c.db == nil {
		return nil, nil
	}
	var open []session.Effect
	owners := map[session.SessionID]session.InstanceRow{}
	err = c.st.Read(ctx, func(tx session.Tx) error {
		open, err = tx.Effects(session.EffectFilter{Session: id, Open: true}, session.Cursor{}.At, "", -1) // without a limit
		for _, e := range open {
			s, err := tx.Session(e.Session)
			if err != nil {
				return err
			}
			if s.Owner == "" {
				continue
			}
			if owners[s.ID], err = tx.Instance(s.Owner); err != nil && !session.IsNotFound(err) {
				return err
			}
		}
		return err
	})
	for _, e := range open {
		row := owners[e.Session]
		if e.State == session.EffectDispatched && e.Fact != session.FactUnknown && e.Plan.Command == "" && e.Class != session.ReadOnly && row.ID != "" &&
			liveness(c.home, row) == isDead {
			out = append(out, interrupted{e, row.PID})
		}
	}
	return out, err
}
