package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"holdfast/internal/ident"
	"holdfast/internal/store"
	"holdfast/session"
)

// takenOver is what became of a takeover.
type takenOver struct {
	SessionID session.SessionID   `json:"sessionId"`
	Ended     int                 `json:"ended"` // process that was ended; 0 for one on another machine
	Sessions  []session.SessionID `json:"sessions"`
	Commands  []commandView       `json:"commands"` // go on under their supervisors
	Executors int                 `json:"executors"`
}

func sessionsTakeover() *cobra.Command {
	var sure, elsewhere bool
	cmd := &cobra.Command{Use: "takeover SESSION", Short: "End the process that has a session, so that another goes on with it", Args: takes(1, "the id of a session"),
		Long: "End the process that executes a session, which may be suspended or stuck, wait until it is provably gone, and let another process go on.\n" +
			"It is asked to end in order first (TERM, and it is continued), and killed after three seconds. Its commands are left running and are\n" +
			"found again. When it has more than this session, they are listed, and it needs --yes.\n\n" +
			"A dead process needs none of this: its work goes on by itself. One on another machine cannot be ended from here: make sure yourself\n" +
			"that it does not run there, then say --from-other-host. Calls that were under way there have an unknown outcome from then on."}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return takeOver(cmd, args[0], sure, elsewhere)
	}
	cmd.Flags().BoolVar(&sure, "yes", false, "end it with everything it has")
	cmd.Flags().BoolVar(&elsewhere, "from-other-host", false, "the process on another machine does not run any more: move its sessions here")
	jsonFlag(cmd)
	return cmd
}

// takeOver looks and ends as a reader: the process that is to be ended may hold the store's gate. Only then it writes.
func takeOver(cmd *cobra.Command, typed string, sure, elsewhere bool) error {
	var id session.SessionID
	var t takeover
	var commands []commandView
	err := reading(cmd, func(ctx context.Context, c *cli) error {
		full, err := c.id(ctx, store.RecordSession, typed)
		if err != nil {
			return err
		}
		id = session.SessionID(full)
		if t, err = planTakeover(ctx, c.home, c.st, id, ""); err != nil {
			return err
		}
		if elsewhere {
			return t.mayMove(cmd, sure)
		}
		if err := t.mayEnd(); err != nil {
			return err
		}
		if err := t.confirm(cmd, id, sure); err != nil {
			return err
		}
		for _, h := range t.holdings {
			more, err := c.commands(ctx, h.Session)
			if err != nil {
				return err
			}
			commands = append(commands, more...)
		}
		return t.end(ctx)
	})
	if err != nil {
		return plainTakeover(err)
	}
	return writing(cmd, func(ctx context.Context, c *cli) error {
		out := takenOver{SessionID: id, Ended: t.row.PID, Sessions: []session.SessionID{}, Commands: append([]commandView{}, commands...)}
		for _, h := range t.holdings {
			out.Sessions = append(out.Sessions, h.Session)
		}
		if elsewhere {
			out.Ended = 0
			if out.Sessions, err = c.node.engine.MoveHere(ctx, t.row.ID); err != nil {
				return err
			}
		} else if err := c.node.adopt(ctx, t.row.ID); err != nil {
			return err
		}
		alive, err := executors(ctx, c.home, c.db)
		if err != nil {
			return err
		}
		out.Executors = len(alive)
		return c.show(out, out.print)
	})
}

func plainTakeover(err error) error {
	if why := refusedTakeover(err); why != "" && !errors.Is(err, ident.ErrGone) {
		return errors.New(strings.ToLower(why[:1]) + strings.TrimSuffix(why[1:], "."))
	}
	return err
}

// confirm asks a person on a terminal; elsewhere --yes is needed. One session alone is what was named.
func (t takeover) confirm(cmd *cobra.Command, id session.SessionID, sure bool) error {
	errs := cmd.ErrOrStderr()
	_, _ = fmt.Fprintln(errs, "holdfast: ending "+strings.Join(t.says(), "\n"))
	if sure || !t.many(id) {
		return nil
	}
	return asksAPerson(cmd, "it has more than this session; say --yes to end it all the same")
}

// mayMove refuses to move what is not elsewhere, and needs a person's word: nothing here can find out whether it runs there.
func (t takeover) mayMove(cmd *cobra.Command, sure bool) error {
	if t.now.Life != session.LifeElsewhere {
		return fmt.Errorf("%w; say it without --from-other-host", session.ErrOwnerLocal)
	}
	_, _ = fmt.Fprintln(cmd.ErrOrStderr(), "holdfast: moving here the sessions of "+strings.Join(t.says(), "\n"))
	if sure || !t.many("") || len(t.holdings) == 1 {
		return nil
	}
	return asksAPerson(cmd, "it had more than this session; say --yes to move them all")
}

// asksAPerson asks on a terminal and refuses elsewhere.
func asksAPerson(cmd *cobra.Command, otherwise string) error {
	if in, ok := cmd.InOrStdin().(*os.File); ok && isTerminal(in) {
		_, _ = fmt.Fprint(cmd.ErrOrStderr(), "Go on? [y/N] ")
		said, _ := bufio.NewReader(in).ReadString('\n') // an end of input is a no
		if s := strings.ToLower(strings.TrimSpace(said)); s == "y" || s == "yes" {
			return nil
		}
	}
	return errors.New(otherwise)
}

func (o takenOver) print(w io.Writer) {
	p := func(format string, args ...any) { _, _ = fmt.Fprintf(w, format+"\n", args...) }
	if o.Ended > 0 {
		p("ended process %d; %s free to go on elsewhere", o.Ended, plural(len(o.Sessions), "session")+" of it")
	} else {
		p("moved %s here; calls that were under way there have an unknown outcome: holdfast effects list --unknown", plural(len(o.Sessions), "session"))
	}
	for _, c := range o.Commands {
		p("still runs: process %d, %s", c.PID, line(c.Command, 200))
	}
	if o.Executors == 0 {
		p("No Holdfast process that executes is running, so nothing goes on yet. Start one: %s", startHint)
	}
}
