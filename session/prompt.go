package session

import (
	"context"
	"encoding/json"
	"fmt"
)

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
			if run.Profile, err = e.Bring(tx, s.Choice, now); err != nil {
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

// title is the first line of a text, short enough for a list.
func title(text string) string {
	for i, r := range text {
		if r == '\n' || i >= 80 {
			return text[:i]
		}
	}
	return text
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
// cut off or a newer message was answered meanwhile; a request that was refused has left nothing to go on from.
func (PromptDriver) Begin(tx Tx, b *Begin) error {
	if b.Attempt.Mode != ModeFirst {
		return tellAgain(tx, b)
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

// tellAgain looks at what stands last in the conversation.
func tellAgain(tx Tx, b *Begin) error {
	const far = 16 // no more lines than that are said in a row
	latest, err := tx.Latest(b.Session.ID, "", 0, far)
	if err != nil {
		return err
	}
	for _, last := range latest {
		note := ""
		switch {
		case last.Kind == ItemMarker:
			continue
		case last.Run == b.Run.ID && last.State == ItemInterrupted && last.Body.Text != "":
			note = "[Your last answer was cut off by the model endpoint. Go on from where it stopped, without repeating what is there.]"
		case last.Run != b.Run.ID && last.Kind == ItemAgent:
			note = "[An earlier message of the user was not answered when it came, because the model endpoint failed. Go on with it now, as far as it has not been dealt with since.]"
		}
		if note == "" {
			return nil
		}
		return b.Add(&Item{Kind: ItemNote, State: ItemComplete, Body: ItemBody{Text: note}})
	}
	return nil
}
