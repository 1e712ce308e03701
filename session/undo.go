package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"holdfast/internal/fault"
)

// ErrBusy: work of the session is running or about to, so its files are not put back now.
var ErrBusy = errors.New("the session is working; stop it or wait for its end, then try again")

// ErrNothingToUndo: there is no change to take back.
var ErrNothingToUndo = errors.New("there is nothing to take back")

// ErrNoUndo: there is no such step.
var ErrNoUndo = errors.New("there is no such step")

// Undo takes back what the agent's calls changed in a turn: the last one, a numbered one, or with u1, u2, … such a step itself. Only paths that
// are as the agent left them are touched. The step is stored before the first file changes; where every path is to be left alone there is no
// step, and what is returned has no number.
func (e *Engine) Undo(ctx context.Context, id SessionID, what string) (Undo, error) {
	if err := e.FinishUndo(ctx, id); err != nil {
		return Undo{}, err
	}
	u, err := e.planUndo(ctx, id, what)
	if err != nil {
		return u, fmt.Errorf("take back %s: %w", cmp.Or(what, "the last turn"), err)
	}
	if !u.touches() {
		return u, e.Store.Read(ctx, func(tx Tx) error { return idle(tx, id) })
	}
	if err := e.acceptUndo(ctx, &u, func(tx Tx) error { return idle(tx, id) }); err != nil {
		return u, fmt.Errorf("take back %s: %w", cmp.Or(what, "the last turn"), err)
	}
	return e.settleUndo(ctx, u)
}

// touches tells whether any path would be changed.
func (u Undo) touches() bool {
	return slices.ContainsFunc(u.Paths, func(p PathStep) bool { return p.Why == "" })
}

// planUndo works out which paths a step would touch.
func (e *Engine) planUndo(ctx context.Context, id SessionID, what string) (Undo, error) {
	if name, ok := strings.CutPrefix(what, "u"); ok {
		return e.planAgain(ctx, id, name)
	}
	number := 0
	if what != "" {
		n, err := strconv.Atoi(what)
		if err != nil || n < 1 {
			return Undo{}, fmt.Errorf("%q is neither a turn nor a step: %w", what, ErrNoTurn)
		}
		number = n
	}
	j, c, err := e.turnOf(ctx, id, number)
	if err != nil {
		return Undo{}, err
	}
	return e.planTurn(j, c, UndoTurn)
}

// planTurn is the step that takes a turn back.
func (e *Engine) planTurn(j journal, c Changes, kind UndoKind) (Undo, error) {
	u := Undo{Session: j.session.ID, Kind: kind, Run: j.turn.Run, Turn: j.turn.Number}
	for _, p := range c.Paths {
		step := PathStep{Path: p.Path, From: p.After, To: p.Before}
		switch {
		case p.Mixed:
			step.Why = "somebody else changed it between two calls of the turn"
		case p.After.Kind == PathOther || p.Before.Kind == PathOther:
			step.Why = "it is or was not a file"
		default:
			step.Why = e.look(step)
		}
		u.Paths = append(u.Paths, step)
	}
	if len(u.Paths) == 0 {
		return u, ErrNothingToUndo
	}
	return u, nil
}

// planAgain is the step that takes a step back.
func (e *Engine) planAgain(ctx context.Context, id SessionID, name string) (Undo, error) {
	var undos []Undo
	if err := e.Store.Read(ctx, func(tx Tx) (err error) { undos, err = tx.Undos(id); return err }); err != nil {
		return Undo{}, err
	}
	i := slices.IndexFunc(undos, func(u Undo) bool { return strconv.Itoa(u.Number) == name })
	if i < 0 {
		return Undo{}, ErrNoUndo
	}
	old := undos[i]
	u := Undo{Session: id, Kind: UndoAgain, Run: old.Run, Turn: old.Turn, Of: old.ID}
	if old.Kind == UndoAgain {
		u.Kind = UndoTurn
	}
	for _, p := range old.Paths {
		if !p.Done {
			continue
		}
		step := PathStep{Path: p.Path, From: p.To, To: p.From}
		step.Why = e.look(step)
		u.Paths = append(u.Paths, step)
	}
	if len(u.Paths) == 0 {
		return u, ErrNothingToUndo
	}
	return u, nil
}

const whyBefore = "it is already as it was before"

// look says why a path is left alone, "" when it may be touched.
func (e *Engine) look(p PathStep) string {
	now, err := e.Workspace.At(p.Path)
	switch {
	case err != nil:
		return safeText(err)
	case now.Same(p.From):
		return ""
	case now.Same(p.To):
		return whyBefore
	}
	return ErrPathChanged.Error()
}

