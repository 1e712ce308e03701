package main

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"holdfast/goals"
	"holdfast/session"
)

// usageError is a command line that makes no sense.
type usageError struct{ error }

// noCommand says that a command has no such command below it, and which one may have been meant.
func noCommand(cmd *cobra.Command, name string) error {
	text := fmt.Sprintf("%s has no command %q", cmd.CommandPath(), line(name, 60))
	if near := cmd.SuggestionsFor(name); len(near) > 0 {
		text += "; did you mean " + strings.Join(near, " or ") + "?"
	}
	return usageError{errors.New(text)}
}

// onlyCommands is for a command that takes no arguments of its own and has commands below it.
func onlyCommands(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return noCommand(cmd, args[0])
	}
	return nil
}

// strictHelp makes asking for the help of a command that does not exist an error. The result tells what was wrong, after the run.
func strictHelp(root *cobra.Command) func() error {
	var wrong error
	root.SetHelpCommand(&cobra.Command{Use: "help [COMMAND]", Short: "Help about a command", RunE: func(cmd *cobra.Command, args []string) error {
		of, rest, err := root.Find(args)
		if err != nil || len(rest) > 0 && of.HasAvailableSubCommands() {
			return noCommand(of, rest[0])
		}
		return of.Help()
	}})
	help := root.HelpFunc()
	root.SetHelpFunc(func(cmd *cobra.Command, args []string) {
		if rest := cmd.Flags().Args(); cmd.HasAvailableSubCommands() && len(rest) > 0 {
			wrong = noCommand(cmd, rest[0])
			return
		}
		help(cmd, args)
	})
	return func() error { return wrong }
}

var oneDash = regexp.MustCompile(`unknown shorthand flag: .* in -(\S+)`)

// flagError points from a long flag with one dash to the flag.
func flagError(cmd *cobra.Command, err error) error {
	if m := oneDash.FindStringSubmatch(err.Error()); m != nil {
		if name, _, _ := strings.Cut(m[1], "="); cmd.Flags().Lookup(name) != nil {
			err = fmt.Errorf("%w; write --%s", err, name)
		}
	}
	return usageError{err}
}

// count is a flag that is a number from 0 on.
type count int

func (c *count) String() string { return strconv.Itoa(int(*c)) }

func (c *count) Type() string { return "int" }

func (c *count) Set(s string) error {
	n, err := strconv.Atoi(s)
	if err != nil || n < 0 {
		return errors.New("a number from 0 on is expected")
	}
	*c = count(n)
	return nil
}

// plainly is an error as a person should read it: without the steps inside that led to it, where it is one that we know.
func plainly(err error) error {
	var (
		refused *goals.NotAllowedError
		param   *goals.ParamError
		option  *session.OptionError
		known   *session.NotUnknownError
		said    *session.AnsweredError
		used    *session.InUseError
	)
	var cause error
	switch {
	case errors.As(err, &refused):
		cause = refused
	case errors.As(err, &param):
		cause = param
	case errors.As(err, &option):
		cause = option
	case errors.As(err, &known):
		cause = known
	case errors.As(err, &said):
		cause = said
	case errors.As(err, &used):
		cause = used
	default:
		for _, e := range []error{session.ErrAnswered, goals.ErrExists, goals.ErrVersion, goals.ErrKeyReused, session.ErrBusy, session.ErrNothingToUndo, session.ErrNoUndo} {
			if errors.Is(err, e) {
				cause = e
				break
			}
		}
	}
	if cause == nil {
		return err
	}
	text := err.Error()
	if i := strings.Index(text, cause.Error()); i >= 0 {
		text = text[i:] // what was added behind it says more about it
	}
	return errors.New(strings.Replace(text, "say replace", "pass --replace", 1))
}
