package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"holdfast/goals"
	"holdfast/internal/store"
	"holdfast/session"
)

func sessionsCommand() *cobra.Command {
	return group("sessions", "List sessions, read them, and answer what they ask",
		"Sessions are the conversations of every editor on this store. A session may be named by the last 8 or more characters of its id.",
		sessionsList(), sessionsShow(), sessionsSend(), sessionsApprovals(), sessionsAnswer(), sessionsMode(), sessionsDiff(), sessionsUndo(), sessionsTakeover(), sessionsExport(), sessionsDelete(),
		sessionsAgain("redo", "Put back what stalled work changed, and begin it again", session.RedoEntry),
		sessionsAgain("retry", "Let work that waits for your word go on as things are", session.RedoKeep), sessionsRecovery(), sessionsCompact())
}

func sessionsList() *cobra.Command {
	var cwd string
	var limit int
	cmd := &cobra.Command{Use: "list", Short: "List sessions, newest first", Args: noArgs}
	cmd.RunE = func(cmd *cobra.Command, _ []string) (err error) {
		if cwd != "" {
			if cwd, err = filepath.Abs(cwd); err != nil { // it need not be there any more
				return fmt.Errorf("find the directory: %w", err)
			}
		}
		return reading(cmd, func(ctx context.Context, c *cli) error {
			all, more, err := c.listSessions(ctx, cwd, limit)
			if err != nil {
				return err
			}
			c.more(more)
			c.none(len(all), "sessions"+prefixed(" of ", cwd))
			shown, err := c.expiring(ctx, all)
			if err != nil {
				return err
			}
			c.going(shown)
			return c.show(shown, func(w io.Writer) {
				var rows [][]string
				for _, s := range shown {
					rows = append(rows, []string{string(s.SessionID), s.State, or(string(s.ReasonCode), "-"), string(s.Mode), clock(s.UpdatedAt), line(s.Title, 40),
						line(s.Cwd, 60)})
				}
				table(w, []string{"SESSION", "STATE", "REASON", "MODE", "UPDATED", "TITLE", "DIRECTORY"}, rows)
			})
		})
	}
	cmd.Flags().StringVar(&cwd, "cwd", "", "only sessions of this directory")
	limitFlag(cmd, &limit)
	jsonFlag(cmd)
	return cmd
}

func (c *cli) listSessions(ctx context.Context, cwd string, limit int) ([]session.SessionView, bool, error) {
	if c.db == nil {
		return []session.SessionView{}, false, nil
	}
	return pages(limit, func(cursor string, n int) (all []session.SessionView, next string, err error) {
		err = c.st.Read(ctx, func(tx session.Tx) error { all, next, err = session.ListSessions(tx, cwd, cursor, n); return err })
		return all, next, err
	})
}

// sessionDocument is a session with one page of what was said and done in it.
type sessionDocument struct {
	Session session.SessionView `json:"session"`
	Goal    *goals.View         `json:"goal"` // the open one, or the last; null without any
	// Commands run right now, background commands among them.
	Commands []commandView `json:"commands"`
	// Instructions are the instruction files that the next turn carries, a line each.
	Instructions []string           `json:"instructions"`
	Items        []session.ItemView `json:"items"`
	Next         int64              `json:"next"` // --after for the next page; 0 at the end

	command string // what to run for work that has stalled or died in a circle
}

func sessionsShow() *cobra.Command {
	var after int64
	var limit int
	cmd := &cobra.Command{Use: "show SESSION", Short: "Show where a session stands and what was said in it", Args: takes(1, "the id of a session")}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return reading(cmd, func(ctx context.Context, c *cli) error {
			id, err := c.id(ctx, store.RecordSession, args[0])
			if err != nil {
				return err
			}
			d, err := c.document(ctx, session.SessionID(id), after, limit)
			if err != nil {
				return err
			}
			return c.show(d, d.print)
		})
	}
	cmd.Flags().Int64Var(&after, "after", 0, "only entries after this sequence number")
	cmd.Flags().IntVar(&limit, "limit", 200, "how many entries at most")
	jsonFlag(cmd)
	return cmd
}

