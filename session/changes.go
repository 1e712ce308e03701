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

// Turn is one turn of a session as its user counts them: a prompt with every attempt at it, or one round of a Goal.
type Turn struct {
	Number    int
	Run       RunID
	Title     string
	Attempts  []AttemptID
	StartedAt time.Time
	Open      bool // its run is not at its end
}

// Turns lists the turns of a session in the order in which they began. Reviews are none.
func Turns(tx Tx, id SessionID) ([]Turn, error) {
	runs, err := tx.RunsOf(id)
	if err != nil {
		return nil, err
	}
	var turns []Turn
	for _, r := range runs {
		if r.Kind == RunVerification {
			continue
		}
		attempts, err := tx.Attempts(r.ID)
		if err != nil {
			return nil, err
		}
		for i, a := range attempts {
			if i > 0 && (r.Kind == RunPrompt || a.Mode != ModeTurn && a.Mode != ModeFirst) {
				last := &turns[len(turns)-1]
				last.Attempts = append(last.Attempts, a.ID)
				continue
			}
			turns = append(turns, Turn{Run: r.ID, Title: titleOf(r), Attempts: []AttemptID{a.ID}, StartedAt: a.StartedAt, Open: r.Phase != PhaseEnded})
		}
	}
	slices.SortStableFunc(turns, func(a, b Turn) int { return a.StartedAt.Compare(b.StartedAt) })
	for i := range turns {
		turns[i].Number = i + 1
	}
	return turns, nil
}

func titleOf(r Run) string {
	if r.Kind == RunGoal {
		return "the goal"
	}
	var in PromptInput
	if json.Unmarshal(r.Input, &in) != nil {
		return ""
	}
	return title(in.Text)
}

// TurnChange is what a turn made of one path, however many calls it took.
type TurnChange struct {
	PathChange
	Proven bool     // only the agent's own file writes, each proven by its digest
	Mixed  bool     // somebody else changed it between two calls of the turn
	By     []string // titles of the calls
}

// Changes is everything a turn is known to have changed.
type Changes struct {
	Turn   Turn
	Paths  []TurnChange
	Unseen []string // calls that may have changed something nobody recorded
	Lost   []string // calls whose outcome is unknown
}

// Provable tells whether every change of the turn is proven by digest.
func (c Changes) Provable() bool {
	return len(c.Unseen) == 0 && len(c.Lost) == 0 && !slices.ContainsFunc(c.Paths, func(p TurnChange) bool { return !p.Proven || p.Mixed })
}

// journal is what the store knows of the calls of one turn.
type journal struct {
	session Session
	turn    Turn
	effects []Effect
	trees   map[EffectID]EffectTrees
}

// ErrNoTurn: the session has no such turn.
var ErrNoTurn = errors.New("there is no such turn")

// turnOf is the journal of one turn with what it changed. Number 0 is the last turn that is not taken back and changed a file; where there is
// none, the last in which a call may have changed something. Without that either, the turn has no number.
func (e *Engine) turnOf(ctx context.Context, id SessionID, number int) (journal, Changes, error) {
	var turns []Turn
	var undone map[int]bool
	err := e.Store.Read(ctx, func(tx Tx) (err error) {
		if turns, err = Turns(tx, id); err != nil {
			return err
		}
		undone, err = takenBack(tx, id)
		return err
	})
	if err != nil {
		return journal{}, Changes{}, err
	}
	var first journal
	var known Changes
	for i := len(turns) - 1; i >= 0; i-- {
		if number != 0 && turns[i].Number != number || number == 0 && undone[turns[i].Number] {
			continue
		}
		var j journal
		err := e.Store.Read(ctx, func(tx Tx) (err error) {
			if j.session, err = tx.Session(id); err != nil {
				return err
			}
			return j.load(tx, turns[i])
		})
		if err != nil {
			return j, Changes{}, err
		}
		c, err := e.changes(ctx, j)
		if err != nil || number != 0 || len(c.Paths) > 0 {
			return j, c, err
		}
		if first.turn.Number == 0 && len(c.Unseen)+len(c.Lost) > 0 {
			first, known = j, c
		}
	}
	if number != 0 {
		return first, known, fmt.Errorf("turn %d: %w", number, ErrNoTurn)
	}
	return first, known, nil
}

func (j *journal) load(tx Tx, turn Turn) error {
	j.turn, j.effects, j.trees = turn, nil, map[EffectID]EffectTrees{}
	all, err := tx.EffectsOf(turn.Run)
	if err != nil {
		return err
	}
	for _, ef := range all {
		if slices.Contains(turn.Attempts, ef.Attempt) {
			j.effects = append(j.effects, ef)
		}
	}
	trees, err := tx.TreesOf(turn.Run)
	for _, t := range trees {
		j.trees[t.Effect] = t
	}
	return err
}

