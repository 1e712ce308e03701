package session

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"holdfast/internal/secret"
)

// plan stores the calls of an answer as planned, before any of them is looked at.
func (t *turn) plan(tx Tx, run Run, att Attempt, response string, calls []Call, byCode bool) error {
	for _, c := range calls {
		it := Item{ID: ItemID(t.e.NewID()), Kind: ItemTool, State: ItemOpen, Body: ItemBody{Response: response}}
		tc := &ToolCall{CallID: c.ID, Name: c.Name, Args: c.Args, Effect: EffectID(t.e.NewID()), Title: shownName(c.Name), Kind: KindOther, Status: ToolPending,
			ByCode: byCode}
		ef := Effect{ID: tc.Effect, Session: t.a.id, Run: run.ID, Attempt: att.ID, Item: it.ID, Tool: c.Name, Class: Unknown,
			ArgsDigest: ArgsDigest(c.Name, c.Args), State: EffectPlanned, PlannedAt: t.e.Now()}
		if tool := t.builtin(tc); tool != nil {
			ef.Class, ef.Version, tc.Kind = tool.Class(), tool.Version(), tool.Kind()
		}
		it.Body.Tool = tc
		if err := t.insert(tx, &it, run, att); err != nil {
			return err
		}
		if err := tx.InsertEffect(ef); err != nil {
			return err
		}
	}
	return nil
}

// find returns the tool of a call: built in, or of an external server. A review and calls of code get only what is built in.
func (t *turn) find(ctx context.Context, tc *ToolCall) Tool {
	if tool := t.builtin(tc); tool != nil || tc.ByCode || t.setup.Reviewer || t.e.Toolbox == nil {
		return tool
	}
	return t.e.Toolbox.Find(ctx, t.sess, tc.Name)
}

func (t *turn) builtin(tc *ToolCall) Tool {
	tools := t.setup.Tools
	if tc.ByCode {
		tools = t.setup.CodeTools
	}
	i := slices.IndexFunc(tools, func(tool Tool) bool { return tool.Spec().Name == tc.Name })
	if i < 0 {
		return nil
	}
	return tools[i]
}

