package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"holdfast/goals"
	"holdfast/internal/store"
	"holdfast/session"
)

func goalsCommand() *cobra.Command {
	return group("goals", "List goals, set one, and steer them",
		"Goals go on over many turns and restarts until an independent review accepts them. A goal may be named by the last 8 or more\n"+
			"characters of its id. These commands store what you want; a process that executes acts on it: an editor's agent, or 'holdfast work'.",
		goalsList(), goalsShow(), goalsCreate(),
		goalsAction("pause", "Stop a goal until it is resumed"), goalsAction("resume", "Go on with a paused or blocked goal"),
		goalsAction("end", "End a goal for good"), goalsAction("verify", "Ask for an independent review now"),
		goalsAction("retry", "Try again what a block or a wait held up"), goalsAction("redo", "Put back what a stalled turn changed, and begin it again"), goalsRevise(),
		goalsConfirm(), goalsAdd(), goalsWaive(), goalsBudget())
}

func goalsList() *cobra.Command {
	var status, sess string
	var limit int
	known := []string{"active", "paused", "blocked", "budget_exhausted", "achieved", "cancelled"}
	cmd := &cobra.Command{Use: "list", Short: "List the goals of every session, or all of one, newest first", Args: noArgs}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if status != "" {
			if err := oneOf("--status", status, known); err != nil {
				return err
			}
		}
		return reading(cmd, func(ctx context.Context, c *cli) error {
			var id string
			var err error
			if sess != "" {
				if id, err = c.id(ctx, store.RecordSession, sess); err != nil {
					return err
				}
			}
			all, more, err := c.listGoals(ctx, session.SessionID(id), goals.Status(status), limit)
			if err != nil {
				return err
			}
			c.more(more)
			c.none(len(all), or(prefixed("goals that are ", status), "goals"))
			return c.show(all, func(w io.Writer) {
				var rows [][]string
				for _, g := range all {
					rows = append(rows, []string{g.GoalID, string(g.Status), g.Phase, or(string(g.ReasonCode), "-"), g.NextAction.Owner, line(g.Objective, 60)})
				}
				table(w, []string{"GOAL", "STATUS", "PHASE", "REASON", "NEXT", "OBJECTIVE"}, rows)
			})
		})
	}
	cmd.Flags().StringVar(&sess, "session", "", "only the goals that this session has and had")
	cmd.Flags().StringVar(&status, "status", "", "only goals that are "+strings.Join(known, ", "))
	limitFlag(cmd, &limit)
	jsonFlag(cmd)
	return cmd
}

func (c *cli) listGoals(ctx context.Context, sess session.SessionID, status goals.Status, limit int) ([]goals.View, bool, error) {
	if c.db == nil {
		return []goals.View{}, false, nil
	}
	return pages(limit, func(cursor string, n int) ([]goals.View, string, error) {
		return c.goals.List(ctx, sess, status, cursor, n)
	})
}

func oneOf(flag, given string, known []string) error {
	if slices.Contains(known, given) {
		return nil
	}
	return usageError{fmt.Errorf("%s is %q; it takes %s", flag, given, strings.Join(known, ", "))}
}

func goalsShow() *cobra.Command {
	var history bool
	cmd := &cobra.Command{Use: "show GOAL", Short: "Show a goal with its requirements", Args: takes(1, "the id of a goal")}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return reading(cmd, func(ctx context.Context, c *cli) error {
			id, err := c.id(ctx, store.RecordGoal, args[0])
			if err != nil {
				return err
			}
			get := c.goals.Get
			if history {
				get = c.goals.History
			}
			v, err := get(ctx, id, "")
			if err != nil {
				return err
			}
			return c.showGoal(v)
		})
	}
	cmd.Flags().BoolVar(&history, "history", false, "with the timeline: attempts, requests, calls")
	jsonFlag(cmd)
	return cmd
}

