package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"holdfast/goals"
	"holdfast/internal/store"
	"holdfast/session"
)

func stopCommand() *cobra.Command {
	var all bool
	cmd := &cobra.Command{Use: "stop SESSION|GOAL… | --all", Short: "Stop work for good, with its commands",
		Long: "Stop everything in a session, or in the session of a goal: requests are cancelled, the goal is paused, questions are void, and commands\n" +
			"that run are ended. It is stored before it is acknowledged, and no restart undoes it. 'stopped' says that nothing of it runs any more;\n" +
			"'stopping' that its process has not confirmed that within two seconds. 'holdfast goals resume' goes on with a goal.",
		Args: func(_ *cobra.Command, args []string) error {
			if (len(args) == 0) != all {
				return usageError{errors.New("name sessions or goals, or say --all")}
			}
			return nil
		}}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		home, err := homeDir()
		if err != nil {
			return err
		}
		if all && neverWas(home) {
			return reading(cmd, func(_ context.Context, c *cli) error { return c.showStops([]stopView{}) })
		}
		return writing(cmd, func(ctx context.Context, c *cli) error {
			ids, err := c.toStop(ctx, args)
			if err != nil {
				return err
			}
			var failed error
			var stored []session.SessionID
			for _, id := range ids { // one that cannot be stopped keeps no other from it
				if _, err := c.node.engine.Stop(ctx, id); err != nil {
					failed = errors.Join(failed, err)
					continue
				}
				stored = append(stored, id)
			}
			stops, err := c.confirmed(ctx, stored)
			if err != nil {
				return errors.Join(failed, fmt.Errorf("the stop is stored; whether it has come to its end is not known: %w", err))
			}
			return errors.Join(failed, c.showStops(stops))
		})
	}
	cmd.Flags().BoolVar(&all, "all", false, "everything that is wanted or runs, in every session")
	jsonFlag(cmd)
	return cmd
}

// stopView is what became of a stop.
type stopView struct {
	SessionID session.SessionID `json:"sessionId"`
	GoalID    string            `json:"goalId"` // paused one, or ""
	State     string            `json:"state"`  // stopped, stopping
	PID       int               `json:"pid"`    // process that has not confirmed yet
}

func (c *cli) showStops(all []stopView) error {
	c.none(len(all), "work to stop")
	return c.show(all, func(w io.Writer) {
		for _, s := range all {
			_, _ = fmt.Fprintf(w, "%s session %s", s.State, s.SessionID)
			switch {
			case s.State == "stopped":
			case s.PID == 0:
				_, _ = fmt.Fprint(w, "; stored, but a command of it has not ended yet")
			default:
				_, _ = fmt.Fprintf(w, "; stored, but process %d has not confirmed it yet", s.PID)
			}
			if s.GoalID != "" {
				_, _ = fmt.Fprintf(w, "; its goal rests until: holdfast goals resume %s", s.GoalID)
			}
			_, _ = fmt.Fprintln(w)
		}
	})
}

// toStop resolves what was named, or finds everything that is wanted or runs.
func (c *cli) toStop(ctx context.Context, typed []string) (out []session.SessionID, err error) {
	for _, t := range typed {
		id, err := c.sessionOf(ctx, t)
		if err != nil {
			return nil, err // before anything is stopped
		}
		out = append(out, id)
	}
	if len(typed) == 0 {
		if err := c.st.Read(ctx, func(tx session.Tx) error { out, err = tx.Busy(); return err }); err != nil {
			return nil, err
		}
		effects, err := c.supervised(ctx, "")
		if err != nil {
			return nil, err
		}
		for _, e := range effects {
			out = append(out, e.Session)
		}
		backgrounds, err := c.backgrounds(ctx, "")
		if err != nil {
			return nil, err
		}
		for _, b := range backgrounds {
			out = append(out, b.Session)
		}
	}
	var unique []session.SessionID
	for _, id := range out {
		if !slices.Contains(unique, id) {
			unique = append(unique, id)
		}
	}
	return unique, nil
}

