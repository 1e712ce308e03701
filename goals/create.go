package goals

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"holdfast/session"
)

// CreateParams is what create_goal takes.
type CreateParams struct {
	Session        session.SessionID
	Cwd            string   // absolute; makes a session for the Goal when none is named
	Roots          []string // of that session; the cwd alone when empty
	Mode           session.Mode
	Objective      string
	Requirements   []Requirement
	Grants         []Grant
	Budget         Budget
	IdempotencyKey string
	Replace        bool
	Opened         *bool // not nil: this process has a session that is made open for its client, and this is set then
	Program        bool  // a program asks, not the user
	SparesStops    bool  // a program asks, which may not replace what the user has stopped
	// What the work goes on with, and whose client asked for it. Create fills them in.
	Profile session.Profile
	Client  session.InstanceID
	// Shown is the user's own line for the transcript, when the Goal came from one.
	Shown   string
	ShownID session.ItemID
}

// Create stores a Goal and starts it. The same idempotency key returns the same Goal.
func (s *Service) Create(ctx context.Context, p CreateParams) (View, error) {
	reqs, err := check(p)
	if err != nil {
		return View{}, err
	}
	if p.Budget, err = p.Budget.checked(); err != nil {
		return View{}, err
	}
	e := s.Engine
	var made *session.Session
	if p.Session == "" {
		roots := append([]string{}, p.Roots...)
		if len(roots) == 0 {
			roots = []string{p.Cwd}
		}
		draft, err := e.Draft(session.Session{Cwd: p.Cwd, Roots: roots, Mode: p.Mode})
		if err != nil {
			return View{}, err
		}
		made, p.Session = &draft, draft.ID
	}
	if p.Grants, err = s.grants(ctx, p, made); err != nil {
		return View{}, err
	}
	var g Goal
	err = e.Store.Commit(ctx, "goal.created", func(stx session.Tx) error {
		tx := in(stx)
		now := e.Now()
		var chosen session.Choice
		if made == nil {
			s, err := stx.Session(p.Session)
			if err != nil {
				return err
			}
			chosen = s.Choice
		}
		if p.Profile, err = e.Bring(stx, chosen, now); err != nil {
			return err
		}
		if p.Client = ""; p.Profile.Env != "" {
			p.Client = e.Self.ID
		}
		if made != nil {
			old, err := repeated(tx, p, reqs)
			if err != nil || old != nil {
				if old != nil {
					g = *old
				}
				return err
			}
			if p.Opened != nil {
				made.Owner, made.Generation, made.Profile = e.Self.ID, 1, p.Profile
			}
			if err := tx.InsertSession(*made); err != nil {
				return err
			}
			if p.Opened != nil {
				if err := stx.Attach(e.Window(made.ID, now)); err != nil {
					return err
				}
			}
		}
		if g, err = create(tx, p, reqs, now, e.NewID); err != nil {
			return err
		}
		return tx.InsertCommand(session.Command{ID: e.NewID(), Session: g.Session, Kind: session.CommandGoal, Ref: g.ID, Instance: e.Self.ID, At: now})
	})
	if err != nil {
		return View{}, fmt.Errorf("create a goal: %w", err)
	}
	if p.Opened != nil && made != nil && g.Session == made.ID {
		*p.Opened = true
		e.Own(made.ID, 1)
	}
	e.Changed(g.Session)
	if err := e.Adopt(ctx, g.Session); err != nil {
		return View{}, err
	}
	return s.Get(ctx, g.ID, "")
}

// repeated finds the Goal that an earlier call with the same key made in a session of its own.
func repeated(tx Tx, p CreateParams, reqs []Requirement) (*Goal, error) {
	all, err := tx.GoalsByKey(p.IdempotencyKey)
	if err != nil {
		return nil, err
	}
	if len(all) == 0 {
		return nil, nil
	}
	g := all[0] // the first is the one that made a session of its own with it
	s, err := tx.Session(g.Session)
	if err != nil {
		return nil, err
	}
	if s.Cwd != p.Cwd {
		return nil, fmt.Errorf("%w: goal %s in %s was created with it", ErrKeyReused, g.ID, s.Cwd)
	}
	return &g, sameBody(tx, g, reqs, p)
}

// sameBody fails when a key comes back with another request. The first revision is what the key was used for.
func sameBody(tx Tx, g Goal, reqs []Requirement, p CreateParams) error {
	old, err := tx.Requirements(g.ID, 1)
	if err != nil {
		return err
	}
	old = slices.DeleteFunc(old, func(q Requirement) bool { return q.Origin != FromUser }) // what came later was not in the request
	same := len(old) == len(reqs) && sameGrants(g.Grants, p.Grants) && g.Asked == p.Budget
	for i := 0; same && i < len(reqs); i++ {
		a, b := old[i], reqs[i]
		same = a.ID == b.ID && a.Kind == b.Kind && a.Text == b.Text && a.Command == b.Command && a.Path == b.Path && a.Pattern == b.Pattern
	}
	if !same {
		return fmt.Errorf("%w: goal %s was created with it", ErrKeyReused, g.ID)
	}
	return nil
}

