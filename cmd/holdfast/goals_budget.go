package main

import (
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"holdfast/goals"
)

// goalsBudget changes what a goal may use.
func goalsBudget() *cobra.Command {
	p := goals.UpdateParams{Action: "budget"}
	cmd := &cobra.Command{Use: "budget GOAL LIMITS", Short: "Limit what a goal may use, or raise the limits; one that used them up goes on",
		Long: "Limit what a goal may use in all, by money, tokens and time in which it works: holdfast goals budget GOAL \"2.50 USD, 500000 tokens, 2h\".\n" +
			"The new limits take the place of all old ones; none is unlimited. What was used stays counted. A goal that had used its\n" +
			"budget up goes on.",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) < 2 {
				return usageError{errors.New("it takes the id of a goal and its limits, such as \"2.50 USD, 500000 tokens, 2h\", or none")}
			}
			return nil
		}}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		budget, err := goals.ParseBudget(strings.Join(args[1:], " "))
		if err != nil {
			return goalError(err)
		}
		p.Budget = &budget
		return updateGoal(cmd, args[0], p)
	}
	expect(cmd, &p.Expected)
	return cmd
}
