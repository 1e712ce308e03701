package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"holdfast/internal/store"
	"holdfast/session"
)

func rulesCommand() *cobra.Command {
	return group("rules", "List your standing answers, add some, revoke them",
		"Rules are what you answered with \"always\", and what you add here. A refusal wins over everything, a later question over what allows;\n"+
			"none of them answers for you while the outcome of a call is unknown.",
		rulesList(), rulesAdd(), rulesRevoke())
}

func rulesList() *cobra.Command {
	var sess string
	cmd := &cobra.Command{Use: "list", Short: "List the rules that count, oldest first", Args: noArgs}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return reading(cmd, func(ctx context.Context, c *cli) (err error) {
			of := ""
			if sess != "" {
				if of, err = c.id(ctx, store.RecordSession, sess); err != nil {
					return err
				}
			}
			all := []session.RuleView{}
			if c.db != nil {
				err = c.st.Read(ctx, func(tx session.Tx) error { all, err = session.ListRules(tx, session.SessionID(of)); return err })
			}
			if err != nil {
				return err
			}
			return c.show(all, func(w io.Writer) {
				var rows [][]string
				for _, r := range all {
					rows = append(rows, []string{string(r.RuleID), string(r.Verdict), clock(r.CreatedAt), line(r.Covers, whole)})
				}
				table(w, []string{"RULE", "VERDICT", "SINCE", "COVERS"}, rows)
			})
		})
	}
	cmd.Flags().StringVar(&sess, "session", "", "only rules that may be about this session")
	jsonFlag(cmd)
	return cmd
}

func rulesRevoke() *cobra.Command {
	cmd := &cobra.Command{Use: "revoke RULE", Short: "End a rule; what it allowed asks again", Args: takes(1, "the id of a rule")}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return writing(cmd, func(ctx context.Context, c *cli) error {
			id, err := c.id(ctx, store.RecordRule, args[0])
			if err != nil {
				return err
			}
			r, err := c.node.engine.RevokeRule(ctx, session.RuleID(id))
			if err != nil {
				return err
			}
			return c.show(session.ViewRule(r), func(w io.Writer) {
				_, _ = fmt.Fprintf(w, "revoked %s: %s %s\n", r.ID, r.Verdict, line(r.Text(), whole))
			})
		})
	}
	jsonFlag(cmd)
	return cmd
}

// written is a rule as flags say it.
type written struct{ command, prefix, edit, pattern, host, server, tool, cwd, sess string }

func rulesAdd() *cobra.Command {
	var in written
	cmd := &cobra.Command{Use: "add allow|ask|deny", Short: "Add a rule for a command, for file edits in a directory, for a host, or for a tool",
		Long: "Add a rule. It counts in the current directory, in the one that --cwd names, or in one session; --cwd '' is everywhere, which only\n" +
			"ask and deny can be. --prefix takes a simple command: a line that joins, substitutes or redirects never begins with it, and is looked\n" +
			"through for what you refuse.",
		Args: takes(1, "allow, ask or deny")}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := oneOf("the verdict", args[0], []string{"allow", "ask", "deny"}); err != nil {
			return err
		}
		r, err := in.rule(cmd.Flags().Changed("cwd"))
		if err != nil {
			return err
		}
		r.Verdict = session.RuleVerdict(args[0])
		if r.Kind == session.RuleTool {
			if err := knownTool(r.Tool, r.Verdict == session.VerdictAllow); err != nil {
				return usageError{err}
			}
		}
		return writing(cmd, func(ctx context.Context, c *cli) error {
			if in.sess != "" {
				id, err := c.id(ctx, store.RecordSession, in.sess)
				if err != nil {
					return err
				}
				r.Session = session.SessionID(id)
			}
			r, err := c.node.engine.AddRule(ctx, r)
			var re *session.RuleError
			if errors.As(err, &re) {
				return usageError{errors.New(re.Message)}
			}
			if err != nil {
				return err
			}
			return c.show(session.ViewRule(r), func(w io.Writer) { _, _ = fmt.Fprintf(w, "%s: %s %s\n", r.ID, r.Verdict, line(r.Text(), whole)) })
		})
	}
	f := cmd.Flags()
	f.StringVar(&in.command, "command", "", "exactly this command line")
	f.StringVar(&in.prefix, "prefix", "", "commands that begin with these words")
	f.StringVar(&in.edit, "edit", "", "file edits in this directory and below")
	f.StringVar(&in.pattern, "path", "", "file edits of files that this pattern names, such as 'src/**/*.go'")
	f.StringVar(&in.host, "host", "", "fetches from this host, or from every one below a domain as '*.example.org'")
	f.StringVar(&in.server, "server", "", "every tool of this MCP server, or one of them as SERVER/TOOL")
	f.StringVar(&in.tool, "tool", "", "every call of this tool; a built-in one cannot be allowed so")
	f.StringVar(&in.cwd, "cwd", ".", "sessions of this directory")
	f.StringVar(&in.sess, "session", "", "this session only")
	jsonFlag(cmd)
	return cmd
}

// rule is what the flags describe.
func (in written) rule(cwdGiven bool) (r session.Rule, err error) {
	given := 0
	for _, s := range []string{in.command, in.prefix, in.edit, in.pattern, in.host, in.server, in.tool} {
		if strings.TrimSpace(s) != "" {
			given++
		}
	}
	if given != 1 {
		return r, usageError{errors.New("say what it covers: one of --command, --prefix, --edit, --path, --host, --server and --tool")}
	}
	switch {
	case in.command != "":
		r = session.Rule{Kind: session.RuleCommand, Tool: "shell", Value: strings.TrimSpace(in.command)}
	case in.prefix != "":
		var ok bool
		if r, ok = session.PrefixRule(in.prefix); !ok {
			return r, usageError{errors.New("--prefix takes the plain first words of one command; use --command for a whole line")}
		}
		r.Tool = "shell"
	case in.edit != "":
		dir, err := directory(in.edit)
		if err == nil {
			dir, err = filepath.EvalSymlinks(dir)
		}
		if err != nil {
			return r, err
		}
		r = session.Rule{Kind: session.RuleEdit, Value: dir}
	case in.pattern != "":
		if !session.ValidPattern(in.pattern) {
			return r, usageError{fmt.Errorf("--path: %q is no pattern", in.pattern)}
		}
		if st, err := os.Stat(in.pattern); err == nil && st.IsDir() {
			return r, usageError{fmt.Errorf("--path: %s is a directory; say --edit %s, or --path '%s/**'", in.pattern, in.pattern, strings.TrimSuffix(in.pattern, "/"))}
		}
		r = session.Rule{Kind: session.RuleGlob, Value: in.pattern}
	case in.host != "":
		var ok bool
		if r, ok = session.HostRule(in.host); !ok {
			return r, usageError{fmt.Errorf("--host: %q is no host; give its name in ASCII, or *. and a domain", in.host)}
		}
	case in.server != "":
		r = session.Rule{Kind: session.RuleServer, Value: in.server}
	default:
		r = session.Rule{Kind: session.RuleTool, Tool: in.tool}
	}
	switch {
	case in.sess != "" && cwdGiven:
		return r, usageError{errors.New("a rule counts in a session or in a directory: --session or --cwd, not both")}
	case in.sess != "" || in.cwd == "":
		return r, nil
	}
	r.Cwd, err = directory(in.cwd)
	return r, err
}
