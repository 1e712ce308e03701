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

func sessionsSend() *cobra.Command {
	cmd := &cobra.Command{Use: "send SESSION TEXT|-", Short: "Say something in a session; it is worked on as if an editor had sent it",
		Args: takes(2, "the id of a session and a text, or '-' to read it from standard input")}
	cmd.RunE = func(cmd *cobra.Command, args []string) (err error) {
		text := args[1]
		if text == "-" {
			if text, err = readObjective(cmd.InOrStdin()); err != nil {
				return err
			}
		}
		if strings.TrimSpace(text) == "" {
			return usageError{errors.New("the text is empty")}
		}
		return writing(cmd, func(ctx context.Context, c *cli) error {
			id, err := c.id(ctx, store.RecordSession, args[0])
			if err != nil {
				return err
			}
			run, err := c.node.engine.Prompt(ctx, session.SessionID(id), session.PromptInput{Text: text})
			if err != nil {
				return err
			}
			c.stored(ctx, session.SessionID(id))
			return c.show(map[string]any{"sessionId": id, "runId": run}, func(w io.Writer) { _, _ = fmt.Fprintf(w, "stored in session %s\n", id) })
		})
	}
	jsonFlag(cmd)
	return cmd
}

func sessionsApprovals() *cobra.Command {
	cmd := &cobra.Command{Use: "approvals [SESSION]", Short: "List the questions that wait for your answer", Args: func(_ *cobra.Command, args []string) error {
		if len(args) > 1 {
			return usageError{errors.New("it takes the id of one session, or nothing for all")}
		}
		return nil
	}}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return reading(cmd, func(ctx context.Context, c *cli) (err error) {
			of := ""
			if len(args) == 1 {
				if of, err = c.id(ctx, store.RecordSession, args[0]); err != nil {
					return err
				}
			}
			all := []session.ApprovalView{}
			if c.db != nil {
				err = c.st.Read(ctx, func(tx session.Tx) error { all, err = session.ListApprovals(tx, session.SessionID(of)); return err })
			}
			if err != nil {
				return err
			}
			c.none(len(all), "open questions")
			return c.show(all, func(w io.Writer) {
				for _, a := range all {
					printApproval(w, a)
				}
			})
		})
	}
	jsonFlag(cmd)
	return cmd
}

func printApproval(w io.Writer, a session.ApprovalView) {
	p := func(format string, args ...any) { _, _ = fmt.Fprintf(w, format+"\n", args...) }
	p("question %s (%s), asked %s in session %s", a.ApprovalID, a.State, clock(a.AskedAt), a.SessionID)
	p("  %s: %s", a.Effect.Tool, line(a.Effect.Title, whole)) // it is what is approved
	if a.Question != "" {
		p("  the model asks: %s", line(a.Question, whole))
		for i, c := range a.Choices {
			p("  choice_%d: %s", i+1, line(c, whole))
		}
	}
	for _, u := range a.Unknown {
		p("  outcome unknown: %s %s: %s", u.EffectID, u.Tool, line(u.Title, whole))
	}
	if a.State == session.ApprovalPending && a.Always != "" {
		p("  always covers: %s", line(a.Always, whole))
	}
	if a.State == session.ApprovalPending {
		p("  answer: holdfast sessions answer %s %s", a.ApprovalID, strings.Join(a.Options, "|"))
	}
}

func sessionsAnswer() *cobra.Command {
	cmd := &cobra.Command{Use: "answer APPROVAL OPTION [TEXT]", Short: "Answer a question, once",
		Long: "Answer a question. 'holdfast sessions approvals' shows what is asked and the options: allow_once and reject_once; allow_always\n" +
			"and reject_always, which also make a rule of what is shown ('holdfast rules' lists and revokes them); and where the question names\n" +
			"calls whose outcome is unknown it_happened and it_did_not, which settle those calls and run nothing.\n\n" +
			"A question of the model takes choice_1, choice_2, … for what it offers, answer with your own words, or decline.",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 2 && len(args) != 3 {
				return usageError{errors.New("it takes the id of a question and an option, and with the option answer the words")}
			}
			return nil
		}}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return writing(cmd, func(ctx context.Context, c *cli) error {
			typed, err := c.id(ctx, store.RecordApproval, args[0])
			if err != nil {
				return err
			}
			id := session.ApprovalID(typed)
			if err := c.node.engine.AnswerIn(ctx, id, args[1], strings.Join(args[2:], "")); err != nil {
				var oe *session.OptionError
				if errors.As(err, &oe) {
					return usageError{oe}
				}
				var te *session.AnswerTextError
				if errors.As(err, &te) {
					return usageError{te}
				}
				return err
			}
			var v session.ApprovalView
			if err := c.st.Read(ctx, func(tx session.Tx) error {
				a, err := tx.Approval(id)
				if err != nil {
					return err
				}
				v, err = session.ViewApproval(tx, a)
				return err
			}); err != nil {
				return err
			}
			c.stored(ctx, v.SessionID)
			return c.show(v, func(w io.Writer) { _, _ = fmt.Fprintf(w, "answered %s: %s\n", v.ApprovalID, args[1]) })
		})
	}
	jsonFlag(cmd)
	return cmd
}

func sessionsMode() *cobra.Command {
	cmd := &cobra.Command{Use: "mode SESSION MODE", Short: "Say what a session may do without asking: " + strings.Join(modes(), ", "),
		Args: takes(2, "the id of a session and a mode")}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := oneOf("the mode", args[1], modes()); err != nil {
			return err
		}
		return writing(cmd, func(ctx context.Context, c *cli) error {
			typed, err := c.id(ctx, store.RecordSession, args[0])
			if err != nil {
				return err
			}
			id := session.SessionID(typed)
			if err := c.node.engine.SetMode(ctx, id, session.Mode(args[1])); err != nil {
				return err
			}
			var v session.SessionView
			if err := c.st.Read(ctx, func(tx session.Tx) error {
				s, err := tx.Session(id)
				if err != nil {
					return err
				}
				v, err = session.ViewSession(tx, s)
				return err
			}); err != nil {
				return err
			}
			return c.show(v, func(w io.Writer) { _, _ = fmt.Fprintf(w, "session %s is in mode %s\n", v.SessionID, v.Mode) })
		})
	}
	jsonFlag(cmd)
	return cmd
}
