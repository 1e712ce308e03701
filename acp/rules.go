package acp

import (
	"context"
	"strings"

	"holdfast/session"
)

// rules lists the user's standing answers that may be about this session, or revokes one of them.
func (s slash) rules(ctx context.Context, b *Backend, id session.SessionID) (string, error) {
	var all []session.RuleView
	err := b.Engine.Store.Read(ctx, func(tx session.Tx) (err error) { all, err = session.ListRules(tx, id); return err })
	if err != nil {
		return "", err
	}
	words := strings.Fields(s.rest)
	switch {
	case len(words) == 0 || len(words) == 1 && words[0] == "list":
		return rulesText(all), nil
	case len(words) != 2 || words[0] != "revoke":
		return "", &invalid{"rules", "want /rules, or /rules revoke ID"}
	}
	var found []session.RuleView
	for _, r := range all {
		if strings.HasPrefix(string(r.RuleID), strings.ToLower(words[1])) {
			found = append(found, r)
		}
	}
	if len(found) != 1 {
		return "", &invalid{"rules", "the id names no one rule of this session; /rules lists them"}
	}
	r, err := b.Engine.RevokeRule(ctx, found[0].RuleID)
	return "Revoked: " + string(r.Verdict) + " " + r.Text() + ".", err
}

func rulesText(all []session.RuleView) string {
	if len(all) == 0 {
		return "No rules. Answer a question with \"always\" to make one."
	}
	out := "Rules for this session; /rules revoke ID ends one:"
	for _, r := range all {
		out += "\n- " + string(r.RuleID) + ": " + string(r.Verdict) + " " + r.Covers
	}
	return out
}
