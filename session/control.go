package session

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// The controls of a user. Each is one transaction that any process may make: it changes what is wanted, appends the command, and only
// then is it acknowledged. The owner acts on it; if there is none, the next owner will.

// Draft fills in what a new session begins with. A passive instance leaves it without an owner and without a profile: whoever executes
// it first gives it one.
func (e *Engine) Draft(s Session) (Session, error) {
	now := e.Now()
	s.ID, s.CreatedAt, s.UpdatedAt = SessionID(e.NewID()), now, now
	if s.Mode == "" {
		s.Mode = ModeAsk
	}
	var err error
	if s.Identity, err = e.Workspace.Identity(s.Cwd); err != nil {
		return s, fmt.Errorf("look at the working directory: %w", err)
	}
	s.Profile, s.WorkTree = e.Here(), e.Workspace.Root(s.Cwd)
	return s, nil
}

// NewSession creates a session that this instance owns and has open.
func (e *Engine) NewSession(ctx context.Context, s Session) (Session, error) {
	s, err := e.Draft(s)
	if err != nil {
		return s, err
	}
	now := s.CreatedAt
	s.Owner, s.Generation = e.Self.ID, 1
	err = e.Store.Commit(ctx, "session.created", func(tx Tx) error {
		var err error
		if s.Profile, err = e.Bring(tx, now); err != nil {
			return err
		}
		if err := tx.InsertSession(s); err != nil {
			return err
		}
		return tx.Attach(e.window(s.ID, now))
	})
	if err != nil {
		return s, fmt.Errorf("create a session: %w", err)
	}
	e.Own(s.ID, 1)
	return s, nil
}

// For says who this process works for.
func (e *Engine) For(c Client) { e.client.Store(&c) }

// window is the client of this process on a session.
func (e *Engine) window(id SessionID, now time.Time) Attachment {
	w := Attachment{Instance: e.Self.ID, Session: id, Profile: e.Here(), At: now}
	if c := e.client.Load(); c != nil {
		w.Client = *c
	}
	return w
}

// Open attaches a client of this instance to a session and takes the session over if nobody owns it, unless its work waits for a process
// that has something else.
func (e *Engine) Open(ctx context.Context, id SessionID, roots []string) (Session, error) {
	var s Session
	var gen int64
	err := e.Store.Commit(ctx, "session.opened", func(tx Tx) (err error) {
		if s, err = tx.Session(id); err != nil {
			return err
		}
		if err := tx.Attach(e.window(id, e.Now())); err != nil {
			return err
		}
		gen = 0
		takes, waiting, err := e.goesOn(tx, id)
		if err != nil {
			return err
		}
		if s.Owner == "" && !takes {
			if err := e.setAside(tx, waiting, e.Now()); err != nil {
				return err
			}
		}
		if s.Owner == "" && takes {
			if gen, err = tx.Own(id, e.Self.ID); err != nil {
				return err
			}
			s.Owner = e.Self.ID
		}
		if s.Closed || len(roots) > 0 {
			s.Closed, s.UpdatedAt = false, e.Now()
			if len(roots) > 0 {
				s.Roots = roots
			}
			return tx.UpdateSession(s)
		}
		return nil
	})
	if err != nil {
		return s, fmt.Errorf("open session %s: %w", id, err)
	}
	if gen > 0 {
		e.Own(id, gen)
	}
	e.recheck(id)
	e.changed(id)
	return s, nil
}

// recheck makes the owner here look again at work that waits for a resource.
func (e *Engine) recheck(id SessionID) {
	e.mu.Lock()
	a := e.actors[id]
	e.mu.Unlock()
	if a != nil {
		a.askRecheck()
		e.wake(id)
	}
}

