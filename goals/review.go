package goals

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"holdfast/session"
)

// Review drives one independent, read-only judgement of a candidate.
type Review struct {
	Store session.Store
	Tools []session.Tool // readers and submit_review
	Code  []session.Tool // what evidence commands run with
}

var _ session.Driver = Review{}

// observation is what files were like at one moment.
type observation struct {
	files map[string]fileState // by absolute path
	read  map[string]string    // digests of what was read and may be cited
}

type fileState struct {
	digest string // "absent" without a file
	text   []byte // only of requirement files, capped
	large  bool   // too large for that
}

const (
	maxPatternFile = 4 << 20
	outside        = "outside the workspace" // in place of a digest
)

// Observe reads the files that requirements name and digests what the Goal wrote.
func (r Review) Observe(ctx context.Context, s session.Session, run session.Run) (any, error) {
	var reqs []Requirement
	var paths, read []string
	err := r.Store.Read(ctx, func(stx session.Tx) error {
		g, err := in(stx).Goal(run.Goal)
		if err != nil {
			return err
		}
		if reqs, err = in(stx).Requirements(g.ID, g.Revision); err != nil {
			return err
		}
		effects, err := stx.EffectsOf(g.Run)
		for _, ef := range effects {
			for _, f := range ef.Plan.Files {
				paths = append(paths, f.Path)
			}
		}
		if err != nil {
			return err
		}
		own, err := stx.EffectsOf(run.ID)
		for _, ef := range append(effects, own...) {
			if reads(ef) {
				read = append(read, ef.Plan.Paths[0])
			}
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	o := observation{files: map[string]fileState{}, read: map[string]string{}}
	if run.Input != nil { // at the end: what was cited, against what is there
		seen := observation{files: map[string]fileState{}}
		for _, p := range read {
			if err := seen.look(p, false); err != nil {
				return nil, err
			}
		}
		o.read = seen.digests()
	}
	for _, p := range paths {
		if err := o.look(p, false); err != nil {
			return nil, err
		}
	}
	for _, q := range reqs {
		if q.Kind == KindFile {
			if path := absolute(s, q.Path); !inside(s, path) {
				o.files[path] = fileState{digest: outside}
			} else if err := o.look(path, true); err != nil {
				return nil, err
			}
		}
	}
	return o, nil
}

func absolute(s session.Session, path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(s.Cwd, path)
}

// inside tells whether a path lies in a root of the session once its links are resolved.
func inside(s session.Session, path string) bool {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	return slices.ContainsFunc(s.Roots, func(root string) bool {
		for _, r := range []string{root, evaluated(root)} {
			if within(r, path) {
				return true
			}
		}
		return false
	})
}

// within tells by their spelling whether a path is a directory or lies in it.
func within(root, path string) bool {
	rel, err := filepath.Rel(root, path)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, "../")
}

func evaluated(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	return path
}

func (o observation) look(path string, keep bool) error {
	st, err := digestFile(path, keep)
	var pe *fs.PathError
	switch {
	case errors.Is(err, fs.ErrNotExist):
		st.digest = "absent"
	case errors.As(err, &pe):
		st.digest = "unreadable"
	case err != nil:
		return fmt.Errorf("read %s: %w", path, err)
	}
	o.files[path] = st
	return nil
}

// digestFile reads a regular file. A pipe or a device, which may never end, is not opened.
func digestFile(path string, keep bool) (st fileState, err error) {
	info, err := os.Stat(path)
	if err != nil {
		return st, err
	}
	if !info.Mode().IsRegular() {
		return st, &fs.PathError{Op: "read", Path: path, Err: errors.ErrUnsupported}
	}
	f, err := os.Open(path)
	if err != nil {
		return st, err
	}
	defer func() { _ = f.Close() }()
	sum := sha256.New()
	var text bytes.Buffer
	to := io.Writer(sum)
	if st.large = info.Size() > maxPatternFile; keep && !st.large {
		to = io.MultiWriter(sum, &text)
	}
	if _, err := io.Copy(to, f); err != nil {
		return st, err
	}
	st.digest, st.text = "sha256:"+hex.EncodeToString(sum.Sum(nil)), text.Bytes()
	return st, nil
}

// changed tells whether a file is not what it was at the start of the review.
func (o observation) changed(before map[string]string) bool {
	for path, st := range o.files {
		if d, ok := before[path]; ok && d != st.digest {
			return true
		}
	}
	return false
}

// digests is what a review remembers of an observation.
func (o observation) digests() map[string]string {
	m := map[string]string{}
	for path, st := range o.files {
		m[path] = st.digest
	}
	return m
}

// Begin puts the objective and the stored evidence before the reviewer, never the worker's claims, and plans the commands that
// requirements ask for and that have no fresh receipt.
func (r Review) Begin(stx session.Tx, b *session.Begin) error {
	if b.Attempt.Mode != session.ModeFirst {
		return b.Add(&session.Item{Kind: session.ItemNote, State: session.ItemComplete, Body: session.ItemBody{Text: "[Go on with the review.]"}})
	}
	tx := in(stx)
	b.Run.Input = []byte(encode(b.Observed.(observation).digests()))
	g, reqs, err := load(tx, b.Run.Goal)
	if err != nil {
		return err
	}
	ev, err := gather(tx, g, b.Run.ID, reqs)
	if err != nil {
		return err
	}
	live, err := session.LiveCommands(tx, g.Session, g.Run)
	if err != nil {
		return err
	}
	text := contract(g, reqs) + "\nStored evidence, oldest first:\n" + ev.text()
	if len(live) > 0 {
		text += "\nStill running in the background; what they go on to do may change what you see:\n"
		for _, c := range live {
			text += "- " + c.Command + "\n"
		}
	}
	if err := b.Add(&session.Item{Kind: session.ItemNote, State: session.ItemComplete, Body: session.ItemBody{Text: text}}); err != nil {
		return err
	}
	var calls []session.Call
	for _, q := range reqs {
		if q.Kind == KindCommand && q.Confirmed && q.Result != Waived && ev.receipt(q.Command) == nil {
			calls = append(calls, session.Call{ID: "code-" + q.ID + "-" + string(b.Attempt.ID), Name: "shell", Args: encode(map[string]string{"command": q.Command})})
		}
	}
	// What an earlier review said does not carry over.
	for i := range reqs {
		if reqs[i].Result != Waived {
			reqs[i].Result, reqs[i].Reason, reqs[i].JudgedBy = Unknown, "", ""
		}
	}
	if err := tx.PutRequirements(g.ID, g.Revision, reqs); err != nil {
		return err
	}
	if len(calls) == 0 {
		return nil
	}
	return b.AddCalls(calls)
}

const reviewer = "You are an independent reviewer. You judge whether a goal has been achieved, from the stored evidence and from what you read in " +
	"the work tree yourself. You cannot change anything. The worker's own statements are not evidence. For each requirement decide met, unmet " +
	"or unknown, and cite for each met one evidence: an evidence id from the list, or the call id of a read you made. Finish by calling " +
	"submit_review once."

// Setup gives the reviewer readers only.
func (r Review) Setup(_ session.Tx, s session.Session, _ session.Run) (session.Setup, error) {
	return session.Setup{System: reviewer + "\nWorking directory: " + s.Cwd, Tools: r.Tools, CodeTools: r.Code, Reviewer: true}, nil
}

// evidence is what is stored about a Goal's work.
type evidence struct {
	effects   []session.Effect
	lastWrite int64 // the place of the last change that is not itself an evidence command
}

// gather collects the settled calls of the Goal's work and of one review.
func gather(tx Tx, g Goal, review session.RunID, reqs []Requirement) (evidence, error) {
	var ev evidence
	commands := map[string]bool{}
	for _, q := range reqs {
		if q.Kind == KindCommand && q.Confirmed && q.Result != Waived { // what is not run as evidence is a change like any other
			commands[q.Command] = true
		}
	}
	for _, run := range []session.RunID{g.Run, review} {
		effects, err := tx.EffectsOf(run)
		if err != nil {
			return ev, err
		}
		for _, ef := range effects {
			if session.Bookkeeping[ef.Tool] {
				continue
			}
			ev.effects = append(ev.effects, ef)
			if ef.Changes() && !commands[ef.Plan.Command] {
				ev.lastWrite = max(ev.lastWrite, ef.SettledSeq)
			}
		}
	}
	slices.SortStableFunc(ev.effects, func(a, b session.Effect) int { return int(a.SettledSeq - b.SettledSeq) })
	return ev, nil
}

// fresh tells whether an effect is completed and nothing was changed after it.
func (ev evidence) fresh(ef session.Effect) bool {
	return ef.Fact == session.FactCompleted && ef.SettledSeq >= ev.lastWrite
}

// receipt is the newest fresh run of a command.
func (ev evidence) receipt(command string) *session.Effect {
	for _, ef := range slices.Backward(ev.effects) {
		if ef.Plan.Command == command && command != "" && ev.fresh(ef) && ef.ExitCode != nil {
			return &ef
		}
	}
	return nil
}

func (ev evidence) text() string {
	var b strings.Builder
	for _, ef := range ev.effects {
		fmt.Fprintf(&b, "- %s: %s", ef.ID, ef.Plan.Title)
		if ef.ExitCode != nil {
			fmt.Fprintf(&b, ", exit code %d", *ef.ExitCode)
		}
		switch {
		case ef.Fact != session.FactCompleted:
			fmt.Fprintf(&b, " [%s]", ef.Fact)
		case !ev.fresh(ef):
			b.WriteString(" [older than the last change]")
		}
		if ef.ResultDigest != "" {
			b.WriteString(", result " + ef.ResultDigest)
		}
		b.WriteByte('\n')
	}
	if len(ev.effects) == 0 {
		return "(none)\n"
	}
	return b.String()
}

// End compares versions and digests once more and commits the judgement.
func (r Review) End(stx session.Tx, e *session.End) error {
	tx := in(stx)
	var before map[string]string
	if err := json.Unmarshal(e.Run.Input, &before); err != nil {
		return fmt.Errorf("read what the review saw at its start: %w", err)
	}
	e.Run.Desired, e.Run.Phase, e.Run.StopReason, e.Run.EndedAt = session.DesiredDone, session.PhaseEnded, "end_turn", e.Now
	g, reqs, err := load(tx, e.Run.Goal)
	if err != nil {
		return err
	}
	work, err := tx.Run(g.Run)
	if err != nil {
		return err
	}
	if g.Status != Active || g.Revision != e.Run.Revision || g.ControlVersion != e.Run.ControlVersion {
		return nil // a control came first; this judgement is about something else
	}
	ev, err := gather(tx, g, e.Run.ID, reqs)
	if err != nil {
		return err
	}
	after := e.Observed.(observation)
	judge(e.Session, reqs, ev, after)
	if err := recheck(tx, reqs, ev, after); err != nil {
		return err
	}
	missing := verdicts(reqs)
	for i := range reqs {
		reqs[i].SentBack = reqs[i].SentBack || reqs[i].Result == Unmet && !reqs[i].Confirmed
	}
	unknown, err := session.UnknownOf(tx, g.Session)
	if err != nil {
		return err
	}
	if len(unknown) > 0 {
		missing = append(missing, fmt.Sprintf("- %d operation(s) with an unknown outcome are not settled", len(unknown)))
	}
	t, err := todoOf(tx, g.ID)
	if err != nil {
		return err
	}
	if why := t.refusal(); why != "" {
		missing = append(missing, why)
	}
	if after.changed(before) {
		missing = append(missing, "- files changed while the review was running; it must be repeated")
	}
	if err := tx.PutRequirements(g.ID, g.Revision, reqs); err != nil {
		return err
	}
	if len(missing) == 0 {
		work.Desired, work.Phase, work.StopReason, work.ReasonCode, work.EndedAt = session.DesiredDone, session.PhaseEnded, "end_turn", session.CodeNone, e.Now
		if err := tx.UpdateRun(work, e.Now); err != nil {
			return err
		}
		left, err := whatIsLeft(tx, g, reqs)
		if err != nil {
			return err
		}
		return finish(tx, g, Achieved, session.CodeNone, left, e.Now, e.NewID)
	}
	if g.Reviewed != g.Progress {
		g.Reviewed, g.Reviews = g.Progress, 0
	}
	g.Reviews++
	g.Candidate, g.Feedback, g.ReasonCode, g.UpdatedAt = "", strings.Join(missing, "\n"), session.CodeUnmet, e.Now
	if err := tx.UpdateGoal(g, e.Now); err != nil {
		return err
	}
	work.Phase, work.ReasonCode = session.PhaseQueued, session.CodeNone
	return tx.UpdateRun(work, e.Now)
}

// reads tells whether a call has shown one file.
func reads(ef session.Effect) bool {
	return ef.Tool == "read" && ef.Fact == session.FactCompleted && len(ef.Plan.Paths) == 1
}

// recheck takes back what rests on a file that is no longer what it was when it was read.
func recheck(tx Tx, reqs []Requirement, ev evidence, o observation) error {
	for i := range reqs {
		q := &reqs[i]
		for _, ef := range ev.effects {
			if q.Kind != KindSemantic || q.Result != Met || !reads(ef) || !slices.Contains(q.Evidence, string(ef.ID)) {
				continue
			}
			it, err := tx.Item(ef.Item)
			if err != nil {
				return err
			}
			out := it.Body.Tool.Output // without a digest for what is too large
			if now, ok := o.read[ef.Plan.Paths[0]]; ok && out != nil && out.Digest != "" && out.Digest != now {
				q.Result, q.Reason = Unknown, ef.Plan.Paths[0]+" is no longer what it was when it was read as evidence"
			}
		}
	}
	return nil
}

// judge decides what code can decide.
func judge(s session.Session, reqs []Requirement, ev evidence, o observation) {
	for i := range reqs {
		q := &reqs[i]
		switch {
		case q.Result == Waived:
		case q.Kind == KindCommand:
			q.Result, q.Reason, q.JudgedBy, q.Evidence = Unknown, "the command has no fresh receipt", "code", nil
			if !q.Confirmed {
				q.Reason = "it was not run: nobody confirmed it"
			}
			if ef := ev.receipt(q.Command); ef != nil {
				q.Result, q.Reason = Met, fmt.Sprintf("exit code %d", *ef.ExitCode)
				if *ef.ExitCode != 0 {
					q.Result = Unmet
				}
				q.Evidence = []string{string(ef.ID)}
			}
		case q.Kind == KindFile:
			st := o.files[absolute(s, q.Path)]
			q.Result, q.JudgedBy, q.Evidence = Met, "code", []string{st.digest}
			q.Reason = "the file is there"
			if st.digest == "absent" || st.digest == "unreadable" || st.digest == outside {
				q.Result, q.Reason = Unmet, "the file is "+st.digest
			} else if q.Pattern != "" && st.large {
				q.Result, q.Reason = Unmet, fmt.Sprintf("the file is larger than the %d MiB that are matched with a pattern", maxPatternFile>>20)
			} else if q.Pattern != "" && !regexp.MustCompile(q.Pattern).Match(st.text) {
				q.Result, q.Reason = Unmet, "the file does not match /"+q.Pattern+"/"
			}
		}
	}
}

// leftUnmet says what an accepted Goal leaves open of what nobody confirmed; "" when there is nothing.
func leftUnmet(reqs []Requirement) string {
	var ids []string
	for _, q := range reqs {
		if q.Result != Met && q.Result != Waived {
			ids = append(ids, q.ID+" is "+string(q.Result))
		}
	}
	if len(ids) == 0 {
		return ""
	}
	return "Read out of the objective and never confirmed: " + strings.Join(ids, ", ")
}

// whatIsLeft is what the record of an achieved Goal adds: requirements that did not bind, and commands that outlive it.
func whatIsLeft(tx Tx, g Goal, reqs []Requirement) (string, error) {
	live, err := session.LiveCommands(tx, g.Session, g.Run)
	if err != nil {
		return "", err
	}
	var parts []string
	if unmet := leftUnmet(reqs); unmet != "" {
		parts = append(parts, unmet)
	}
	for _, c := range live {
		parts = append(parts, "Still running in the background: "+firstLine(c.Command))
	}
	return strings.Join(parts, ". "), nil
}

// verdicts lists what stands between the Goal and acceptance.
func verdicts(reqs []Requirement) []string {
	var missing []string
	for _, q := range reqs {
		if q.Result != Met && q.Result != Waived && q.binds() {
			missing = append(missing, strings.TrimSuffix(fmt.Sprintf("- %s is %s: %s", q.ID, q.Result, q.Reason), ": "))
		}
	}
	return missing
}

// Failed blocks the Goal: it cannot be accepted while the endpoint refuses.
func (r Review) Failed(stx session.Tx, e *session.End, code session.Code, reason string) error {
	tx := in(stx)
	e.Run.Desired, e.Run.Phase, e.Run.StopReason, e.Run.EndedAt = session.DesiredDone, session.PhaseEnded, "error", e.Now
	e.Run.ReasonCode, e.Run.Reason = code, reason
	g, err := tx.Goal(e.Run.Goal)
	if err != nil {
		return err
	}
	work, err := tx.Run(g.Run)
	if err != nil {
		return err
	}
	if g.Status != Active {
		return nil
	}
	if err := block(tx, g, &work, code, reason, e); err != nil {
		return err
	}
	return tx.UpdateRun(work, e.Now)
}