// calls runs what the records still hold open of this run, in order: calls of the last answer, or what a lost owner left.
func (t *turn) calls(ctx context.Context) error {
	var open []Item
	effects := map[EffectID]Effect{}
	err := t.e.Store.Read(ctx, func(tx Tx) error {
		items, err := tx.OpenItems(t.a.id)
		if err != nil {
			return err
		}
		for _, it := range items {
			if it.Kind != ItemTool || it.Run != t.run.ID || it.Thread != t.setup.Thread {
				continue
			}
			ef, err := tx.Effect(it.Body.Tool.Effect)
			if err != nil {
				return err
			}
			if ef.Fact == FactUnknown {
				continue
			}
			open, effects[ef.ID] = append(open, it), ef
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("look for open calls: %w", err)
	}
	t.against = nil
	for _, it := range open {
		if err = context.Cause(ctx); err != nil {
			break
		}
		c := &call{t: t, item: it, effect: effects[it.Body.Tool.Effect]}
		leave := t.pulse.enter()
		err = c.run(ctx)
		leave()
		if err != nil {
			break
		}
	}
	if e := t.storeReads(ctx); e != nil {
		return errors.Join(err, e)
	}
	return err
}

// call takes one call from planned to settled.
type call struct {
	t      *turn
	item   Item
	effect Effect
	tool   Tool
	env    ToolEnv
	wall   wall
	book   Rulebook // what configurations said of it at the last look
}

func (c *call) run(ctx context.Context) error {
	for {
		if err := c.once(ctx); !errors.Is(err, errRedefined) {
			return err
		}
		if err := context.Cause(ctx); err != nil {
			return err
		}
	}
}

// errRedefined: the tool is no longer what was allowed; it is planned and judged anew.
var errRedefined = errors.New("the tool was redefined")

func (c *call) once(ctx context.Context) error {
	tc := c.item.Body.Tool
	if c.tool = c.t.find(ctx, tc); c.tool == nil {
		return c.refuse(ctx, fmt.Sprintf("There is no tool named %q here.", shownName(tc.Name)), Approval{})
	}
	c.env = c.t.env(c.effect.ID)
	c.env.Buffer = c.buffer()
	if c.effect.State == EffectDispatched {
		return c.reattach(ctx)
	}
	if old, err := c.outdated(ctx); err != nil || old {
		if err == nil {
			err = c.refuse(ctx, outdatedText, Approval{})
		}
		return err
	}
	plan, err := c.planned()
	if err != nil {
		return c.refuse(ctx, safeText(err), Approval{})
	}
	plan.Title = shownLine(plan.Title)
	c.effect.Plan, c.effect.Version, c.effect.Class = plan, c.tool.Version(), c.tool.Class()
	tc.Title, tc.Paths, tc.Line, tc.Files, tc.Kind = plan.Title, plan.Paths, plan.Line, Excerpts(secret.Hide(c.t.e.Mask, plan.Files)), c.tool.Kind()
	ruled, err := c.ruledOut(ctx)
	if err != nil {
		return err
	}
	if _, asks := c.tool.(Asker); asks && !ruled {
		if err := c.t.storeReads(ctx); err != nil {
			return err
		}
		return c.askUser(ctx)
	}
	st, inStore := c.tool.(StateTool)
	asks := ruled || PolicyInput{Class: c.effect.Class, Place: plan.Place}.placeAsks()
	if c.effect.Class == ReadOnly && !inStore && !asks {
		return c.read(ctx)
	}
	c.t.against = nil // what is asked or done now takes its time, or changes something
	if err := c.t.storeReads(ctx); err != nil {
		return err
	}
	if err := c.lookForWall(ctx); err != nil {
		return err
	}
	approval := &Approval{}
	if c.effect.Class != ReadOnly || asks {
		if approval, err = c.permit(ctx); err != nil || approval == nil {
			return err
		}
	}
	if _, user := c.tool.(Asker); user {
		return c.askUser(ctx)
	}
	if inStore {
		return c.apply(ctx, st, *approval)
	}
	if c.effect.Class == ReadOnly {
		return c.readAsked(ctx, *approval)
	}
	p, ok := c.tool.(Preparer)
	if !ok {
		return c.dispatch(ctx, *approval, builtin{c})
	}
	prepared, err := p.Prepare(ctx, c.env, plan)
	var te *ToolError
	switch {
	case errors.Is(err, ErrStale):
		return errRedefined
	case errors.As(err, &te):
		return c.refuse(ctx, te.Message, *approval)
	case err != nil:
		return err
	}
	defer prepared.Done()
	return c.dispatch(ctx, *approval, prepared)
}

// planned is the tool's plan for the call, with the files that decide what it does as they are now.
func (c *call) planned() (Plan, error) {
	if err := c.carriesMask(); err != nil {
		return Plan{}, err
	}
	plan, err := c.tool.Plan(c.env, json.RawMessage(c.item.Body.Tool.Args))
	if w, ok := c.tool.(Witness); ok && err == nil {
		plan.Programs = w.Programs(c.env, plan)
	}
	return plan, err
}

// moved tells whether what the call was judged by is no longer there: a file it edits or runs has changed since.
func (c *call) moved() bool {
	if _, external := c.tool.(Preparer); external {
		return false // its own preparation looks
	}
	now, err := c.planned()
	e := c.effect
	e.Plan = now
	return err != nil || now.Reach != c.effect.Plan.Reach || Binding(e, c.t.sess, nil) != Binding(c.effect, c.t.sess, nil)
}

// builtin is a call of a tool that needs nothing prepared.
type builtin struct{ c *call }

func (builtin) Dispatching(Tx, Effect, time.Time) error { return nil }
func (builtin) Settle(Tx, time.Time) error              { return nil }
func (builtin) Done()                                   {}
func (b builtin) Run(ctx context.Context, progress func(Output)) (Output, error) {
	return b.c.tool.Run(ctx, b.c.env, b.c.effect.Plan, progress)
}

// env is what a call may depend on.
func (t *turn) env(id EffectID) ToolEnv {
	return ToolEnv{Cwd: t.sess.Cwd, Roots: t.sess.Roots, Env: t.environ, RunDir: filepath.Join(t.e.StateDir, "calls", string(id)),
		Backgrounds: t.backgrounds}
}

// refuse settles a call that never began, with the reason for the model. What was allowed is used up.
func (c *call) refuse(ctx context.Context, why string, approval Approval) error {
	if err := c.t.storeReads(ctx); err != nil {
		return err
	}
	f := Finding{Fact: FactNotStarted, By: SettledByResult, Output: &Output{Text: why, IsError: true}}
	return c.settle(ctx, "effect.refused", f, func(tx Tx, _ *Finding) error {
		if approval.ID != "" {
			return consume(tx, approval.ID, c.t.e.Now())
		}
		return c.withdraw(tx)
	})
}

// read runs a trusted reader: nothing outside changes, so one commit holds plan and result, and those of other readers around it.
func (c *call) read(ctx context.Context) error {
	if len(c.t.reads) == 0 {
		c.t.readSince = time.Now()
	}
	out, err := c.tool.Run(ctx, c.env, c.effect.Plan, c.progress)
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			return cause
		}
		out = Output{Text: safeText(err), IsError: true}
	}
	out.Text = c.t.e.Mask.Text(out.Text)
	return c.t.keepRead(ctx, finishedRead{c, out})
}

