package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"holdfast/internal/store"
	"holdfast/internal/worktree"
	"holdfast/session"
)

// oneOrTwo checks for the id of a session and something that may follow it.
func oneOrTwo(what string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) != 1 && len(args) != 2 {
			return usageError{fmt.Errorf("it takes the id of a session and %s; %d arguments were given", what, len(args))}
		}
		return nil
	}
}

func sessionsDiff() *cobra.Command {
	cmd := &cobra.Command{Use: "diff SESSION [TURN]", Short: "Show what the agent changed in the last turn that changed something, or in a numbered one",
		Long: "Show what the agent's own tools and commands changed in a turn. Turns are counted from 1 over the whole session. What anybody changes\n" +
			"while a command of the agent runs counts as that command's.",
		Args: oneOrTwo("the number of a turn, or nothing")}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		number := 0
		if len(args) == 2 {
			n, err := strconv.Atoi(args[1])
			if err != nil || n < 1 {
				return usageError{fmt.Errorf("%q is not the number of a turn", args[1])}
			}
			number = n
		}
		return reading(cmd, func(ctx context.Context, c *cli) error {
			id, err := c.id(ctx, store.RecordSession, args[0])
			if err != nil {
				return err
			}
			e := session.NewEngine(session.Config{Store: c.st, Passive: true, Workspace: worktree.New(c.home), Mask: secretsOf(c.home).mask})
			v, err := e.Diff(ctx, session.SessionID(id), number)
			if err != nil {
				return err
			}
			return c.show(v, func(w io.Writer) { _, _ = fmt.Fprintln(w, plain(v.Text(0))) })
		})
	}
	jsonFlag(cmd)
	return cmd
}

func sessionsUndo() *cobra.Command {
	cmd := &cobra.Command{Use: "undo SESSION [TURN|uN]", Short: "Take back what the agent changed in a turn, or take such a step itself back",
		Long: "Take back what the agent's own tools and commands changed: in the last turn that changed something, or in a numbered one. Files that are no\n" +
			"longer as the agent left them stay as they are and are listed. The step is recorded as u1, u2, …; 'undo SESSION u1' takes it back.\n" +
			"It is refused while the session works.",
		Args: oneOrTwo("the number of a turn or the name of a step, or nothing")}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return writing(cmd, func(ctx context.Context, c *cli) error {
			typed, err := c.id(ctx, store.RecordSession, args[0])
			if err != nil {
				return err
			}
			id, what := session.SessionID(typed), ""
			if len(args) == 2 {
				what = args[1]
			}
			u, err := c.node.engine.Undo(ctx, id, what)
			if errors.Is(err, session.ErrNoTurn) || errors.Is(err, session.ErrNoUndo) {
				return usageError{err}
			}
			if err != nil {
				return err
			}
			var s session.Session
			if err := c.st.Read(ctx, func(tx session.Tx) (err error) { s, err = tx.Session(id); return err }); err != nil {
				return err
			}
			err = c.show(u.View(s.Cwd), func(w io.Writer) {
				_, _ = fmt.Fprintln(w, strings.Replace(plain(u.Report(s.Cwd)), "/undo "+u.Name(), "holdfast sessions undo "+string(s.ID)+" "+u.Name(), 1))
			})
			if err == nil && u.Number == 0 {
				err = exitError{exitFailed} // every path was left alone
			}
			return err
		})
	}
	jsonFlag(cmd)
	return cmd
}

// sessionsAgain lets work go on that stalled or died in a circle.
func sessionsAgain(use, short string, how session.Redo) *cobra.Command {
	cmd := &cobra.Command{Use: use + " SESSION", Short: short, Args: takes(1, "the id of a session")}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return writing(cmd, func(ctx context.Context, c *cli) error {
			typed, err := c.id(ctx, store.RecordSession, args[0])
			if err != nil {
				return err
			}
			id := session.SessionID(typed)
			run, err := c.node.engine.Redo(ctx, id, how)
			if err != nil {
				return err
			}
			c.stored(ctx, id)
			return c.show(map[string]any{"sessionId": id, "runId": run}, func(w io.Writer) { _, _ = fmt.Fprintf(w, "stored in session %s\n", id) })
		})
	}
	jsonFlag(cmd)
	return cmd
}