// CloseSession detaches the client. Work is interrupted and waits until the session is opened again: it is not a stop.
func (e *Engine) CloseSession(ctx context.Context, id SessionID) error {
	last := false
	err := e.Store.Commit(ctx, "session.closed", func(tx Tx) error {
		s, err := tx.Session(id)
		if err != nil {
			return err
		}
		if err := tx.Detach(e.Self.ID, id); err != nil {
			return err
		}
		at, err := tx.Attached(id)
		if err != nil {
			return err
		}
		if last = len(at) == 0; !last {
			return nil // another window has it open: the work is theirs as well
		}
		if err := tx.InsertCommand(Command{ID: e.NewID(), Session: id, Kind: CommandClose, Instance: e.Self.ID, At: e.Now()}); err != nil {
			return err
		}
		s.Closed, s.UpdatedAt = true, e.Now()
		return tx.UpdateSession(s)
	})
	if err != nil {
		return fmt.Errorf("close session %s: %w", id, err)
	}
	if !last || !e.Owns(id) {
		e.changed(id)
		return nil
	}
	e.release(id, ErrDetach)
	err = e.Store.Commit(ctx, "owner.released", func(tx Tx) error {
		s, err := tx.Session(id)
		if err != nil || s.Owner != e.Self.ID {
			return err
		}
		_, err = tx.Own(id, "")
		return err
	})
	e.changed(id)
	return err
}

// PromptInput is what the user said.
type PromptInput struct {
	Text     string          `json:"text"`              // for the model
	Blocks   json.RawMessage `json:"blocks,omitempty"`  // as the client sent it, for replay; images by their digests
	Images   []Image         `json:"images,omitempty"`  // the pictures in it
	Run      RunID           `json:"-"`                 // id for the run, "" makes one
	Compact  bool            `json:"compact,omitempty"` // it asks for a compaction and says nothing to the model
	Keep     string          `json:"keep,omitempty"`    // what the summary is to keep in particular
	Uncancel string          `json:"-"`                 // command id of a cancel answered on this connection less than a second ago
}

// Prompt accepts user input. When it returns, the input is stored and will be worked on, whatever happens to this process.
func (e *Engine) Prompt(ctx context.Context, id SessionID, in PromptInput) (RunID, error) {
	in = e.Hidden(in)
	body, err := json.Marshal(in)
	if err != nil {
		return "", fmt.Errorf("encode the prompt: %w", err)
	}
	if in.Run == "" {
		in.Run = RunID(e.NewID())
	}
	run := Run{ID: in.Run, Session: id, Kind: RunPrompt, Desired: DesiredRun, Phase: PhaseQueued, ControlVersion: 1, Input: body}
	owner, identity := InstanceID(""), e.IdentityOf(ctx, id)
	err = e.Commit(ctx, "prompt.accepted", id, func(tx Tx) error {
		now := e.Now()
		run.CreatedAt = now
		s, err := tx.Session(id)
		if err != nil {
			return err
		}
		owner = s.Owner
		if err := Rebase(tx, id, identity, now); err != nil {
			return err
		}
		if identity != "" {
			s.Identity = identity
		}
		if s.Title == "" && !in.Compact {
			s.Title, s.UpdatedAt = title(in.Text), now
			if err := tx.UpdateSession(s); err != nil {
				return err
			}
		}
		run.Profile = s.Profile
		if !e.Passive { // a person's prompt adopts the profile of the client it came from, whoever has the session
			if run.Profile, err = e.Bring(tx, now); err != nil {
				return err
			}
			run.Client = e.Self.ID
		}
		if _, err := lift(tx, id, now); err != nil { // a new message is new authority
			return err
		}
		if !in.Compact {
			if err := e.answeredByMessage(tx, id, now); err != nil {
				return err
			}
		}
		if in.Uncancel != "" {
			if err := e.Hooks.Uncancelled(tx, id, in.Uncancel, now); err != nil {
				return err
			}
		}
		if err := tx.KeepImages(in.Images); err != nil {
			return err
		}
		if err := tx.InsertCommand(Command{ID: e.NewID(), Session: id, Kind: CommandPrompt, Ref: string(run.ID), Instance: e.Self.ID, At: now}); err != nil {
			return err
		}
		return tx.InsertRun(run)
	})
	if err != nil {
		return "", fmt.Errorf("accept the prompt: %w", err)
	}
	if owner == "" && !e.Passive {
		if _, err := e.claim(ctx, id); err != nil {
			return "", err
		}
	}
	return run.ID, nil
}

