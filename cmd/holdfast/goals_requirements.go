package main

import (
	"errors"

	"github.com/spf13/cobra"

	"holdfast/goals"
)

// goalsConfirm makes what was read out of an objective the user's own.
func goalsConfirm() *cobra.Command {
	p := goals.UpdateParams{Action: "confirm"}
	cmd := &cobra.Command{Use: "confirm GOAL [REQUIREMENT]", Short: "Make requirements that were read out of the objective binding: one, or all",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 && len(args) != 2 {
				return usageError{errors.New("it takes the id of a goal, and the id of one requirement or none for all of them")}
			}
			return nil
		}}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 2 {
			p.RequirementID = args[1]
		}
		return updateGoal(cmd, args[0], p)
	}
	expect(cmd, &p.Expected)
	return cmd
}

// goalsAdd puts requirements to those that a goal has.
func goalsAdd() *cobra.Command {
	p := goals.UpdateParams{Action: "add"}
	var commands, files, words []string
	cmd := &cobra.Command{Use: "add GOAL", Short: "Add requirements to those that a goal has", Args: takes(1, "the id of a goal")}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if p.Requirements = required(commands, files, words); p.Requirements == nil {
			return usageError{errors.New("say what else must hold: --require-command, --require-file or --require")}
		}
		return updateGoal(cmd, args[0], p)
	}
	f := cmd.Flags()
	f.StringArrayVar(&commands, "require-command", nil, "a command that must exit with 0 (repeatable)")
	f.StringArrayVar(&files, "require-file", nil, "PATH that must exist, or PATH:REGEX that must match (repeatable)")
	f.StringArrayVar(&words, "require", nil, "what must hold, in words; an independent review judges it (repeatable)")
	expect(cmd, &p.Expected)
	return cmd
}
