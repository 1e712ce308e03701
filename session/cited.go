package session

import (
	"fmt"
	"slices"
)

// Bookkeeping are the tools with which an agent speaks about its work. A call of them is no evidence of the work, and no progress.
var Bookkeeping = map[string]bool{"create_goal": true, "get_goal": true, "update_goal": true, "submit_review": true, "update_todo": true}

// CitedCall finds the stored call that a reference names: an effect id, or the id of a call made in one of the runs.
func CitedCall(tx Tx, ref string, runs ...RunID) (Effect, error) {
	for _, run := range runs {
		effects, err := tx.EffectsOf(run)
		if err != nil {
			return Effect{}, err
		}
		for _, ef := range slices.Backward(effects) {
			if Bookkeeping[ef.Tool] {
				continue // what the agent says about its work shows nothing of it
			}
			if string(ef.ID) == ref {
				return ef, nil
			}
			it, err := tx.Item(ef.Item)
			if err != nil {
				return Effect{}, err
			}
			if it.Body.Tool.CallID == ref {
				return ef, nil
			}
		}
	}
	return Effect{}, &ToolError{Message: fmt.Sprintf("%q names no stored call of this work.", ref)}
}

// FailedCall tells whether a call came to an end without doing what it was for. A command's exit code speaks for itself.
func FailedCall(tx Tx, ef Effect) (bool, error) {
	if ef.ExitCode != nil {
		return false, nil
	}
	it, err := tx.Item(ef.Item)
	if err != nil {
		return false, err
	}
	out := it.Body.Tool.Output
	return out != nil && out.IsError, nil
}
