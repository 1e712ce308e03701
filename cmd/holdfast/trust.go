package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"holdfast/internal/config"
	"holdfast/session"
)

// trustView is a trusted directory as listings show it.
type trustView struct {
	Dir    string    `json:"dir"`
	State  string    `json:"state"` // trusted, changed, unusable or none
	Digest string    `json:"digest"`
	Door   string    `json:"door"`
	At     time.Time `json:"at"`
}

func trustCommand() *cobra.Command {
	var list, revoke, yes bool
	cmd := &cobra.Command{Use: "trust [DIR]", Short: "Trust a project's own configuration, list what is trusted, take it back",
		Long: "Show what the configuration of a project (" + config.ProjectFile + ") would do, and trust it exactly as it is. Before that nothing of it counts:\n" +
			"no MCP server of it is started and no setting of it is used. A change of the file, or of a file in the project that it starts,\n" +
			"ends the trust until you give it anew. DIR is this directory unless it is given.\n\n" +
			"Without a terminal it only shows, and ends with 3; --yes trusts without a question.",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 || list && len(args) > 0 {
				return usageError{errors.New("it takes one directory at most, and none with --list")}
			}
			return nil
		}}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		dir := "."
		if len(args) == 1 {
			dir = args[0]
		}
		switch {
		case list && (revoke || yes), revoke && yes:
			return usageError{errors.New("take one of --list, --revoke and --yes")}
		case list:
			return reading(cmd, listTrusts)
		case revoke:
			return revokeTrust(cmd, dir)
		}
		return giveTrust(cmd, dir, yes)
	}
	f := cmd.Flags()
	f.BoolVar(&list, "list", false, "list the directories that are trusted")
	f.BoolVar(&revoke, "revoke", false, "end the trust in DIR")
	f.BoolVar(&yes, "yes", false, "trust it without a question")
	jsonFlag(cmd)
	return cmd
}

func listTrusts(ctx context.Context, c *cli) error {
	all := []trustView{}
	if c.db != nil {
		var trusts []session.Trust
		if err := c.st.Read(ctx, func(tx session.Tx) (err error) { trusts, err = tx.Trusts(); return err }); err != nil {
			return err
		}
		for _, t := range trusts {
			s := standing{config.ReadProject(t.Dir), t}
			all = append(all, trustView{t.Dir, s.state(), t.Digest, t.Door, t.At})
		}
	}
	c.none(len(all), "trusted projects")
	return c.show(all, func(w io.Writer) {
		var rows [][]string
		for _, t := range all {
			rows = append(rows, []string{line(t.Dir, whole), t.State, clock(t.At), t.Door, t.Digest[:12]})
		}
		table(w, []string{"DIRECTORY", "STATE", "SINCE", "GIVEN AT", "DIGEST"}, rows)
	})
}

func revokeTrust(cmd *cobra.Command, dir string) error {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	tries := []string{dir}
	if real, err := filepath.EvalSymlinks(dir); err == nil { // it need not be there any more
		tries = append(tries, real)
		if p, err := config.FindProject(real); err == nil {
			tries = append(tries, p.Dir)
		}
	}
	return writing(cmd, func(ctx context.Context, c *cli) error {
		for _, d := range tries {
			t, err := c.node.engine.RevokeTrust(ctx, d)
			if session.IsNotFound(err) {
				continue
			}
			if err != nil {
				return err
			}
			return c.show(trustView{t.Dir, "revoked", t.Digest, t.Door, t.At}, func(w io.Writer) {
				_, _ = fmt.Fprintf(w, "no longer trusted: %s\n", line(t.Dir, whole))
			})
		}
		return fmt.Errorf("%s is not trusted; 'holdfast trust --list' lists what is", line(dir, 300))
	})
}

// giveTrust shows a project and stores the trust in it, once a person has said so.
func giveTrust(cmd *cobra.Command, dir string, yes bool) error {
	var s standing
	err := reading(cmd, func(ctx context.Context, c *cli) (err error) {
		var st session.Store
		if c.db != nil {
			st = c.st
		}
		s, err = look(ctx, st, dir)
		return err
	})
	out := cmd.OutOrStdout()
	asJSON, _ := cmd.Flags().GetBool("json") // it is defined
	switch {
	case err != nil:
		return err
	case !s.Exists():
		return errors.New(strings.TrimSuffix(s.text(), "."))
	case s.Err != nil:
		return s.Err
	}
	if !asJSON {
		_, _ = fmt.Fprintln(out, s.text())
	} else if !yes || s.trusted() {
		if err := (&cli{out: out, json: true}).show(s.view(), nil); err != nil {
			return err
		}
	}
	switch {
	case s.trusted():
		return nil
	case yes:
	case asJSON || !isTerminal(os.Stdin):
		_, _ = fmt.Fprintf(cmd.ErrOrStderr(), "holdfast: nothing was trusted; run this on a terminal, or with --yes\n")
		return exitError{exitPerson}
	case !confirmed(out, os.Stdin):
		_, _ = fmt.Fprintln(out, "Nothing was trusted.")
		return exitError{exitPerson}
	}
	return writing(cmd, func(ctx context.Context, c *cli) error {
		t, err := c.node.engine.TrustProject(ctx, s.asTrust("command line")) // what was shown, not what is there by now
		if err != nil {
			return err
		}
		return c.show(trustView{t.Dir, "trusted", t.Digest, t.Door, t.At}, func(w io.Writer) {
			_, _ = fmt.Fprintf(w, "trusted: %s\n", line(t.Dir, whole))
		})
	})
}

// projectView is a project as 'trust --json' shows it.
type projectView struct {
	Dir      string   `json:"dir"`
	Path     string   `json:"path"`
	State    string   `json:"state"` // untrusted, changed, revoked or trusted
	Digest   string   `json:"digest"`
	Does     []string `json:"does"`
	Programs []string `json:"programs"` // files of the project that are part of it
}

func (s standing) view() projectView {
	return projectView{s.Dir, s.File.Path, s.state(), s.Digest, append([]string{}, s.lines()...), append([]string{}, s.Programs...)}
}

func confirmed(out io.Writer, in io.Reader) bool {
	_, _ = fmt.Fprint(out, "Trust it? [y/N] ")
	answer, _ := bufio.NewReader(in).ReadString('\n') // an end of input is a no
	answer = strings.ToLower(strings.TrimSpace(answer))
	return answer == "y" || answer == "yes"
}
