package goals

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"holdfast/session"
)

// Grant is something the user allows beforehand for a Goal's own work: file edits in a directory, or a command. It counts for the
// revision it was given for and for no other run, and it waives nothing while an outcome is unknown.
type Grant struct {
	Kind     GrantKind `json:"kind"`
	Path     string    `json:"path,omitempty"`
	Command  string    `json:"command,omitempty"`
	Revision int64     `json:"revision"`
	Covers   string    `json:"covers"`  // in words, as the user confirms it
	InForce  bool      `json:"inForce"` // in a View: it counts now
}

// GrantKind is what a grant is about.
type GrantKind string

const (
	GrantEdit    GrantKind = "edit"
	GrantCommand GrantKind = "command"
)

// rule is the grant as the policy reads it.
func (g Grant) rule(goal Goal) session.Rule {
	r := session.Rule{Verdict: session.VerdictAllow, Session: goal.Session, Goal: goal.ID, CreatedAt: goal.CreatedAt}
	if g.Kind == GrantEdit {
		r.Kind, r.Value = session.RuleEdit, g.Path
		return r
	}
	r.Tool = "shell"
	if p, ok := session.PrefixRule(g.Command); ok {
		r.Kind, r.Value = p.Kind, p.Value
		return r
	}
	r.Kind, r.Value = session.RuleCommand, strings.TrimSpace(g.Command)
	return r
}

// checkGrants makes what was given whole and refuses what cannot be granted: a directory outside of those the session may use.
func checkGrants(given []Grant, cwd string, roots []string) ([]Grant, error) {
	out := []Grant{}
	for i, g := range given {
		at := fmt.Sprintf("grants[%d]", i)
		g.Revision, g.InForce = 1, false
		switch g.Kind {
		case GrantEdit:
			dir, err := editable(g.Path, cwd, roots)
			if err != nil {
				return nil, &ParamError{at + ".path", err.Error()}
			}
			g.Path, g.Command = dir, ""
		case GrantCommand:
			if g.Command = strings.TrimSpace(g.Command); g.Command == "" {
				return nil, &ParamError{at + ".command", "say which command, or the words it begins with"}
			}
			g.Path = ""
		default:
			return nil, &ParamError{at + ".kind", `want "edit" or "command"`}
		}
		g.Covers = g.rule(Goal{ID: "-"}).Text()
		out = append(out, g)
	}
	return out, nil
}

// grants are those of a new Goal, checked before its transaction: that one never waits for the outside.
func (s *Service) grants(ctx context.Context, p CreateParams, made *session.Session) ([]Grant, error) {
	if len(p.Grants) == 0 {
		return []Grant{}, nil
	}
	if made != nil {
		return checkGrants(p.Grants, made.Cwd, made.Roots)
	}
	var of session.Session
	err := s.Engine.Store.Read(ctx, func(tx session.Tx) (err error) { of, err = tx.Session(p.Session); return err })
	if err != nil {
		return nil, err
	}
	return checkGrants(p.Grants, of.Cwd, of.Roots)
}

// editable is a directory inside the roots, its links resolved as those of an edited file are. The last parts of it need not exist yet.
func editable(path, cwd string, roots []string) (string, error) {
	if path == "" {
		path = cwd
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(cwd, path)
	}
	real, err := resolved(filepath.Clean(path))
	if err != nil {
		return "", errors.New("the directory cannot be looked at")
	}
	for _, root := range roots {
		r, err := filepath.EvalSymlinks(root)
		if err != nil {
			continue
		}
		if rel, err := filepath.Rel(r, real); err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator)) {
			return real, nil
		}
	}
	return "", fmt.Errorf("want a directory inside %s", strings.Join(roots, " or "))
}

func resolved(path string) (string, error) {
	real, err := filepath.EvalSymlinks(path)
	if !errors.Is(err, fs.ErrNotExist) || filepath.Dir(path) == path {
		return real, err
	}
	dir, err := resolved(filepath.Dir(path))
	return filepath.Join(dir, filepath.Base(path)), err
}

// grantsText lists grants for a person, on one line.
func grantsText(grants []Grant) string {
	var parts []string
	for _, g := range grants {
		parts = append(parts, g.Covers)
	}
	return strings.Join(parts, "; ")
}

// sameGrants compares what two requests grant.
func sameGrants(a, b []Grant) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i].Kind != b[i].Kind || a[i].Path != b[i].Path || a[i].Command != b[i].Command {
			return false
		}
	}
	return true
}

// Grants are what the user allowed beforehand for a run of a Goal: for its own work and its reviews, at the revision they were given for.
func (Hooks) Grants(stx session.Tx, r session.Run) ([]session.Rule, error) {
	if r.Goal == "" {
		return nil, nil
	}
	g, err := in(stx).Goal(r.Goal)
	if err != nil {
		return nil, err
	}
	var out []session.Rule
	for _, grant := range g.Grants {
		if grant.Revision == g.Revision && r.Revision == g.Revision {
			out = append(out, grant.rule(g))
		}
	}
	return out, nil
}
