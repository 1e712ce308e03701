package acp

import (
	"context"
	"errors"
	"strconv"

	"holdfast/acp/rpc"
	"holdfast/session"
)

// shownDiff is how much of a diff is shown in the editor.
const shownDiff = 30_000

// filesPrompt answers /diff and /undo. They are said to Holdfast and not to the model, so neither needs one.
func (a *Agent) filesPrompt(ctx context.Context, b *Backend, f *follower, req *rpc.Request, c slash, text string) error {
	shown := session.ItemID(b.Engine.NewID())
	f.post(func() { f.shown(shown).closed = true }) // the client shows its own message itself
	it := session.Item{ID: shown, Kind: session.ItemUser, Body: session.ItemBody{Text: text, Aside: true}}
	if err := b.Engine.Remark(ctx, f.id, it, session.Item{}); err != nil {
		return err
	}
	line, err := c.files(ctx, b, f.id)
	if err != nil {
		if line = refusal(err); line == "" {
			return err
		}
	}
	f.post(func() {
		f.catchUp() // what was put back is told by the step itself
		if line != "" {
			f.line(line)
		}
		(&openPrompt{req: req}).answer(f, "end_turn")
	})
	return nil
}

// files runs the command. An empty line means that the history says it all.
func (s slash) files(ctx context.Context, b *Backend, id session.SessionID) (string, error) {
	if s.name == "/undo" {
		_, err := b.Engine.Undo(ctx, id, s.rest)
		return "", err
	}
	number := 0
	if s.rest != "" {
		n, err := strconv.Atoi(s.rest)
		if err != nil || n < 1 {
			return "Say the number of a turn, or nothing for the last one that changed something.", nil
		}
		number = n
	}
	v, err := b.Engine.Diff(ctx, id, number)
	return v.Text(shownDiff), err
}

// refusal is an error that is an answer, or "".
func refusal(err error) string {
	for _, e := range []error{session.ErrBusy, session.ErrNothingToUndo, session.ErrNoTurn, session.ErrNoUndo} {
		if errors.Is(err, e) {
			text := e.Error()
			return string(text[0]-'a'+'A') + text[1:] + "."
		}
	}
	return ""
}
