package tools

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	"holdfast/session"
)

// writer is what every tool that changes files does with its plan.
type writer struct{ o Options }

func (writer) Class() session.Class { return session.StateProbe }
func (writer) Version() string      { return "2" }

func (w writer) Run(ctx context.Context, env session.ToolEnv, pl session.Plan, _ func(session.Output)) (session.Output, error) {
	return w.o.commit(ctx, env, pl)
}

// Probe tells from the files themselves what became of a call.
func (w writer) Probe(_ context.Context, env session.ToolEnv, pl session.Plan) (session.Finding, error) {
	return w.o.probe(env, pl)
}

// outcome is what a file says of its change.
type outcome int

const (
	neither outcome = iota
	before
	after
)

// outcome looks at one file, after what a killed process left beside it was dealt with.
func (s *step) outcome() (outcome, string, error) {
	s.sweep()
	b, info, err := s.place.content()
	if err != nil {
		return neither, "", err
	}
	now := absent
	if b != nil {
		now = digestOf(b)
	}
	exec := func(want string) bool { return s.Exec == "" || info == nil || foldsModes || want == execOf(info) }
	switch {
	case now == s.After && exec(s.Exec):
		return after, now, nil
	case now == s.Before && exec(s.WasExec):
		return before, now, nil
	}
	return neither, now, nil
}

// probe tells from digests which of the files were changed, and removes what a killed process left beside them.
func (o Options) probe(env session.ToolEnv, pl session.Plan) (session.Finding, error) {
	steps, err := o.steps(env, pl)
	if err != nil {
		return unseen(err), nil
	}
	f := session.Finding{Fact: session.FactUnknown, By: session.SettledByProbe, Lookup: session.LookupNothing}
	states, digests := make([]outcome, len(steps)), make([]string, len(steps))
	applied := 0 // they were changed in order
	for i, s := range steps {
		if states[i], digests[i], err = s.outcome(); err != nil {
			return unseen(err), nil
		}
		if states[i] == after && applied == i {
			applied = i + 1
		}
	}
	if f.Evidence = digests[0]; len(steps) > 1 {
		f.Evidence = session.Digest(digests...)
	}
	certain := true
	for i := range states {
		certain = certain && (i < applied && states[i] == after || i >= applied && states[i] == before)
	}
	switch {
	case certain && applied == 0:
		f.Fact, f.Note = session.FactNotStarted, "The file is as it was before the call."
		if len(steps) > 1 {
			f.Note = "The files are as they were before the call."
		}
	case certain:
		f.Fact, f.Output = session.FactCompleted, proven(env, pl, steps, applied)
	case len(steps) == 1:
		f.Note = odd(digests[0])
	default:
		f.Note = "Some files are neither as before nor as intended, or not in the order in which they were to be changed." + found(env, steps, states)
	}
	return f, nil
}

// proven is the result of a call that nobody saw the end of.
func proven(env session.ToolEnv, pl session.Plan, steps []*step, n int) *session.Output {
	out := &session.Output{Digest: session.AppliedDigest(pl.Files, n)}
	switch {
	case n < len(steps):
		out.IsError = true
		out.Text = "Holdfast ended in the middle of this call. Each file says by its digest what became of it:" + each(env, steps, n) +
			"\nWhat was not applied is still to be done; do not repeat what was."
	case len(steps) == 1 && steps[0].After == absent:
		out.Text = "Deleted (proven after a restart: the file is not there)."
	case len(steps) == 1:
		out.Text = fmt.Sprintf("Written, version %s (proven by its digest after a restart).", versionOf(steps[0].After))
	default:
		out.Text = "Applied to every file (proven by their digests after a restart):" + each(env, steps, n)
	}
	return out
}

func odd(now string) string {
	if now == absent {
		return "The file is not there any more: something else has moved or deleted it since the call was planned."
	}
	return fmt.Sprintf("The file is neither as before nor as intended: something else has written it (version %s now).", versionOf(now))
}

// found says what each file says of its change.
func found(env session.ToolEnv, steps []*step, states []outcome) string {
	var b strings.Builder
	for i, s := range steps {
		fmt.Fprintf(&b, "\n%s: %s", shown(env, s.Path), [...]string{"neither", "not applied", "applied"}[states[i]])
	}
	return b.String()
}

// unseen is what a file that cannot be looked at says.
func unseen(err error) session.Finding {
	return session.Finding{Fact: session.FactUnknown, By: session.SettledByProbe, Lookup: session.LookupFile,
		Note: "The file cannot be looked at: " + strings.TrimSuffix(err.Error(), ".") + "."}
}

// sweep removes the temporary files of one change. Those of other calls stay: their process may live. What is neither the old nor (a part of)
// the new content was saved by somebody in the moment in which the process died: it gets its place back.
func (s *step) sweep() {
	dir, err := s.place.parent()
	if err != nil {
		return
	}
	defer func() { _ = dir.Close() }()
	d, err := dir.Open(".")
	if err != nil {
		return
	}
	names, _ := d.Readdirnames(-1) // what cannot be listed stays
	_ = d.Close()
	for _, name := range names {
		if !strings.HasPrefix(name, tempName(s.FileChange, "")) {
			continue
		}
		b, _, err := dir.content(name)
		if err == nil && s.displaced(b) {
			switch now := dir.digest(s.place.base()); {
			case now == s.Before && !strings.Contains(name, "-old-"):
				// never put in place: it is ours, however the disk has left it
			case now == s.After && now != absent:
				err = dir.Rename(name, s.place.base())
			case now == absent:
				err = dir.Link(name, s.place.base())
			default:
				continue // there is something newer; both stay
			}
			if err != nil {
				continue
			}
		}
		_ = dir.Remove(name)
	}
}

// displaced tells whether a leftover is somebody else's content.
func (s *step) displaced(b []byte) bool {
	return digestOf(b) != s.Before && !bytes.HasPrefix(s.New(), b)
}
