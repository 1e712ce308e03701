package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"holdfast/internal/proc"
	"holdfast/session"
)

// running is everything of Holdfast that runs on this machine.
type running struct {
	Processes []processView `json:"processes"`
	Commands  []commandView `json:"commands"`
}

// processView is a Holdfast process.
type processView struct {
	InstanceID session.InstanceID  `json:"instanceId"`
	Kind       string              `json:"kind"`
	PID        int                 `json:"pid"`
	Executes   bool                `json:"executes"`
	StartedAt  time.Time           `json:"startedAt"`
	Owns       []session.SessionID `json:"owns"`
}

// commandView is a command that runs under its supervisor, whether or not a Holdfast process lives.
type commandView struct {
	EffectID  session.EffectID  `json:"effectId"`
	SessionID session.SessionID `json:"sessionId"`
	Command   string            `json:"command"`
	PID       int               `json:"pid"` // 0 while it is being started
	StartedAt time.Time         `json:"startedAt"`
}

func psCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "ps", Short: "List the Holdfast processes that live and the commands that run", Args: noArgs}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return reading(cmd, func(ctx context.Context, c *cli) error {
			r := running{[]processView{}, []commandView{}}
			if c.db != nil {
				if err := c.running(ctx, &r); err != nil {
					return err
				}
			}
			return c.show(r, r.print)
		})
	}
	jsonFlag(cmd)
	return cmd
}

func (c *cli) running(ctx context.Context, r *running) error {
	all, err := processes(ctx, c.home, c.db)
	if err != nil {
		return err
	}
	for _, p := range all {
		if p.State == lives {
			r.Processes = append(r.Processes, processView{p.ID, p.Kind, p.PID, executes(p.Kind), p.StartedAt, append([]session.SessionID{}, p.Owns...)})
		}
	}
	effects, err := c.supervised(ctx, "")
	if err != nil {
		return err
	}
	for _, e := range effects {
		st, err := proc.Open(e.Dir).State()
		if err != nil {
			return fmt.Errorf("look at call %s: %w", e.ID, err)
		}
		if st.Verdict == proc.Live || st.Verdict == proc.Orphaned {
			r.Commands = append(r.Commands, commandView{e.ID, e.Session, or(e.Plan.Command, e.Plan.Title), st.Command.PID, e.DispatchedAt})
		}
	}
	return nil
}

// supervised lists the calls that may have a command running, of one session or, with "", of all.
func (c *cli) supervised(ctx context.Context, id session.SessionID) (out []session.Effect, err error) {
	err = c.st.Read(ctx, func(tx session.Tx) error {
		out = nil
		all, err := tx.Effects(session.EffectFilter{Session: id, Open: true}, time.Time{}, "", -1) // without a limit
		for _, e := range all {
			if e.State == session.EffectDispatched && e.Dir != "" {
				out = append(out, e)
			}
		}
		return err
	})
	return out, err
}

func (r running) print(w io.Writer) {
	var rows [][]string
	for _, p := range r.Processes {
		rows = append(rows, []string{fmt.Sprint(p.PID), p.Kind, clock(p.StartedAt), plural(len(p.Owns), "session")})
	}
	table(w, []string{"PID", "KIND", "SINCE", "HAS"}, rows)
	rows = nil
	for _, c := range r.Commands {
		rows = append(rows, []string{fmt.Sprint(c.PID), string(c.EffectID), string(c.SessionID), clock(c.StartedAt), line(c.Command, 100)})
	}
	table(w, []string{"PID", "EFFECT", "SESSION", "SINCE", "COMMAND"}, rows)
}