// IdentityOf names the working directory of a session as it is now, for Rebase; "" when it cannot be looked at.
func (e *Engine) IdentityOf(ctx context.Context, id SessionID) string {
	var s Session
	if err := e.Store.Read(ctx, func(tx Tx) (err error) { s, err = tx.Session(id); return err }); err != nil {
		return ""
	}
	identity, err := e.Workspace.Identity(s.Cwd)
	if err != nil {
		return ""
	}
	return identity
}

// homeless tells whether the working directory of a session is gone. Nothing is begun there then, whoever asks.
func (e *Engine) homeless(s Session) bool {
	if e.Workspace == nil {
		return false
	}
	_, err := e.Workspace.Identity(s.Cwd)
	return err != nil
}

// title is the first line of a text, short enough for a list.
func title(text string) string {
	for i, r := range text {
		if r == '\n' || i >= 80 {
			return text[:i]
		}
	}
	return text
}

// Remark stores what the user and Holdfast said to each other beside the work: a command, and the line it was answered with. Either may be
// empty. The model never sees it.
func (e *Engine) Remark(ctx context.Context, id SessionID, said, answered Item) error {
	err := e.Commit(ctx, "remark.stored", id, func(tx Tx) error {
		for _, it := range []Item{said, answered} {
			if it.Body.Text == "" {
				continue
			}
			it.Session, it.State, it.CreatedAt = id, ItemComplete, e.Now()
			if err := tx.InsertItem(&it); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("store a remark: %w", err)
	}
	return nil
}

// Cancel stops what runs and what was queued before it, and pauses an active Goal. It returns the command to look for.
func (e *Engine) Cancel(ctx context.Context, id SessionID) (string, error) {
	return e.halt(ctx, id, CommandCancel)
}

// Stop is Cancel for everything: background commands end as well.
func (e *Engine) Stop(ctx context.Context, id SessionID) (string, error) {
	cmd, err := e.halt(ctx, id, CommandStop)
	if err != nil {
		return cmd, err
	}
	e.endSoon(id)
	if err := e.Adopt(ctx, id); err != nil { // somebody has to end what nobody executes; others look for it as well
		e.Log.Error().Err(err).Str("session_id", string(id)).Msg("taking stopped work to its end failed; it is stopped all the same")
	}
	return cmd, nil
}

func (e *Engine) halt(ctx context.Context, id SessionID, kind CommandKind) (string, error) {
	cmd := e.NewID()
	err := e.Commit(ctx, "cancel.accepted", id, func(tx Tx) error {
		now := e.Now()
		if _, err := tx.Session(id); err != nil {
			return err
		}
		runs, err := tx.OpenRuns(id)
		if err != nil {
			return err
		}
		for _, r := range runs {
			if r.Kind != RunPrompt && r.Broken == CodeNone || r.Desired != DesiredRun {
				continue
			}
			r.Desired, r.ReasonCode = DesiredCancelled, CodeUserCancelled
			r.ControlVersion++
			if err := tx.UpdateRun(r, now); err != nil {
				return err
			}
		}
		if err := VoidApprovals(tx, id, now); err != nil {
			return err
		}
		if err := tx.InsertCommand(Command{ID: cmd, Session: id, Kind: kind, Instance: e.Self.ID, At: now}); err != nil {
			return err
		}
		if err := e.Hooks.Cancelled(tx, id, cmd, now); err != nil {
			return err
		}
		if kind == CommandStop { // a cancel leaves them
			if err := stopBackgrounds(tx, id); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return "", fmt.Errorf("store the cancel: %w", err)
	}
	return cmd, nil
}

// VoidApprovals voids every question of a session that was not acted on: a stop takes back what was allowed.
func VoidApprovals(tx Tx, id SessionID, now time.Time) error {
	open, err := tx.OpenApprovals(id)
	if err != nil {
		return err
	}
	for _, p := range open {
		p.State = ApprovalVoid
		if err := tx.UpdateApproval(p, now); err != nil {
			return err
		}
	}
	return nil
}

// Answer stores a person's answer to a question. The same answer once more changes nothing; another one is an *AnsweredError, and a
// question that was taken back ErrAnswered.
func (e *Engine) Answer(ctx context.Context, id ApprovalID, option string) error {
	return e.AnswerIn(ctx, id, option, "")
}

// AnswerIn is Answer with the words of an answer to a question of the model.
func (e *Engine) AnswerIn(ctx context.Context, id ApprovalID, option, text string) error {
	var session SessionID
	err := e.Store.Commit(ctx, "approval.answered", func(tx Tx) error {
		p, err := tx.Approval(id)
		if err != nil {
			return err
		}
		session = p.Session
		switch {
		case p.State == ApprovalPending:
		case p.State == ApprovalVoid:
			return ErrAnswered
		case p.Option == option && p.Answer == text:
			return nil
		default:
			return &AnsweredError{p.Option}
		}
		if err := checkAnswer(p, option, text); err != nil {
			return err
		}
		now := e.Now()
		if err := e.stand(tx, p, option, now); err != nil {
			return err
		}
		p.State, p.Option, p.Answer, p.AnsweredBy, p.AnsweredAt = ApprovalAnswered, option, text, e.Self.ID, now
		if err := tx.UpdateApproval(p, now); err != nil {
			return err
		}
		if r, err := tx.Run(p.Run); err != nil {
			return err
		} else if r.Left { // the answer is a person's word on it
			if r.Left = false; heldBack(r.ReasonCode) {
				r.Phase, r.ReasonCode, r.Reason = PhaseQueued, CodeNone, ""
			}
			if err := tx.UpdateRun(r, now); err != nil {
				return err
			}
		}
		return tx.InsertCommand(Command{ID: e.NewID(), Session: p.Session, Kind: CommandAnswer, Ref: string(id), Instance: e.Self.ID, At: now})
	})
	if err != nil {
		return fmt.Errorf("store the answer: %w", err)
	}
	e.changed(session)
	return nil
}

// Options are the answers that a question takes.
func Options(p Approval) []string {
	if p.Question != "" {
		return askOptions(p)
	}
	out := []string{OptionAllow}
	if p.Always != "" && len(p.Unknown) == 0 { // nothing allows beforehand what an unknown outcome asks about
		out = append(out, OptionAllowAlways)
	}
	out = append(out, OptionReject)
	if p.Always != "" {
		out = append(out, OptionNever)
	}
	if len(p.Unknown) > 0 {
		out = append(out, OptionHappened, OptionNotHappened)
	}
	return out
}

// OptionError: the answer was not offered.
type OptionError struct {
	Option  string
	Offered []string
}

func (e *OptionError) Error() string {
	return fmt.Sprintf("%q was not offered; the question takes %s", e.Option, strings.Join(e.Offered, ", "))
}

// NotUnknownError: there is nothing to settle, the outcome of the call is known or still in the hands of a live owner.
type NotUnknownError struct {
	Effect EffectID
	State  EffectState
	Fact   Fact
}

func (e *NotUnknownError) Error() string {
	return fmt.Sprintf("call %s is %s %s: only an unknown outcome can be settled", e.Effect, e.State, e.Fact)
}

// Settle stores a person's word on a call whose outcome is unknown. Nothing runs because of it. Questions that named the call are taken
// back, because what they asked has changed.
func (e *Engine) Settle(ctx context.Context, id EffectID, happened bool, note string) error {
	var session SessionID
	err := e.Store.Commit(ctx, "effect.settled_by_person", func(tx Tx) error {
		ef, err := tx.Effect(id)
		if err != nil {
			return err
		}
		session = ef.Session
		if ef.State == EffectSettled || ef.Fact != FactUnknown {
			return &NotUnknownError{id, ef.State, ef.Fact}
		}
		now := e.Now()
		if err := SettleByPerson(tx, id, happened, note, e.Self.ID, now); err != nil {
			return err
		}
		if err := voidNaming(tx, session, id, now); err != nil {
			return err
		}
		return tx.InsertCommand(Command{ID: e.NewID(), Session: session, Kind: CommandSettle, Ref: string(id), Instance: e.Self.ID, At: now})
	})
	if err != nil {
		return fmt.Errorf("settle call %s: %w", id, err)
	}
	e.changed(session)
	return nil
}

// voidNaming takes back the questions that name an unknown effect which is no longer one.
func voidNaming(tx Tx, id SessionID, effect EffectID, now time.Time) error {
	open, err := tx.OpenApprovals(id)
	if err != nil {
		return err
	}
	for _, p := range open {
		if !slices.Contains(p.Unknown, effect) {
			continue
		}
		p.State = ApprovalVoid
		if err := tx.UpdateApproval(p, now); err != nil {
			return err
		}
	}
	return nil
}

// SetMode changes what the session may do without asking.
func (e *Engine) SetMode(ctx context.Context, id SessionID, m Mode) error {
	return e.Commit(ctx, "mode.set", id, func(tx Tx) error {
		s, err := tx.Session(id)
		if err != nil {
			return err
		}
		if s.Broken != CodeNone {
			return &RecordError{Code: s.Broken, Session: id, Record: "session " + string(id)} // it would not be written, and must not seem so
		}
		s.Mode, s.UpdatedAt = m, e.Now()
		if err := tx.UpdateSession(s); err != nil {
			return err
		}
		return tx.InsertCommand(Command{ID: e.NewID(), Session: id, Kind: CommandMode, Ref: string(m), Instance: e.Self.ID, At: s.UpdatedAt})
	})
}

// PromptDriver is the ordinary request of a user.
type PromptDriver struct {
	System func(Session) string
	Tools  []Tool
}

var _ Driver = PromptDriver{}

// Observe looks at nothing.
func (PromptDriver) Observe(context.Context, Session, Run) (any, error) { return nil, nil }

// Begin inserts the user's message, once: on the first attempt. A later one tells the model why it is asked again, when an answer of it was
// cut off; a request that was refused has left nothing to go on from.
func (PromptDriver) Begin(tx Tx, b *Begin) error {
	if b.Attempt.Mode != ModeFirst {
		latest, err := tx.Latest(b.Session.ID, "", 0, 1)
		if err != nil || len(latest) == 0 {
			return err
		}
		if last := latest[0]; last.Run != b.Run.ID || last.State != ItemInterrupted || last.Body.Text == "" {
			return nil
		}
		return b.Add(&Item{Kind: ItemNote, State: ItemComplete, Body: ItemBody{Text: "[Your last answer was cut off by the model endpoint. " +
			"Go on from where it stopped, without repeating what is there.]"}})
	}
	var in PromptInput
	if err := json.Unmarshal(b.Run.Input, &in); err != nil {
		return &RecordError{Code: CodeMalformed, Session: b.Session.ID, Record: "run " + string(b.Run.ID), Err: err}
	}
	cmds, err := tx.OpenCommands(b.Session.ID)
	if err != nil {
		return err
	}
	for _, c := range cmds {
		if c.Kind == CommandPrompt && c.Ref == string(b.Run.ID) {
			if _, err := tx.Consume(c.ID, b.Attempt.Generation, b.Attempt.StartedAt); err != nil {
				return err
			}
		}
	}
	return b.Add(&Item{Kind: ItemUser, State: ItemComplete, Body: ItemBody{Text: in.Text, Blocks: in.Blocks, Images: in.Images, Aside: in.Compact}})
}

// Setup offers every tool.
func (d PromptDriver) Setup(_ Tx, s Session, _ Run) (Setup, error) {
	return Setup{System: d.System(s), Tools: d.Tools}, nil
}

// End ends the run with its stop reason.
func (PromptDriver) End(_ Tx, e *End) error {
	e.Run.Desired, e.Run.Phase, e.Run.EndedAt = DesiredDone, PhaseEnded, e.Now
	switch e.Finish {
	case FinishLength:
		e.Run.StopReason = "max_tokens"
	case FinishRefusal:
		e.Run.StopReason = "refusal"
	default:
		e.Run.StopReason = "end_turn"
	}
	return nil
}

// Failed ends the run: a new prompt is the user's way to try again.
func (PromptDriver) Failed(_ Tx, e *End, code Code, reason string) error {
	e.Run.Desired, e.Run.Phase, e.Run.EndedAt = DesiredDone, PhaseEnded, e.Now
	e.Run.StopReason, e.Run.ReasonCode, e.Run.Reason = "error", code, reason
	return nil
}

// IsNotFound tells whether a record was missing.
func IsNotFound(err error) bool { return errors.Is(err, ErrNotFound) }