func (c *cli) showGoal(v goals.View) error {
	return c.show(v, func(w io.Writer) {
		p := func(format string, args ...any) { _, _ = fmt.Fprintf(w, format+"\n", args...) }
		p("goal       %s\nsession    %s\nobjective  %s", v.GoalID, v.SessionID, strings.ReplaceAll(plain(v.Objective), "\n", "\n           "))
		p("status     %s, %s (revision %d, control version %d)", v.Status, v.Phase, v.Revision, v.ControlVersion)
		if v.Reason != "" || v.ReasonCode != "" {
			p("reason     %s %s", or(string(v.ReasonCode), "-"), line(v.Reason, 400))
		}
		p("next       %s: %s", v.NextAction.Owner, or(strings.Join(v.NextAction.Allowed, ", "), "nothing"))
		unknown := ""
		if v.Usage.Unknown > 0 {
			unknown = fmt.Sprintf("; usage unknown for %s", plural(v.Usage.Unknown, "request"))
		}
		least := "at least "
		if v.ActiveSeconds.Exact {
			least = ""
		}
		p("usage      %d tokens in, %d out%s%s; active for %s%s", v.Usage.Input, v.Usage.Output,
			partsText(v.Usage.CacheRead, v.Usage.CacheWrite, v.Usage.Reasoning), unknown, least, time.Duration(v.ActiveSeconds.AtLeast)*time.Second)
		if cost := v.Usage.Money().String(); cost != "" {
			p("cost       %s", cost)
		}
		if b := v.Budget; b != nil {
			p("budget     %s; counted against it: %s", b.Budget, b.Counted())
		}
		p("turns      %d", v.Turns)
		if v.Feedback != "" {
			p("feedback   %s", strings.ReplaceAll(strings.TrimRight(plain(v.Feedback), "\n"), "\n", "\n           "))
		}
		contractLines(w, v)
		for _, g := range v.Grants {
			void := ""
			if !g.InForce {
				void = " (no longer: revision " + strconv.FormatInt(g.Revision, 10) + ")"
			}
			p("  granted  %s%s", line(g.Covers, whole), void)
		}
		for _, m := range v.History {
			p("  %s  %s", m.At.Local().Format("2006-01-02 15:04:05.000"), momentOf(m).line())
		}
	})
}

func goalsCreate() *cobra.Command {
	var p goals.CreateParams
	var cwd, mode, sess, limits string
	var commands, files, words, edits, runs []string
	cmd := &cobra.Command{Use: "create [OBJECTIVE|-]", Short: "Set a goal; it starts as soon as a process executes",
		Long: "Set a goal in a session of its own, in the current directory or the one that --cwd names. The objective is an argument, or\n" +
			"--objective, or '-' to read it from standard input. With the same --idempotency-key the same goal comes back.",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usageError{errors.New("the objective is one argument; put it in quotes")}
			}
			return nil
		}}
	cmd.RunE = func(cmd *cobra.Command, args []string) (err error) {
		if len(args) == 1 {
			if p.Objective != "" {
				return usageError{errors.New("the objective was given twice")}
			}
			p.Objective = args[0]
		}
		if p.Objective == "-" {
			if p.Objective, err = readObjective(cmd.InOrStdin()); err != nil {
				return err
			}
		}
		if strings.TrimSpace(p.Objective) == "" {
			return usageError{errors.New("say what is to be achieved: holdfast goals create \"…\", or '-' to read it from standard input")}
		}
		if sess != "" && cmd.Flags().Changed("cwd") {
			return usageError{errors.New("a goal is set in a session or in a directory: --session or --cwd, not both")}
		}
		if mode != "" {
			if err := oneOf("--mode", mode, modes()); err != nil {
				return err
			}
		}
		if limits != "" {
			if p.Budget, err = goals.ParseBudget(limits); err != nil {
				return goalError(err)
			}
		}
		p.Mode, p.Requirements, p.Grants = session.Mode(mode), required(commands, files, words), granted(edits, runs)
		if sess == "" {
			if p.Cwd, err = directory(cwd); err != nil {
				return err
			}
			if p.Cwd == "/" && !cmd.Flags().Changed("cwd") {
				return usageError{errors.New("the current directory is /, the whole disk; go to the project, or name a directory with --cwd")}
			}
		} else if mode != "" {
			return usageError{errors.New("a session has its mode; 'holdfast sessions mode' changes it")}
		}
		return writing(cmd, func(ctx context.Context, c *cli) error {
			if sess != "" {
				id, err := c.id(ctx, store.RecordSession, sess)
				if err != nil {
					return err
				}
				p.Session = session.SessionID(id)
			}
			v, err := c.goals.Create(ctx, p)
			if err != nil {
				return goalError(err)
			}
			c.stored(ctx, v.SessionID)
			return c.showGoal(v)
		})
	}
	f := cmd.Flags()
	f.StringVar(&p.Objective, "objective", "", "what is to be achieved; '-' reads it from standard input")
	f.StringVar(&cwd, "cwd", ".", "directory to work in; makes a session for the goal")
	f.StringVar(&sess, "session", "", "session to set it in, instead of a new one")
	f.StringVar(&mode, "mode", "", "mode of the new session: "+strings.Join(modes(), ", ")+" (default ask)")
	f.StringArrayVar(&commands, "require-command", nil, "a command that must exit with 0 (repeatable)")
	f.StringArrayVar(&files, "require-file", nil, "PATH that must exist, or PATH:REGEX that must match (repeatable)")
	f.StringArrayVar(&words, "require", nil, "what must hold, in words; an independent review judges it (repeatable)")
	f.StringArrayVar(&edits, "grant-edit", nil, "DIR in which its own work may edit files without asking (repeatable)")
	f.StringArrayVar(&runs, "grant-command", nil, "first words of a command that its own work may run without asking (repeatable)")
	f.StringVar(&limits, "budget", "", "what it may use in all: money, tokens, time, for example \"2.50 USD, 500000 tokens, 2h\"")
	f.StringVar(&p.IdempotencyKey, "idempotency-key", "", "the same key gives the same goal, however often it is sent")
	f.BoolVar(&p.Replace, "replace", false, "end the session's unfinished goal first")
	jsonFlag(cmd)
	return cmd
}