// idle refuses while work of a session runs or is about to.
func idle(tx Tx, id SessionID) error {
	runs, err := tx.OpenRuns(id)
	if err != nil {
		return err
	}
	for _, r := range runs {
		if r.Desired == DesiredRun || r.Phase == PhaseWorking {
			return ErrBusy
		}
	}
	return nil
}

// acceptUndo stores a step before the first file changes. The work tree as it is now is kept under a name of its own.
func (e *Engine) acceptUndo(ctx context.Context, u *Undo, allowed func(Tx) error) error {
	var s Session
	if err := e.Store.Read(ctx, func(tx Tx) (err error) { s, err = tx.Session(u.Session); return err }); err != nil {
		return err
	}
	u.ID, u.State, u.Instance, u.At = e.NewID(), UndoAccepted, e.Self.ID, e.Now()
	saved, err := e.Workspace.Snapshot(ctx, s.Cwd)
	if err == nil {
		u.Saved = saved.Tree
		err = e.Workspace.Keep(ctx, s.Cwd, "undo/"+u.ID, u.Saved)
	}
	if err != nil {
		return fmt.Errorf("keep the work tree as it is: %w", err)
	}
	return e.Commit(ctx, "undo.accepted", u.Session, func(tx Tx) error {
		if err := allowed(tx); err != nil {
			return err
		}
		return tx.InsertUndo(u)
	})
}

// undoPoll is how often a step that another process carries out is looked at.
const undoPoll = 50 * time.Millisecond

