package session

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

// stand makes the rule of a standing answer, in the transaction that stores the answer: both are there, or neither.
func (e *Engine) stand(tx Tx, p Approval, option string, now time.Time) error {
	verdict := map[string]RuleVerdict{OptionAllowAlways: VerdictAllow, OptionNever: VerdictDeny}[option]
	if verdict == "" {
		return nil
	}
	ef, err := tx.Effect(p.Effect)
	if err != nil {
		return err
	}
	it, err := tx.Item(ef.Item)
	if err != nil {
		return err
	}
	s, err := tx.Session(p.Session)
	if err != nil {
		return err
	}
	if it.Body.Tool == nil {
		return &RecordError{Code: it.Broken, Session: p.Session, Record: "item " + string(it.ID)}
	}
	r, ok := Always(subjectOf(ef, s, it.Body.Tool.Kind))
	if !ok || r.Offer() != p.Always {
		return fmt.Errorf("question %s no longer covers what it showed: %w", p.ID, ErrStale)
	}
	r.ID, r.Verdict, r.Approval, r.CreatedAt = RuleID(e.NewID()), verdict, p.ID, now
	if verdict != VerdictAllow {
		r.Version, r.Programs = "", ""
	}
	return tx.InsertRule(r)
}

// AddRule stores a rule that a person wrote.
func (e *Engine) AddRule(ctx context.Context, r Rule) (Rule, error) {
	r.ID, r.CreatedAt = RuleID(e.NewID()), e.Now()
	switch {
	case !slices.Contains([]RuleVerdict{VerdictAllow, VerdictAsk, VerdictDeny}, r.Verdict):
		return r, &RuleError{"verdict", "want allow, ask or deny"}
	case r.Verdict == VerdictAllow && r.Session == "" && r.Cwd == "":
		return r, &RuleError{"cwd", "what is allowed is allowed in a session or a directory, not everywhere"}
	case r.Kind != RuleTool && strings.TrimSpace(r.Value) == "":
		return r, &RuleError{"value", "say what it covers"}
	case e.Mask.Text(r.Value) != r.Value:
		return r, &RuleError{"value", "it holds a secret, which is not stored; say it in other words, such as the beginning of the command before the secret"}
	}
	err := e.Store.Commit(ctx, "rule.added", func(tx Tx) error {
		if r.Session != "" {
			if _, err := tx.Session(r.Session); err != nil {
				return err
			}
		}
		return tx.InsertRule(r)
	})
	if err != nil {
		return r, fmt.Errorf("store a rule: %w", err)
	}
	return r, nil
}

// RevokeRule ends a rule. What it allowed and was not begun asks again; revoking it twice is the same as once.
func (e *Engine) RevokeRule(ctx context.Context, id RuleID) (Rule, error) {
	var r Rule
	err := e.Store.Commit(ctx, "rule.revoked", func(tx Tx) (err error) {
		if r, err = tx.Rule(id); err != nil {
			return err
		}
		if _, err = tx.RevokeRule(id, e.Now()); err != nil {
			return err
		}
		r, err = tx.Rule(id)
		return err
	})
	if err != nil {
		return r, fmt.Errorf("revoke rule %s: %w", id, err)
	}
	return r, nil
}

// RuleView is a rule as every door shows it.
type RuleView struct {
	RuleID    RuleID      `json:"ruleId"`
	Verdict   RuleVerdict `json:"verdict"`
	Kind      RuleKind    `json:"kind"`
	SessionID SessionID   `json:"sessionId"` // "" when it counts in a directory, or everywhere
	Cwd       string      `json:"cwd"`
	Tool      string      `json:"tool"`
	Value     string      `json:"value"`
	Covers    string      `json:"covers"` // the same in words
	CreatedAt time.Time   `json:"createdAt"`
	RevokedAt *time.Time  `json:"revokedAt"`
}

// ViewRule shows a rule.
func ViewRule(r Rule) RuleView {
	value := r.Value
	if r.Kind == RulePrefix {
		value = strings.Join(r.words(), " ")
	}
	return RuleView{RuleID: r.ID, Verdict: r.Verdict, Kind: r.Kind, SessionID: r.Session, Cwd: r.Cwd, Tool: r.Tool, Value: value, Covers: r.Text(),
		CreatedAt: r.CreatedAt, RevokedAt: moment(r.RevokedAt)}
}

// ListRules lists the rules that count, oldest first; with a session only those that may be about its calls.
func ListRules(tx Tx, id SessionID) ([]RuleView, error) {
	rules, err := tx.Rules()
	if err != nil {
		return nil, err
	}
	var s Session
	if id != "" {
		if s, err = tx.Session(id); err != nil {
			return nil, err
		}
	}
	out := []RuleView{}
	for _, r := range rules {
		if id == "" || r.counts(Subject{Session: s.ID, Cwd: s.Cwd}, r.Verdict == VerdictAllow) {
			out = append(out, ViewRule(r))
		}
	}
	return out, nil
}