const maxObjective = 1 << 20

func readObjective(r io.Reader) (string, error) {
	b, err := io.ReadAll(io.LimitReader(r, maxObjective+1))
	if err != nil {
		return "", fmt.Errorf("read the objective: %w", err)
	}
	if len(b) > maxObjective {
		return "", fmt.Errorf("the objective is longer than %d bytes; put the text into a file of the project and name it", maxObjective)
	}
	return strings.TrimRight(string(b), "\n"), nil
}

func required(commands, files, words []string) (out []goals.Requirement) {
	for _, c := range commands {
		out = append(out, goals.Requirement{Kind: goals.KindCommand, Command: c})
	}
	for _, f := range files {
		path, pattern, _ := strings.Cut(f, ":")
		out = append(out, goals.Requirement{Kind: goals.KindFile, Path: path, Pattern: pattern})
	}
	for _, t := range words {
		out = append(out, goals.Requirement{Kind: goals.KindSemantic, Text: t})
	}
	return out
}

func granted(edits, commands []string) (out []goals.Grant) {
	for _, d := range edits {
		out = append(out, goals.Grant{Kind: goals.GrantEdit, Path: d})
	}
	for _, c := range commands {
		out = append(out, goals.Grant{Kind: goals.GrantCommand, Command: c})
	}
	return out
}

// directory is an existing directory as an absolute path.
func directory(dir string) (string, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("find the directory: %w", err)
	}
	st, err := os.Stat(abs)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return "", fmt.Errorf("the directory %s does not exist; create it or name another with --cwd", abs)
	case err != nil:
		return "", fmt.Errorf("the directory %s cannot be read", abs)
	case !st.IsDir():
		return "", fmt.Errorf("%s is not a directory", abs)
	}
	return abs, nil
}

// stored says what stands between a stored control and its execution.
func (c *cli) stored(ctx context.Context, id session.SessionID) {
	var s session.Session
	moves := false
	err := c.st.Read(ctx, func(tx session.Tx) (err error) {
		if s, err = tx.Session(id); err != nil {
			return err
		}
		moves, err = session.Moves(tx, id)
		return err
	})
	switch {
	case err != nil || !moves: // only a remark
	case s.Closed:
		_, _ = fmt.Fprintf(c.errs, "holdfast: stored; an editor closed session %s, so it goes on when an editor opens it again\n", id)
	default:
		warnIdle(ctx, c.errs, c.home, c.db)
	}
}