// takenBack tells which turns are taken back and not given again.
func takenBack(tx Tx, id SessionID) (map[int]bool, error) {
	undos, err := tx.Undos(id)
	out := map[int]bool{}
	for _, u := range undos {
		if u.State == UndoSettled && slices.ContainsFunc(u.Paths, func(p PathStep) bool { return p.Done }) {
			out[u.Turn] = u.Kind != UndoAgain
		}
	}
	return out, err
}

// changes works out what the calls of a turn changed.
func (e *Engine) changes(ctx context.Context, j journal) (Changes, error) {
	c := Changes{Turn: j.turn}
	m := merge{at: map[string]int{}, c: &c}
	for _, ef := range j.effects {
		name := ef.Plan.Title
		if name == "" {
			name = ef.Tool
		}
		switch {
		case !ef.Changes():
		case ef.Fact == FactUnknown || ef.Fact == FactNone || ef.Fact == FactRunning:
			c.Lost = append(c.Lost, name)
		case ef.Class == StateProbe:
			if n, ok := applied(ef); ok {
				for _, f := range ef.Plan.Files[:n] {
					f, err := e.whole(ctx, f)
					if err != nil {
						return c, err
					}
					m.add(f.paths(), name, true)
				}
			} else if ef.SettledBy == SettledByPerson {
				c.Unseen = append(c.Unseen, name)
			}
		case ef.Class == Unknown:
			t := j.trees[ef.ID]
			if t.Before == "" || t.After == "" {
				c.Unseen = append(c.Unseen, name)
				continue
			}
			list, err := e.Workspace.Changed(ctx, j.session.Cwd, t.Before, t.After)
			if err != nil {
				return c, err
			}
			for _, p := range list {
				m.add(p, name, false)
			}
		}
	}
	c.Paths = slices.DeleteFunc(c.Paths, func(p TurnChange) bool {
		return p.Before.Same(p.After) || p.Before.Kind == PathOther && p.After.Kind == PathOther
	})
	return c, nil
}

// whole reads the texts of a file change that are kept apart.
func (e *Engine) whole(ctx context.Context, f FileChange) (FileChange, error) {
	if !f.Kept {
		return f, nil
	}
	err := e.Store.Read(ctx, func(tx Tx) (err error) { f, err = f.whole(tx); return err })
	return f, err
}

// merge joins the changes of one path in order.
type merge struct {
	at map[string]int
	c  *Changes
}

func (m merge) add(p PathChange, by string, proven bool) {
	i, known := m.at[p.Path]
	if !known {
		m.at[p.Path] = len(m.c.Paths)
		m.c.Paths = append(m.c.Paths, TurnChange{PathChange: p, Proven: proven, By: []string{by}})
		return
	}
	t := &m.c.Paths[i]
	t.Mixed = t.Mixed || !t.After.Same(p.Before)
	if t.Before.Kind == PathFile && t.Before.Exec == "" {
		t.Before.Exec = p.Before.Exec // a file write keeps it
	}
	if p.After.Kind == PathFile && p.After.Exec == "" && t.After.Kind == PathFile {
		p.After.Exec = t.After.Exec
	}
	t.After, t.Proven = p.After, t.Proven && proven
	if !slices.Contains(t.By, by) {
		t.By = append(t.By, by)
	}
}

// content finds what a path held: in the private repository, or in the journal of the run. Where the journal has it without its secrets only,
// it is found for those who show it and not for those who write it.
func (e *Engine) content(ctx context.Context, s Session, run RunID, want PathState, show bool) ([]byte, error) {
	b, err := e.Workspace.Content(ctx, s.Cwd, want.Blob)
	if err == nil {
		return b, nil
	}
	var effects []Effect
	if rerr := e.Store.Read(ctx, func(tx Tx) (err error) { effects, err = tx.EffectsOf(run); return err }); rerr != nil {
		return nil, rerr
	}
	for _, ef := range effects {
		for _, f := range ef.Plan.Files {
			f, rerr := e.whole(ctx, f)
			if rerr != nil {
				return nil, rerr
			}
			for _, c := range []struct {
				b    []byte
				real string // the name of the content where b is masked
			}{{f.New(), f.NewBlob}, {f.Old(), f.OldBlob}} {
				if c.b != nil && (c.real == "" && BlobID(c.b) == want.Blob || show && c.real == want.Blob) {
					return c.b, nil
				}
			}
		}
	}
	return nil, err
}

// list is a few names in one line.
func listed(names []string, most int) string {
	if len(names) > most {
		return strings.Join(names[:most], ", ") + fmt.Sprintf(" and %d more", len(names)-most)
	}
	return strings.Join(names, ", ")
}