// sessionOf takes the id of a session, or of a goal.
func (c *cli) sessionOf(ctx context.Context, typed string) (session.SessionID, error) {
	id, notSession := c.id(ctx, store.RecordSession, typed)
	if notSession == nil {
		return session.SessionID(id), nil
	}
	id, err := c.id(ctx, store.RecordGoal, typed)
	if err != nil {
		return "", notSession
	}
	g, err := c.goals.Get(ctx, id, "")
	return g.SessionID, err
}

// How long a stop is waited for, and how often it is looked at.
const (
	confirmWithin = 2 * time.Second
	confirmOnce   = 400 * time.Millisecond
	confirmEvery  = 50 * time.Millisecond
)

// confirmed waits until nothing of the sessions runs any more. What has no live owner is ended here: nobody else would end its commands.
func (c *cli) confirmed(ctx context.Context, ids []session.SessionID) ([]stopView, error) {
	deadline := time.Now().Add(confirmWithin)
	for {
		out, open := []stopView{}, false
		for _, id := range ids {
			v, err := c.stopOf(ctx, id)
			if err != nil {
				return nil, err
			}
			out = append(out, v)
		}
		if err := c.endCommands(ctx, out, time.Until(deadline) < confirmWithin/2); err != nil {
			return nil, err
		}
		for _, v := range out {
			open = open || v.State != "stopped"
		}
		if !open || time.Now().After(deadline) {
			return out, nil
		}
		time.Sleep(confirmEvery)
	}
}

// stopOf says how far a stop has come. PID is set while a live owner still has something to close.
func (c *cli) stopOf(ctx context.Context, id session.SessionID) (stopView, error) {
	v := stopView{SessionID: id, State: "stopped"}
	var owner session.InstanceRow
	closing := false
	err := c.st.Read(ctx, func(tx session.Tx) error {
		s, err := tx.Session(id)
		if err != nil {
			return err
		}
		runs, err := tx.OpenRuns(id)
		if err != nil {
			return err
		}
		for _, r := range runs {
			closing = closing || r.Desired == session.DesiredCancelled || r.Desired == session.DesiredPaused && r.Phase == session.PhaseWorking
		}
		if s.Owner == "" {
			return nil
		}
		if owner, err = tx.Instance(s.Owner); session.IsNotFound(err) {
			return nil
		}
		return err
	})
	if err != nil {
		return v, err
	}
	if owner.ID != "" && closing && liveness(c.home, owner) != isDead {
		v.State, v.PID = "stopping", owner.PID
	}
	g, err := c.goals.Get(ctx, "", id)
	if err == nil && g.Status == goals.Paused {
		v.GoalID = g.GoalID
	}
	if goals.NoGoal(err) {
		err = nil
	}
	return v, err
}

// endCommands ends the commands of stopped work that has no live owner, or one that has not confirmed the stop in time, all at once. An owner that comes meanwhile does the same; the
// receipt says that the user stopped it, whoever is faster.
func (c *cli) endCommands(ctx context.Context, stops []stopView, late bool) error {
	short, cancel := context.WithTimeout(ctx, confirmOnce)
	defer cancel()
	var wg sync.WaitGroup
	errs := make([]error, len(stops))
	for i := range stops {
		if stops[i].PID == 0 {
			wg.Go(func() { stops[i].State, errs[i] = c.endCommandsOf(ctx, short, stops[i].SessionID) })
		} else if late { // its process does not respond, and confirms nothing
			wg.Go(func() {
				if err := c.node.engine.EndCommands(short, stops[i].SessionID); err != nil && short.Err() == nil {
					errs[i] = err
				}
			})
		}
	}
	wg.Wait()
	return errors.Join(errs...)
}

func (c *cli) endCommandsOf(ctx, short context.Context, id session.SessionID) (string, error) {
	if err := c.node.engine.LookAfterBackgrounds(short, id); err != nil && short.Err() == nil {
		return "", err
	}
	left, err := c.backgrounds(ctx, id)
	if err != nil {
		return "", err
	}
	for _, b := range left {
		if b.Desired == session.DesiredStopped && short.Err() != nil {
			return "stopping", nil
		}
	}
	switch err := c.node.engine.EndCommands(short, id); {
	case short.Err() != nil:
		return "stopping", nil // its supervisor goes on ending it
	case err != nil:
		return "", err
	}
	return "stopped", nil
}
