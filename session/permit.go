package session

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// permit asks the policy and, when it says so, the user. It returns the answered approval to consume (a zero one when none was
// needed), or nil when the call was settled as refused.
func (c *call) permit(ctx context.Context) (*Approval, error) {
	for {
		if err := c.t.lookAgain(ctx); err != nil {
			return nil, err
		}
		j, err := c.judge(ctx)
		if err != nil {
			return nil, err
		}
		switch j.ruling {
		case Allow:
			return c.confined(ctx, j, Approval{})
		case Refuse:
			_, why, _ := strings.Cut(j.rule, " ")
			return nil, c.refuse(ctx, "Not allowed: "+why+j.about()+".", Approval{})
		}
		if name := c.missing(ctx); name != "" {
			return nil, MissingServer(name) // nobody is asked about what cannot be done
		}
		p, err := c.ask(ctx, j)
		if err != nil {
			return nil, err
		}
		if p, err = c.await(ctx, p); err != nil {
			return nil, err
		}
		if p.State == ApprovalVoid {
			continue // taken back while the work is still wanted: judge anew
		}
		switch p.Option {
		case OptionAllow, OptionAllowAlways:
			c.effect.Plan.Permission = j.why() + "; answered " + p.Option
			return c.confined(ctx, j, p)
		case OptionHappened, OptionNotHappened:
			if err := c.settleByPerson(ctx, p); err != nil {
				return nil, err
			}
		default:
			return nil, c.reject(ctx, p)
		}
	}
}

// confined is the answer to use up once it is settled how the call runs; nil when it may not run so.
func (c *call) confined(ctx context.Context, j judgement, p Approval) (*Approval, error) {
	if err := c.confine(j, p.ID != ""); err != nil {
		return nil, c.refuse(ctx, "Not started: every command is to be confined, and "+err.Error()+".", p)
	}
	return &p, nil
}

// missing names the external server that the call needs and only a client can bring back.
func (c *call) missing(ctx context.Context) string {
	if _, external := c.tool.(Preparer); !external || c.t.e.Toolbox == nil {
		return ""
	}
	return c.t.e.Toolbox.Missing(ctx, c.t.sess, c.effect.Tool)
}

// judgement is what the policy says of a call.
type judgement struct {
	ruling  Ruling
	rule    string
	by      RuleID
	unknown []EffectID
	// standing is what the rules say, from is where the rule that speaks is written, and part is what in the command decided.
	standing   Standing
	from, part string
}

// why is the judgement as the journal keeps it.
func (j judgement) why() string {
	out := j.rule
	switch {
	case j.by != "" && j.from != "":
		out += " (" + string(j.by) + ", " + j.from + ")"
	case j.by != "" || j.from != "":
		out += " (" + string(j.by) + j.from + ")"
	}
	return out + j.about()
}

// about names the part of the command that decided.
func (j judgement) about() string {
	if j.part == "" {
		return ""
	}
	return ": " + oneLine(j.part)
}

// judge puts the facts of the call before the policy.
func (c *call) judge(ctx context.Context) (j judgement, err error) {
	c.book = c.t.e.rulebook(c.t.sess)
	err = c.t.e.Store.Read(ctx, func(tx Tx) (err error) { j, err = c.judgeIn(tx); return err })
	if err != nil {
		// What cannot be read cannot be allowed.
		return judgement{ruling: Refuse}, fmt.Errorf("read what decides about a call: %w", err)
	}
	c.effect.Plan.Permission = j.why()
	return j, nil
}

func (c *call) judgeIn(tx Tx) (j judgement, err error) {
	s, err := tx.Session(c.t.a.id)
	if err != nil {
		return j, err
	}
	c.t.sess = s // the mode may have changed
	if j.unknown, err = UnknownOf(tx, c.t.a.id); err != nil {
		return j, err
	}
	rules, err := tx.Rules()
	if err != nil {
		return j, err
	}
	run, err := tx.Run(c.t.run.ID)
	if err != nil {
		return j, err
	}
	if old, err := c.t.outdated(tx, run); err != nil || old {
		if err == nil {
			err = errRedefined
		}
		return j, err
	}
	grants, err := c.t.e.Hooks.Grants(tx, run)
	if err != nil {
		return j, err
	}
	if s.Mode == ModeAuto && c.effect.Plan.Command != "" && !c.wall.looked {
		return j, errRedefined // the mode was set meanwhile: whether it can be confined was not looked at
	}
	written, err := c.book.rules(tx)
	if err != nil {
		return j, err
	}
	rules = append(append(rules, written...), grants...)
	subject := subjectOf(c.effect, s, c.tool.Kind())
	j.standing, j.by = Stand(rules, subject)
	j.ruling, j.rule = Permit(PolicyInput{Mode: s.Mode, Class: c.effect.Class, Kind: c.tool.Kind(), Place: c.effect.Plan.Place, Unknown: len(j.unknown) > 0,
		Reviewer: c.t.setup.Reviewer, FromCode: c.item.Body.Tool.ByCode, Standing: j.standing, Reach: c.effect.Plan.Reach, Wall: c.wall.by != nil})
	j.explain(rules, subject, c.effect.Plan, c.wall.why)
	return j, nil
}