// create is Create inside a transaction.
func create(tx Tx, p CreateParams, reqs []Requirement, now time.Time, newID func() string) (Goal, error) {
	sess, err := tx.Session(p.Session)
	if err != nil {
		return Goal{}, err
	}
	if p.IdempotencyKey != "" {
		if g, err := tx.GoalByKey(p.Session, p.IdempotencyKey); err == nil {
			return g, sameBody(tx, g, reqs, p)
		} else if !errors.Is(err, session.ErrNotFound) {
			return Goal{}, err
		}
	}
	old, err := tx.OpenGoal(p.Session)
	switch {
	case err == nil && !p.Replace:
		return Goal{}, fmt.Errorf("%w (%s, %s): end it, or say replace", ErrExists, old.ID, old.Status)
	case err == nil && p.SparesStops && stoppedByUser(old):
		return Goal{}, ErrStoppedByUser
	case err == nil:
		if err := finish(tx, old, Cancelled, session.CodeUserEnded, "Replaced by a new goal.", now, newID); err != nil {
			return Goal{}, err
		}
	case !errors.Is(err, session.ErrNotFound):
		return Goal{}, err
	}
	if p.Shown != "" {
		it := session.Item{ID: p.ShownID, Session: p.Session, Kind: session.ItemUser, State: session.ItemComplete, CreatedAt: now,
			Body: session.ItemBody{Text: p.Shown}}
		if err := tx.InsertItem(&it); err != nil {
			return Goal{}, err
		}
	}
	if sess.Title == "" {
		sess.Title, sess.UpdatedAt = firstLine(p.Objective), now
		if err := tx.UpdateSession(sess); err != nil {
			return Goal{}, err
		}
	}
	g := Goal{ID: newID(), Session: p.Session, Run: session.RunID(newID()), Revision: 1, ControlVersion: 1, Objective: p.Objective,
		Status: Active, Extraction: extractionOf(reqs), Grants: p.Grants, Budget: p.Budget, Asked: p.Budget, Program: p.Program,
		IdempotencyKey: p.IdempotencyKey, CreatedAt: now, UpdatedAt: now}
	run := session.Run{ID: g.Run, Session: p.Session, Kind: session.RunGoal, Desired: session.DesiredRun, Phase: session.PhaseQueued,
		ControlVersion: 1, Goal: g.ID, Revision: 1, CreatedAt: now, Profile: p.Profile.Or(sess.Profile), Client: p.Client}
	if err := tx.InsertRun(run); err != nil {
		return Goal{}, err
	}
	if err := tx.InsertGoal(g); err != nil {
		return Goal{}, err
	}
	return g, tx.PutRequirements(g.ID, 1, reqs)
}

func firstLine(s string) string {
	s, _, _ = strings.Cut(s, "\n")
	if r := []rune(s); len(r) > 80 {
		s = string(r[:80])
	}
	return s
}

// check validates what the user gave and adds the objective itself as a requirement.
func check(p CreateParams) ([]Requirement, error) {
	if strings.TrimSpace(p.Objective) == "" {
		return nil, &ParamError{"objective", "say in words what is to be achieved"}
	}
	return requirements(p.Objective, p.Requirements)
}

func requirements(objective string, given []Requirement) ([]Requirement, error) {
	return extend([]Requirement{itself(objective)}, given)
}

// itself is the objective as a requirement.
func itself(objective string) Requirement {
	return Requirement{ID: objectiveID, Kind: KindSemantic, Text: objective, Result: Unknown, Origin: FromUser, Confirmed: true}
}

// extend adds requirements of the user to those that there are, which stay as they are.
func extend(have, given []Requirement) ([]Requirement, error) {
	out := slices.Clone(have)
	seen, taken := map[string]bool{}, map[string]bool{}
	for _, r := range have {
		seen[r.ID] = true
	}
	for _, r := range given {
		taken[r.ID] = true
	}
	for i, r := range given {
		at := fmt.Sprintf("requirements[%d]", i)
		for n := i + 1; r.ID == ""; n++ {
			if id := fmt.Sprintf("r%d", n); !taken[id] && !seen[id] {
				r.ID = id
			}
		}
		if seen[r.ID] {
			return nil, &ParamError{at + ".id", fmt.Sprintf("%q is used twice", r.ID)}
		}
		seen[r.ID] = true
		switch r.Kind {
		case KindCommand:
			if strings.TrimSpace(r.Command) == "" {
				return nil, &ParamError{at + ".command", "a command requirement needs the command to run"}
			}
		case KindFile:
			if strings.TrimSpace(r.Path) == "" {
				return nil, &ParamError{at + ".path", "a file requirement needs a path"}
			}
			if _, err := regexp.Compile(r.Pattern); err != nil {
				return nil, &ParamError{at + ".pattern", err.Error()}
			}
		case KindSemantic:
			if strings.TrimSpace(r.Text) == "" {
				return nil, &ParamError{at + ".text", "say in words what must hold"}
			}
		default:
			return nil, &ParamError{at + ".kind", `want "command", "file" or "semantic"`}
		}
		if r.Text == "" {
			r.Text = strings.TrimSpace(r.Command + " " + r.Path)
		}
		r.Result, r.Reason, r.JudgedBy, r.Evidence = Unknown, "", "", nil // nobody has judged it yet
		r.Origin, r.Confirmed, r.SentBack = FromUser, true, false
		out = append(out, r)
	}
	return out, nil
}