func (c *cli) document(ctx context.Context, id session.SessionID, after int64, limit int) (d sessionDocument, err error) {
	if limit <= 0 {
		return d, usageError{errors.New("--limit must be at least 1")}
	}
	var s session.Session
	err = c.st.Read(ctx, func(tx session.Tx) (err error) {
		if s, err = tx.Session(id); err != nil {
			return err
		}
		if d.Session, err = session.ViewSession(tx, s); err != nil {
			return err
		}
		d.Items, d.Next, err = session.ListItems(tx, id, after, limit)
		return err
	})
	if err != nil {
		return d, err
	}
	d.Instructions = append([]string{}, newProjects(c.home, c.st, nil).listing(ctx, s)...)
	if d.Commands, err = c.commands(ctx, id); err != nil {
		return d, err
	}
	g, err := c.goals.Get(ctx, "", id)
	switch {
	case err == nil:
		d.Goal = &g
	case !goals.NoGoal(err):
		return d, err
	}
	w := wait{SessionID: id, ReasonCode: d.Session.ReasonCode}
	if d.Goal != nil && !d.Goal.Status.Ended() {
		w.GoalID = d.Goal.GoalID
	}
	err = c.st.Read(ctx, func(tx session.Tx) error {
		s, err := tx.Session(id)
		if err != nil {
			return err
		}
		return w.advise(tx, s)
	})
	d.command = w.Command
	return d, err
}

func (d sessionDocument) print(w io.Writer) {
	p := func(format string, args ...any) { _, _ = fmt.Fprintf(w, format+"\n", args...) }
	s := d.Session
	p("session    %s\ntitle      %s\ndirectory  %s\nstate      %s (mode %s)", s.SessionID, line(s.Title, 100), line(strings.Join(append([]string{s.Cwd},
		s.Directories...), ", "), 400), s.State, s.Mode)
	if s.Model != "" {
		p("model      %s", line(s.Model, 200))
	}
	if s.Effort != "" {
		p("effort     %s", line(s.Effort, 60))
	}
	if s.Recovery != "" {
		p("recovery   %s", s.Recovery)
	}
	if s.ReasonCode != "" {
		p("reason     %s %s", s.ReasonCode, line(s.Reason, 400))
	}
	if s.Owner != "" {
		p("executed   by process %d", s.OwnerPID)
	}
	if s.ReasonCode == session.CodeOwnerSilent || s.ReasonCode == session.CodeOtherHost {
		p("take over  %s", takeoverOf(s))
	}
	if s.ReasonCode == session.CodeCrashLoop || s.ReasonCode == session.CodeStalled {
		p("you can    %s", d.command)
	}
	if s.UnknownEffects > 0 || s.PendingApprovals > 0 {
		p("open       %s, %s", plural(s.PendingApprovals, "question"), plural(s.UnknownEffects, "call")+" with unknown outcome")
	}
	if d.Goal != nil {
		p("goal       %s %s, %s", d.Goal.GoalID, d.Goal.Status, d.Goal.Phase)
	}
	for _, l := range d.Instructions {
		p("told       %s", line(l, 300))
	}
	for _, r := range d.Commands {
		p("runs       %s (%s, process %d, since %s): %s", or(r.Name, "a call's command"), r.State, r.PID, clock(r.StartedAt), line(r.Command, 200))
	}
	for _, it := range d.Items {
		switch {
		case it.Tool != nil:
			p("\n[%d] %s: %s (%s%s)", it.Seq, it.Tool.Name, line(it.Tool.Title, 200), it.Tool.Status, strings.TrimRight(", "+string(it.Tool.Fact), ", "))
			if it.Tool.Output != "" {
				p("%s", strings.TrimRight(plain(it.Tool.Output), "\n"))
			}
		case it.Text != "":
			p("\n[%d] %s: %s", it.Seq, it.Kind, strings.TrimRight(plain(it.Text), "\n"))
		}
	}
	if d.Next > 0 {
		p("\nMore: holdfast sessions show %s --after %d", s.SessionID, d.Next)
	}
}