// ruledOut tells whether a rule of the user stands against the tool as a whole: then a reader is judged, too. Readers share one look at the
// rules until something else than a reader is done.
func (c *call) ruledOut(ctx context.Context) (bool, error) {
	if c.t.against == nil {
		book := c.t.e.rulebook(c.t.sess)
		against := map[string]bool{}
		err := c.t.e.Store.Read(ctx, func(tx Tx) error {
			rules, err := tx.Rules()
			if err != nil {
				return err
			}
			written, err := book.rules(tx)
			for _, r := range append(rules, written...) {
				if r.Kind == RuleTool && r.Verdict != VerdictAllow {
					against[r.Tool] = true
				}
			}
			return err
		})
		if err != nil {
			return false, fmt.Errorf("read the rules: %w", err)
		}
		c.t.against = against
	}
	return c.t.against[c.effect.Tool], nil
}

// holds tells whether what was decided about the call is still so, in the transaction that dispatches it: a rule may have been made or
// revoked meanwhile, the goal revised, the mode changed, another outcome lost.
func (c *call) holds(tx Tx, approval Approval) error {
	j, err := c.judgeIn(tx)
	switch {
	case err != nil:
		return err
	case approval.ID == "" && j.ruling != Allow, j.ruling == Refuse:
		return errRedefined
	case approval.ID == "" && c.needsWall(j) && c.effect.Plan.Confined == nil:
		return errRedefined
	case approval.ID != "" && Binding(c.effect, c.t.sess, j.unknown) != approval.Binding:
		return errRedefined
	}
	return nil
}

// explain says which part of a command decided, and where the rule that did is written.
func (j *judgement) explain(rules []Rule, b Subject, p Plan, unconfined string) {
	switch {
	case j.standing != StandingNone && strings.Contains(j.rule, "rule of the user"):
		if i := slices.IndexFunc(rules, func(r Rule) bool { return r.ID == j.by && r.Goal == "" }); i >= 0 {
			j.from, j.part = rules[i].From(), rules[i].decides(b)
		}
	case !strings.Contains(j.rule, "auto mode"):
	case p.Reach == ReachWorks && j.ruling == Question:
		j.part = unconfined
	default:
		j.part = p.Decides
	}
	if j.standing == StandingNone || !strings.Contains(j.rule, "rule of the user") {
		j.by = ""
	}
}

// UnknownOf lists the effects of a conversation whose outcome is unknown.
func UnknownOf(tx Tx, id SessionID) ([]EffectID, error) {
	open, err := tx.OpenEffects(id)
	var out []EffectID
	for _, ef := range open {
		if ef.Fact == FactUnknown {
			out = append(out, ef.ID)
		}
	}
	return out, err
}

// ask stores the question, or finds the one that stands: a question is raised once, however often the process dies.
func (c *call) ask(ctx context.Context, j judgement) (Approval, error) {
	unknown := j.unknown
	p := Approval{ID: ApprovalID(c.t.e.NewID()), Session: c.t.a.id, Run: c.t.run.ID, Effect: c.effect.ID, Unknown: unknown,
		Binding: Binding(c.effect, c.t.sess, unknown), State: ApprovalPending, AskedAt: c.t.e.Now()}
	p.Question, p.Choices = c.effect.Plan.Question, c.effect.Plan.Choices
	if r, ok := Always(subjectOf(c.effect, c.t.sess, c.tool.Kind())); ok && j.standing != StandingDoubt && c.t.e.Mask.Text(r.Value) == r.Value {
		// a secret is not stored, so no rule can be about one; and no answer for ever goes round a refusal
		p.Always = r.Offer()
	}
	var open []Approval
	if err := c.t.e.Store.Read(ctx, func(tx Tx) (err error) { open, err = tx.OpenApprovals(c.t.a.id); return err }); err != nil {
		return p, fmt.Errorf("look for the question: %w", err)
	}
	i := slices.IndexFunc(open, func(o Approval) bool { return o.Effect == c.effect.ID })
	if i >= 0 && open[i].Binding == p.Binding {
		return open[i], nil
	}
	err := c.t.commit(ctx, "approval.raised", func(tx Tx) error {
		if i >= 0 {
			old := open[i]
			old.State = ApprovalVoid // what it asked about is not what would happen now
			if err := tx.UpdateApproval(old, c.t.e.Now()); err != nil {
				return err
			}
		}
		if err := tx.UpdateEffect(c.effect); err != nil {
			return err
		}
		if err := tx.UpdateItem(c.item, c.t.e.Now()); err != nil {
			return err
		}
		return tx.InsertApproval(p)
	})
	return p, err
}