// FinishUndo finishes the steps that a lost process left in the middle, and waits for one that a live process carries out: nobody else touches
// its files. With no session it finishes those of all sessions and waits for nothing.
func (e *Engine) FinishUndo(ctx context.Context, id SessionID) error {
	for {
		var open, others []Undo
		err := e.Store.Read(ctx, func(tx Tx) error {
			all, err := tx.OpenUndos(id)
			if err != nil {
				return err
			}
			open, others = nil, nil
			for _, u := range all {
				alive, err := e.elsewhere(tx, u)
				if err != nil {
					return err
				}
				if alive {
					others = append(others, u)
				} else {
					open = append(open, u)
				}
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("look for an unfinished step: %w", err)
		}
		for _, u := range open {
			if _, err := e.settleUndo(ctx, u); err != nil && !errors.Is(err, errElsewhere) {
				return err
			}
		}
		if len(others) == 0 || id == "" {
			return nil
		}
		select {
		case <-time.After(undoPoll):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// errElsewhere: another process has taken the step on.
var errElsewhere = errors.New("another process carries out the step")

// elsewhere tells whether another process that may live has a step.
func (e *Engine) elsewhere(tx Tx, u Undo) (bool, error) {
	if u.Instance == e.Self.ID {
		return false, nil
	}
	_, err := tx.Instance(u.Instance)
	if errors.Is(err, ErrNotFound) {
		return false, nil // it left
	}
	return err == nil && !tx.Lost(u.Instance), err
}

// takeUndo makes a step this process's, once.
func (e *Engine) takeUndo(ctx context.Context, u Undo) (now Undo, err error) {
	err = e.Store.Commit(ctx, "undo.accepted", func(tx Tx) error {
		if now, err = tx.Undo(u.ID); err != nil || now.State == UndoSettled || now.Instance == e.Self.ID {
			return err
		}
		if alive, err := e.elsewhere(tx, now); err != nil || alive {
			return errors.Join(err, errElsewhere)
		}
		now.Instance = e.Self.ID
		return tx.UpdateUndo(now)
	})
	return now, err
}

// settleUndo puts the files back and stores what became of each. In one process one step is carried out at a time, and a step by one process.
func (e *Engine) settleUndo(ctx context.Context, u Undo) (Undo, error) {
	e.undoing.Lock()
	defer e.undoing.Unlock()
	u, err := e.takeUndo(ctx, u)
	if err != nil || u.State == UndoSettled {
		return u, err
	}
	var s Session
	if err := e.Store.Read(ctx, func(tx Tx) (err error) { s, err = tx.Session(u.Session); return err }); err != nil {
		return u, err
	}
	ctx = context.WithoutCancel(ctx) // it was accepted
	for i := range u.Paths {
		if p := &u.Paths[i]; p.Why == "" {
			fault.Point("tree.restoring")
			p.Done, p.Why = e.put(ctx, s, u, *p)
		}
	}
	err = e.Commit(ctx, "undo.settled", u.Session, func(tx Tx) error {
		now, err := tx.Undo(u.ID)
		if err != nil || now.State == UndoSettled {
			u = now
			return err
		}
		u.State, u.SettledAt = UndoSettled, e.Now()
		if err := tx.UpdateUndo(u); err != nil {
			return err
		}
		for kind, text := range map[ItemKind]string{ItemNote: u.note(s.Cwd), ItemMarker: u.Report(s.Cwd)} {
			it := Item{ID: ItemID(e.NewID()), Session: u.Session, Kind: kind, State: ItemComplete, Body: ItemBody{Text: text}, CreatedAt: u.SettledAt}
			if err := tx.InsertItem(&it); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return u, fmt.Errorf("settle %s: %w", u.Name(), err)
	}
	return u, nil
}

func (e *Engine) put(ctx context.Context, s Session, u Undo, p PathStep) (done bool, why string) {
	e.Workspace.Clean(p) // of a lost process
	switch w := e.look(p); w {
	case "":
	case whyBefore:
		return true, "" // by the process that was lost
	default:
		return false, w
	}
	var content []byte
	if p.To.Kind != PathAbsent {
		var err error
		if content, err = e.content(ctx, s, u.Run, p.To, false); err != nil {
			return false, "what it held is not recorded"
		}
	}
	err := e.Workspace.Put(p, content)
	var pe *fs.PathError
	switch {
	case errors.Is(err, ErrPathChanged) && e.look(p) == whyBefore:
		return true, ""
	case errors.As(err, &pe):
		return false, pe.Err.Error()
	case err != nil:
		return false, safeText(err)
	}
	return true, ""
}

// Report is what the user is told.
func (u Undo) Report(cwd string) string {
	var done, left []string
	for _, p := range u.Paths {
		name := shorten(cwd, p.Path)
		if p.Done {
			done = append(done, name)
		} else {
			left = append(left, name+" ("+p.Why+")")
		}
	}
	var b strings.Builder
	head := map[UndoKind]string{UndoTurn: "Turn %d is taken back", UndoAgain: "Turn %d is given again", UndoRollback: "Turn %d is rolled back to its beginning"}[u.Kind]
	fmt.Fprintf(&b, head, u.Turn)
	if len(done) == 0 {
		b.WriteString(": nothing was changed.")
	} else {
		fmt.Fprintf(&b, ": %s.", listed(done, 50))
	}
	if len(left) > 0 {
		fmt.Fprintf(&b, "\nLeft as it is: %s.", listed(left, 50))
	}
	if len(done) > 0 {
		fmt.Fprintf(&b, "\nTo take this back: /undo %s", u.Name())
	}
	return b.String()
}

// note is what the model is told.
func (u Undo) note(cwd string) string {
	what := map[UndoKind]string{UndoTurn: "The user took back the file changes of an earlier turn of yours",
		UndoAgain: "The user brought back the file changes of an earlier turn of yours", UndoRollback: "Holdfast rolled back the file changes of your last attempt"}[u.Kind]
	return fmt.Sprintf("[%s. Read a file again before you rely on it.\n%s]", what, strings.ReplaceAll(u.Report(cwd), "\nTo take this back: /undo "+u.Name(), ""))
}

// shorten names a path as seen from the working directory.
func shorten(cwd, path string) string {
	if rel, err := filepath.Rel(cwd, path); err == nil && filepath.IsLocal(rel) {
		return rel
	}
	return path
}

// UndoView is a step as listings show it.
type UndoView struct {
	Undo      string     `json:"undo"`
	SessionID SessionID  `json:"sessionId"`
	Kind      UndoKind   `json:"kind"`
	Turn      int        `json:"turn"`
	State     UndoState  `json:"state"`
	Paths     []UndoPath `json:"paths"`
	At        time.Time  `json:"at"`
}

// UndoPath is what became of one path.
type UndoPath struct {
	Path string `json:"path"`
	Done bool   `json:"done"`
	Why  string `json:"why"` // why it was left alone
}

// View shows a step.
func (u Undo) View(cwd string) UndoView {
	v := UndoView{Undo: u.Name(), SessionID: u.Session, Kind: u.Kind, Turn: u.Turn, State: u.State, Paths: []UndoPath{}, At: u.At}
	for _, p := range u.Paths {
		v.Paths = append(v.Paths, UndoPath{shorten(cwd, p.Path), p.Done, p.Why})
	}
	return v
}