// goalError puts what a person can do in place of a member's name.
func goalError(err error) error {
	var pe *goals.ParamError
	if !errors.As(err, &pe) {
		return err
	}
	flags := map[string]string{"objective": "--objective", "reason": "--reason", "requirementId": "the requirement's id",
		"pattern": "--require-file", "path": "--require-file", "command": "--require-command", "text": "--require", "requirements": "the requirements", "budget": "the limits", "budget.costMicros": "the limit of money"}
	if strings.HasPrefix(pe.Member, "grants[") {
		flags["path"], flags["command"] = "--grant-edit", "--grant-command"
	}
	_, member, inside := strings.Cut(pe.Member, "].")
	if !inside {
		member = pe.Member
	}
	return usageError{fmt.Errorf("%s: %s", or(flags[member], pe.Member), pe.Message)}
}

func goalsAction(action, short string) *cobra.Command {
	cmd := &cobra.Command{Use: action + " GOAL", Short: short, Args: takes(1, "the id of a goal")}
	var p goals.UpdateParams
	p.Action = action
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return updateGoal(cmd, args[0], p) }
	if action == "pause" || action == "end" {
		cmd.Flags().StringVar(&p.Reason, "reason", "", "why, for the record")
	}
	expect(cmd, &p.Expected)
	return cmd
}

func expect(cmd *cobra.Command, version *int64) {
	cmd.Flags().Int64Var(version, "expect", 0, "control version that you saw; with another one nothing changes")
	jsonFlag(cmd)
}

func updateGoal(cmd *cobra.Command, typed string, p goals.UpdateParams) error {
	return writing(cmd, func(ctx context.Context, c *cli) (err error) {
		if p.Goal, err = c.id(ctx, store.RecordGoal, typed); err != nil {
			return err
		}
		v, err := c.goals.Update(ctx, p)
		if err != nil {
			return goalError(err)
		}
		if v.Status == goals.Active {
			c.stored(ctx, v.SessionID)
		}
		return c.showGoal(v)
	})
}

func goalsRevise() *cobra.Command {
	p := goals.UpdateParams{Action: "revise"}
	var commands, files, words []string
	var none bool
	cmd := &cobra.Command{Use: "revise GOAL --reason TEXT", Short: "Change the objective or the requirements; nothing accepted carries over",
		Long: "Change the objective or the requirements. Requirements that are given replace all that there were; without any, they stay.",
		Args: takes(1, "the id of a goal")}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		p.Requirements = required(commands, files, words)
		if none {
			if p.Requirements != nil {
				return usageError{errors.New("--no-requirements and a requirement contradict each other")}
			}
			p.Requirements = []goals.Requirement{}
		}
		if p.Objective == "" && p.Requirements == nil {
			return usageError{errors.New("say what changes: --objective, --require-command, --require-file, --require or --no-requirements")}
		}
		return updateGoal(cmd, args[0], p)
	}
	f := cmd.Flags()
	f.StringVar(&p.Objective, "objective", "", "the new objective")
	f.StringVar(&p.Reason, "reason", "", "why; required")
	f.StringArrayVar(&commands, "require-command", nil, "a command that must exit with 0 (repeatable)")
	f.StringArrayVar(&files, "require-file", nil, "PATH that must exist, or PATH:REGEX that must match (repeatable)")
	f.StringArrayVar(&words, "require", nil, "what must hold, in words (repeatable)")
	f.BoolVar(&none, "no-requirements", false, "nothing but the objective itself")
	expect(cmd, &p.Expected)
	return cmd
}

func goalsWaive() *cobra.Command {
	p := goals.UpdateParams{Action: "waive"}
	cmd := &cobra.Command{Use: "waive GOAL REQUIREMENT --reason TEXT", Short: "Take a requirement out of acceptance",
		Args: takes(2, "the id of a goal and the id of a requirement")}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		p.RequirementID = args[1]
		return updateGoal(cmd, args[0], p)
	}
	cmd.Flags().StringVar(&p.Reason, "reason", "", "why; required")
	expect(cmd, &p.Expected)
	return cmd
}

func modes() (out []string) {
	for _, m := range session.Modes {
		out = append(out, string(m))
	}
	return out
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return strconv.Itoa(n) + " " + what + "s"
}