// withdraw takes back a question about a call that will not happen any more.
func (c *call) withdraw(tx Tx) error {
	open, err := tx.OpenApprovals(c.t.a.id)
	if err != nil {
		return err
	}
	for _, p := range open {
		if p.Effect == c.effect.ID {
			p.State = ApprovalVoid
			if err := tx.UpdateApproval(p, c.t.e.Now()); err != nil {
				return err
			}
		}
	}
	return nil
}

// await blocks until the question is answered, the work is stopped, or user input goes first.
func (c *call) await(ctx context.Context, p Approval) (Approval, error) {
	for {
		var now Approval
		var run Run
		err := c.t.e.Store.Read(ctx, func(tx Tx) (err error) {
			if now, err = tx.Approval(p.ID); err != nil {
				return err
			}
			run, err = tx.Run(c.t.run.ID)
			return err
		})
		switch {
		case err != nil && ctx.Err() != nil:
			return now, context.Cause(ctx)
		case err != nil:
			return p, fmt.Errorf("wait for an answer: %w", err)
		case run.Desired != DesiredRun:
			return now, ErrStopped
		case now.State == ApprovalAnswered, now.State == ApprovalVoid:
			return now, nil
		case now.State == ApprovalConsumed:
			return now, fmt.Errorf("question %s is %s: %w", p.ID, now.State, ErrStale)
		case c.t.slot: // nobody is here to ask: a wait for a person holds no slot, and the answer goes on with the call
			return now, &WaitError{Code: CodeApproval, Message: Diagnostics[CodeApproval].Sentence}
		}
		if c.t.yield.Load() {
			return now, errYield
		}
		if c.t.handing.Load() != nil {
			return now, errHand
		}
		c.t.a.rests.Store(true)
		select {
		case <-c.t.nudge:
			c.t.a.rests.Store(false)
		case <-ctx.Done():
			c.t.a.rests.Store(false)
			return now, context.Cause(ctx)
		}
	}
}

// reject settles the call as refused by the user.
func (c *call) reject(ctx context.Context, p Approval) error {
	out := Output{Text: "The user refused this call. It did not run.", IsError: true}
	f := Finding{Fact: FactNotStarted, By: SettledByPerson, Output: &out}
	return c.settle(ctx, "approval.rejected", f, func(tx Tx, _ *Finding) error { return consume(tx, p.ID, c.t.e.Now()) })
}

func consume(tx Tx, id ApprovalID, now time.Time) error {
	p, err := tx.Approval(id)
	if err != nil {
		return err
	}
	if p.State != ApprovalAnswered {
		return fmt.Errorf("question %s is %s: %w", id, p.State, ErrStale)
	}
	p.State = ApprovalConsumed
	return tx.UpdateApproval(p, now)
}

// settleByPerson takes the user's word for the first of the unknown effects that the question named; the next question names the others.
// Nothing runs because of it.
func (c *call) settleByPerson(ctx context.Context, p Approval) error {
	return c.t.commit(ctx, "effect.settled_by_person", func(tx Tx) error {
		if err := consume(tx, p.ID, c.t.e.Now()); err != nil {
			return err
		}
		return SettleByPerson(tx, p.Unknown[0], p.Option == OptionHappened, "", p.AnsweredBy, c.t.e.Now())
	})
}

// SettleByPerson settles an unknown effect by a person's word.
func SettleByPerson(tx Tx, id EffectID, happened bool, note string, by InstanceID, now time.Time) error {
	ef, err := tx.Effect(id)
	if err != nil {
		return err
	}
	if ef.State == EffectSettled {
		return nil
	}
	if ef.Fact != FactUnknown {
		return fmt.Errorf("effect %s is not unknown: %w", id, ErrStale)
	}
	f := Finding{Fact: FactNotStarted, By: SettledByPerson, Instance: by, Note: "The user says that it did not happen. " + note}
	if happened {
		f = Finding{Fact: FactCompleted, By: SettledByPerson, Instance: by, Note: "The user says that it happened; its output is lost. " + note}
	}
	return SettleFinding(tx, id, f, now)
}

// ErrAnswered: the question was taken back, or answered before in another way.
var ErrAnswered = errors.New("the question was already answered or is no longer open")

// AnsweredError is ErrAnswered with the answer that counts.
type AnsweredError struct{ Option string }

func (e *AnsweredError) Error() string { return "the question was already answered: " + e.Option }

func (e *AnsweredError) Unwrap() error { return ErrAnswered }
