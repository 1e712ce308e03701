package acp

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"holdfast/acp/rpc"
	"holdfast/session"
)

// shownDiff is how much of a diff is shown in the editor.
const shownDiff = 30_000

// aboutFiles tells whether a command is about what the agent's calls changed.
func (s slash) aboutFiles() bool {
	switch s.name {
	case "/diff", "/undo", "/redo", "/retry":
		return true
	}
	return false
}

// filesPrompt answers /diff and /undo, and lets work that stalled go on with /redo and /retry. They are said to Holdfast and not to the
// model; only the last two need one.
func (a *Agent) filesPrompt(ctx context.Context, b *Backend, f *follower, req *rpc.Request, c slash, text string) error {
	again := c.name == "/redo" || c.name == "/retry"
	if again {
		if err := a.needModel(b); err != nil {
			return err
		}
	}
	shown := session.ItemID(b.Engine.NewID())
	f.post(func() { f.shown(shown).closed = true }) // the client shows its own message itself
	it := session.Item{ID: shown, Kind: session.ItemUser, Body: session.ItemBody{Text: text, Aside: true}}
	if err := b.Engine.Remark(ctx, f.id, it, session.Item{}); err != nil {
		return err
	}
	var run session.Run
	var line string
	var err error
	if again {
		run, err = c.again(ctx, b, f.id)
	} else {
		line, err = c.files(ctx, b, f.id)
	}
	if err != nil {
		if line = undoRefusal(err); line == "" {
			return err
		}
	}
	if err == nil && run.Kind == session.RunPrompt {
		f.post(func() { f.admit(run.ID, req) }) // it stays open as the prompt itself did
		return nil
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

// again stores the user's word on work that stalled and returns its run.
func (s slash) again(ctx context.Context, b *Backend, id session.SessionID) (r session.Run, err error) {
	how := session.RedoKeep
	if s.name == "/redo" {
		how = session.RedoEntry
	}
	run, err := b.Engine.Redo(ctx, id, how)
	if err != nil {
		return r, err
	}
	err = b.Engine.Store.Read(ctx, func(tx session.Tx) (err error) { r, err = tx.Run(run); return err })
	return r, err
}

// files runs the command. An empty line means that the history says it all.
func (s slash) files(ctx context.Context, b *Backend, id session.SessionID) (string, error) {
	if s.name == "/undo" {
		u, err := b.Engine.Undo(ctx, id, s.rest)
		if err != nil || u.Number > 0 {
			return "", err
		}
		var sess session.Session
		err = b.Engine.Store.Read(ctx, func(tx session.Tx) (err error) { sess, err = tx.Session(id); return err })
		return u.Report(sess.Cwd), err
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

// undoRefusal is an error that is an answer, or "".
func undoRefusal(err error) string {
	for _, e := range []error{session.ErrBusy, session.ErrNothingToUndo, session.ErrNoTurn, session.ErrNoUndo, session.ErrNotWaiting} {
		if errors.Is(err, e) {
			text := e.Error()
			return strings.ToUpper(text[:1]) + text[1:] + "."
		}
	}
	return ""
}