// readAsked runs a reader that the policy had to rule on. Nothing outside changes, so the commit of its result uses the answer up; what it
// read is thrown away when the call may not happen any more.
func (c *call) readAsked(ctx context.Context, approval Approval) error {
	out, err := c.tool.Run(ctx, c.env, c.effect.Plan, c.progress)
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			return cause
		}
		out = Output{Text: safeText(err), IsError: true}
	}
	out.Text = c.t.e.Mask.Text(out.Text)
	c.book = c.t.e.rulebook(c.t.sess)
	return c.settle(ctx, "effect.settled", Finding{Fact: FactCompleted, By: SettledByResult, Output: &out}, func(tx Tx, _ *Finding) error {
		if err := c.holds(tx, approval); err != nil || approval.ID == "" {
			return err
		}
		return consume(tx, approval.ID, c.t.e.Now())
	})
}

// apply runs a tool whose whole effect is in the store.
func (c *call) apply(ctx context.Context, st StateTool, approval Approval) error {
	return c.settle(ctx, "effect.settled", Finding{Fact: FactCompleted, By: SettledByResult}, func(tx Tx, f *Finding) error {
		if approval.ID != "" {
			if err := consume(tx, approval.ID, c.t.e.Now()); err != nil {
				return err
			}
		}
		s, err := tx.Session(c.t.a.id)
		if err != nil {
			return err
		}
		cc := CallContext{Session: s, Run: c.t.run, Revision: c.t.began, Attempt: c.t.att, Effect: c.effect.ID, Now: c.t.e.Now(), NewID: c.t.e.NewID}
		out, err := st.Apply(tx, cc, []byte(c.item.Body.Tool.Args))
		var te *ToolError
		if errors.As(err, &te) {
			out, err = Output{Text: te.Message, IsError: true}, nil
		}
		f.Output = &out
		if st.EndsTurn() && !out.IsError {
			c.t.over = true // never taken back: the model may be going in circles
		}
		return err
	})
}

