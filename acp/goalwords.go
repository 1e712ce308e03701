package acp

import (
	"fmt"
	"strings"

	"holdfast/goals"
)

// changedRequirements says what a confirmation or an addition has made of a goal.
func changedRequirements(p goals.UpdateParams, v goals.View) string {
	var ids []string
	for _, q := range v.Requirements {
		if q.ID == p.RequirementID || p.RequirementID == "" && q.Origin == goals.FromModel {
			ids = append(ids, q.ID)
		}
	}
	if p.Action == "add" {
		return fmt.Sprintf("Added as requirement %s. ", v.Requirements[len(v.Requirements)-1].ID)
	}
	return fmt.Sprintf("Confirmed: %s. ", strings.Join(ids, ", "))
}
