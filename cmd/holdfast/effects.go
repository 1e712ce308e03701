package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"holdfast/internal/store"
	"holdfast/session"
)

func effectsCommand() *cobra.Command {
	return group("effects", "List what tool calls did, and settle those whose outcome is unknown",
		"The journal of tool calls. A call whose outcome is unknown is never repeated by itself; while one stands in a session, everything but\n"+
			"reading asks first. Look at the real state, then say what happened with 'settle': it runs nothing.",
		effectsList(), effectsShow(), effectsOutput(), effectsSettle())
}

func effectsList() *cobra.Command {
	var sess string
	var unknown, open bool
	var limit int
	cmd := &cobra.Command{Use: "list", Short: "List tool calls, newest first", Args: noArgs}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return reading(cmd, func(ctx context.Context, c *cli) error {
			f := session.EffectFilter{Open: open || unknown}
			if unknown {
				f.Fact = session.FactUnknown
			}
			if sess != "" {
				id, err := c.id(ctx, store.RecordSession, sess)
				if err != nil {
					return err
				}
				f.Session = session.SessionID(id)
			}
			all, more, err := c.listEffects(ctx, f, limit)
			if err != nil {
				return err
			}
			c.more(more)
			lost, err := c.interruptions(ctx, f.Session)
			if err != nil {
				return err
			}
			for _, l := range lost {
				_, _ = fmt.Fprintf(c.errs, "holdfast: %s yet; 'holdfast work' finds out what can be known\n", l)
			}
			c.none(len(all)+len(lost), map[bool]string{true: "such calls", false: "calls"}[f != session.EffectFilter{}])
			return c.show(all, func(w io.Writer) {
				var rows [][]string
				for _, e := range all {
					rows = append(rows, []string{string(e.EffectID), string(e.State), or(string(e.Fact), "-"), exitText(e.ExitCode), e.Tool, line(e.Title, 80)})
				}
				table(w, []string{"EFFECT", "STATE", "FACT", "EXIT", "TOOL", "CALL"}, rows)
			})
		})
	}
	cmd.Flags().StringVar(&sess, "session", "", "only calls of this session")
	cmd.Flags().BoolVar(&unknown, "unknown", false, "only calls whose outcome is unknown")
	cmd.Flags().BoolVar(&open, "open", false, "only calls that are not settled")
	limitFlag(cmd, &limit)
	jsonFlag(cmd)
	return cmd
}

func (c *cli) listEffects(ctx context.Context, f session.EffectFilter, limit int) ([]session.EffectView, bool, error) {
	if c.db == nil {
		return []session.EffectView{}, false, nil
	}
	return pages(limit, func(cursor string, n int) (all []session.EffectView, next string, err error) {
		err = c.st.Read(ctx, func(tx session.Tx) error { all, next, err = session.ListEffects(tx, f, cursor, n); return err })
		return all, next, err
	})
}

func exitText(code *int) string {
	if code == nil {
		return "-"
	}
	return fmt.Sprint(*code)
}

func effectsShow() *cobra.Command {
	cmd := &cobra.Command{Use: "show EFFECT", Short: "Show what is certain about a call", Args: takes(1, "the id of a call")}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return reading(cmd, func(ctx context.Context, c *cli) error {
			id, err := c.id(ctx, store.RecordEffect, args[0])
			if err != nil {
				return err
			}
			return c.showEffect(ctx, session.EffectID(id))
		})
	}
	jsonFlag(cmd)
	return cmd
}

// effectDocument is a call with its stored result.
type effectDocument struct {
	session.EffectView
	Output  string `json:"output"` // as the model got it
	IsError bool   `json:"isError"`
}

func (c *cli) showEffect(ctx context.Context, id session.EffectID) error {
	var v effectDocument
	if err := c.st.Read(ctx, func(tx session.Tx) error {
		e, err := tx.Effect(id)
		if err != nil {
			return err
		}
		if v.EffectView, err = session.ViewEffect(tx, e); err != nil {
			return err
		}
		it, err := tx.Item(e.Item)
		if err == nil && it.Body.Tool != nil && it.Body.Tool.Output != nil {
			v.Output, v.IsError = it.Body.Tool.Output.Text, it.Body.Tool.Output.IsError
		}
		return err
	}); err != nil {
		return err
	}
	return c.show(v, func(w io.Writer) {
		p := func(format string, args ...any) { _, _ = fmt.Fprintf(w, format+"\n", args...) }
		p("call       %s\nsession    %s\ntool       %s (%s)\n           %s", v.EffectID, v.SessionID, v.Tool, v.Class, line(v.Title, whole))
		p("state      %s %s", v.State, v.Fact)
		if v.ExitCode != nil {
			p("exit code  %d", *v.ExitCode)
		}
		if v.Permission != "" {
			p("permission %s", line(v.Permission, 400))
		}
		if v.SettledBy != "" || v.Note != "" {
			p("settled by %s %s", or(string(v.SettledBy), "-"), line(v.Note, 400))
		}
		if v.Lookup != "" {
			p("           %s", lookupText(v.Lookup))
		}
		p("planned    %s", clock(v.PlannedAt))
		for _, s := range v.Settlements {
			p("found      %s %s, by %s: %s", clock(s.At), s.Fact, s.SettledBy, line(or(s.Note, "-"), 400))
		}
		for _, s := range v.Sends {
			p("sent       %s to %s %s: %s %s", clock(s.SentAt), s.Server, s.Tool, s.State, line(s.Reason, 200))
		}
		if v.CanSettle {
			p("settle     holdfast effects settle %s --happened|--did-not-happen", v.EffectID)
		}
		if v.Output != "" {
			p("%s\n%s", map[bool]string{true: "error", false: "output"}[v.IsError], strings.TrimRight(plain(v.Output), "\n"))
		}
	})
}

// lookupText says what could still tell an unknown outcome.
func lookupText(l session.Lookup) string {
	switch l {
	case session.LookupFile:
		return "the file could not be looked at; it is looked at again before anything is asked"
	case session.LookupAnswer:
		return "a late answer of the server may still tell"
	}
	return "nothing will tell it by itself: it is for you to say"
}

func effectsSettle() *cobra.Command {
	var happened, didNot bool
	var note string
	cmd := &cobra.Command{Use: "settle EFFECT --happened|--did-not-happen", Short: "Say what became of a call whose outcome is unknown; nothing runs",
		Args: takes(1, "the id of a call")}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if happened == didNot {
			return usageError{errors.New("look at the real state first, then say either --happened or --did-not-happen")}
		}
		return writing(cmd, func(ctx context.Context, c *cli) error {
			typed, err := c.id(ctx, store.RecordEffect, args[0])
			if err != nil {
				return err
			}
			id := session.EffectID(typed)
			if err := c.node.engine.Settle(ctx, id, happened, note); err != nil {
				return err
			}
			var of session.SessionID
			if err := c.st.Read(ctx, func(tx session.Tx) error {
				e, err := tx.Effect(id)
				of = e.Session
				return err
			}); err != nil {
				return err
			}
			c.stored(ctx, of)
			return c.showEffect(ctx, id)
		})
	}
	cmd.Flags().BoolVar(&happened, "happened", false, "it happened; its output is lost")
	cmd.Flags().BoolVar(&didNot, "did-not-happen", false, "it did not happen")
	cmd.Flags().StringVar(&note, "note", "", "what you saw; the model reads it")
	jsonFlag(cmd)
	return cmd
}