// dispatch commits that the call is about to happen, lets it happen, and commits its result. approval is consumed by the same commit.
func (c *call) dispatch(ctx context.Context, approval Approval, p Prepared) error {
	before, err := c.checkpoint(ctx)
	if err != nil {
		return err
	}
	if c.moved() {
		return errRedefined
	}
	planned := c.effect
	c.book = c.t.e.rulebook(c.t.sess) // somebody may have thought about the question for long
	err = c.t.commit(ctx, "effect.dispatched", func(tx Tx) error {
		c.effect = planned // it may run again
		now := c.t.e.Now()
		run, err := tx.Run(c.t.run.ID)
		if err != nil {
			return err
		}
		if run.Desired != DesiredRun {
			return errNotWanted // a stop was accepted first: the call never happens
		}
		if err := c.holds(tx, approval); err != nil {
			return err
		}
		if approval.ID != "" {
			if err := consume(tx, approval.ID, now); err != nil {
				return err
			}
		}
		if err := tx.UpdateAttempt(c.t.att); err != nil {
			return err
		}
		c.effect.State, c.effect.DispatchedAt, c.effect.Dir, c.effect.Attempt = EffectDispatched, now, c.env.RunDir, c.t.att.ID
		if err := c.startBackground(tx, now); err != nil {
			return err
		}
		if err := tx.UpdateEffect(c.effect); err != nil {
			return err
		}
		if before != "" {
			if err := tx.PutTrees(EffectTrees{Effect: c.effect.ID, Run: c.effect.Run, Before: before}); err != nil {
				return err
			}
		}
		if err := p.Dispatching(tx, c.effect, now); err != nil {
			return err
		}
		c.item.Body.Tool.Status = ToolInProgress
		return tx.UpdateItem(c.item, now)
	})
	if errors.Is(err, errNotWanted) {
		return ErrStopped
	}
	if err != nil {
		return err
	}
	out, err := p.Run(ctx, c.progress)
	return c.finish(ctx, out, err, SettledByResult, p)
}

var errNotWanted = errors.New("the work is no longer wanted")

// reattach waits for a call that outlived the process which made it.
func (c *call) reattach(ctx context.Context) error {
	r, ok := c.tool.(Reattacher)
	if !ok {
		return fmt.Errorf("tool %s cannot be reattached: %w", c.effect.Tool, ErrStale)
	}
	out, err := r.Reattach(ctx, c.env, c.effect.Plan, c.progress)
	return c.finish(ctx, out, err, SettledByReceipt, builtin{c})
}

// Rebase accepts the working directory as it is now: the agent's own call or a person has changed it. An empty identity changes nothing.
func Rebase(tx Tx, id SessionID, identity string, now time.Time) error {
	s, err := tx.Session(id)
	if err != nil || identity == "" || s.Identity == identity {
		return err
	}
	s.Identity, s.UpdatedAt = identity, now
	return tx.UpdateSession(s)
}

// progress passes on what a running call has printed; it is not stored.
func (c *call) progress(out Output) {
	c.t.e.bus.publish(c.t.a.id, Live{Item: c.item.ID, Output: &out, Call: c.item.Body.Tool.CallID, Thread: c.item.Thread, Run: c.t.run.ID})
}

// killOrphans ends commands of a run that nobody wants any more and that outlived their process.
func (t *turn) killOrphans(ctx context.Context) (map[EffectID]Finding, error) {
	var open []Effect
	err := t.e.Store.Read(ctx, func(tx Tx) error {
		s, err := tx.Session(t.a.id)
		if err != nil {
			return err
		}
		t.sess = s
		open, err = tx.OpenEffects(t.a.id)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("look for commands left running: %w", err)
	}
	found := map[EffectID]Finding{}
	for _, ef := range open {
		if ef.Run != t.run.ID || ef.State != EffectDispatched {
			continue
		}
		for _, tool := range t.e.Tools {
			p, probes := tool.(Prober)
			if tool.Spec().Name != ef.Tool || !probes {
				continue
			}
			env := t.env(ef.ID)
			f, err := p.Probe(ctx, env, ef.Plan)
			if err != nil {
				return nil, fmt.Errorf("probe call %s: %w", ef.ID, err)
			}
			if r, ok := tool.(Reattacher); ok && f.Fact == FactRunning {
				out, err := r.Kill(ctx, env)
				if err != nil {
					return nil, fmt.Errorf("end command of call %s: %w", ef.ID, err)
				}
				f = Finding{Fact: FactCompleted, By: SettledByReceipt, Output: &out}
			}
			found[ef.ID] = f
		}
	}
	return found, nil
}
