package recovery

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"holdfast/session"
)

// crashLoop is how many owners in a row may die in a run without progress before a person is asked.
const crashLoop = 2

// Runner gathers facts, decides, and prepares what is stored.
type Runner struct{}

var _ session.Recoverer = Runner{}

// Recover says how an inherited run goes on.
func (Runner) Recover(ctx context.Context, in session.Inherited) (session.Verdict, error) {
	g := gathering{in: in, findings: map[session.EffectID]session.Finding{}}
	if err := g.load(ctx); err != nil {
		return session.Verdict{}, err
	}
	if err := g.probe(ctx); err != nil {
		return session.Verdict{}, err
	}
	f, err := g.facts(ctx)
	if err != nil {
		return session.Verdict{}, err
	}
	d := Decide(f)
	v := session.Verdict{Rule: d.Rule, Wait: d.Code, Died: g.in.Last.Died, Findings: g.findings}
	if d.Action == Wait {
		v.Reason = g.why(ctx, d.Code)
		return v, nil
	}
	v.Mode = modes[d.Action]
	v.CloseOpen, v.Rollback = d.Action == NewTurn || d.Action == Again, d.Action == Again
	switch {
	case d.Action == Again:
		v.Note = g.begun()
	case d.Action == NewTurn, d.Action == Checkpoint && len(g.findings) > 0, d.Action == Turn && in.Last.State == session.AttemptInterrupted, f.Redo == RedoFromHere:
		v.Note = g.note(ctx, f)
	}
	if v.Entry = g.now; v.Entry.Tree == "" && !v.Rollback && f.Attempt == LostTry && in.Last.EntryTree != "" {
		v.Entry = g.entry(ctx)
	}
	if f.Attempt == LostTry {
		v.Shown = g.shown()
	}
	return v, nil
}

var modes = map[Action]session.AttemptMode{Reconnect: session.ModeReconnect, Checkpoint: session.ModeCheckpoint, NewTurn: session.ModeNewTurn,
	First: session.ModeFirst, Turn: session.ModeTurn, Again: session.ModeNewTurn}

var autos = map[session.Code]Auto{session.CodeRecoveryOff: AutoOff, session.CodeNotAttached: AutoAttached}

// gathering is one look at a run.
type gathering struct {
	in        session.Inherited
	effects   []session.Effect // of the run, unsettled
	open      []session.Item
	approvals []session.Approval
	streaming bool
	held      session.Code // what holds back work that was left behind
	findings  map[session.EffectID]session.Finding
	now       session.Checkpoint // the work tree as the next attempt finds it
	stalled   session.Stalled
	environ   []string // for probes: that of the work
}

func (g *gathering) load(ctx context.Context) error {
	in := g.in
	return in.Engine.Store.Read(ctx, func(tx session.Tx) error {
		open, err := tx.OpenEffects(in.Session.ID)
		if err != nil {
			return fmt.Errorf("load open calls: %w", err)
		}
		if g.environ, err = in.Engine.CommandEnv(tx, g.profile()); err != nil {
			return err
		}
		for _, ef := range open {
			if ef.Run == in.Run.ID {
				g.effects = append(g.effects, ef)
			}
		}
		if g.open, err = tx.OpenItems(in.Session.ID); err != nil {
			return fmt.Errorf("load open items: %w", err)
		}
		if g.approvals, err = tx.OpenApprovals(in.Session.ID); err != nil {
			return fmt.Errorf("load questions: %w", err)
		}
		if g.held, err = in.Engine.HeldBack(tx, in.Session, in.Run); err != nil {
			return fmt.Errorf("look whether it goes on by itself: %w", err)
		}
		reqs, err := tx.RequestsOf(in.Run.ID)
		if err != nil {
			return fmt.Errorf("load requests: %w", err)
		}
		if n := len(reqs); n > 0 && in.Last.State == session.AttemptRunning && reqs[n-1].Attempt == in.Last.ID {
			// A request that is not settled, or whose answer was cut when the process let go, has no stored answer.
			g.streaming = reqs[n-1].Purpose == session.PurposeAnswer && reqs[n-1].State != session.RequestSettled && !answered(tx, in, reqs[n-1])
		}
		return nil
	})
}

// answered tells whether a request without usage was answered all the same: its answer is stored complete.
func answered(tx session.Tx, in session.Inherited, request session.Request) bool {
	thread := ""
	if in.Run.Kind == session.RunVerification {
		thread = string(in.Run.ID)
	}
	for before := int64(0); ; { // the run's last request: its answer is among the newest items
		items, err := tx.Latest(in.Session.ID, thread, before, 50)
		if err != nil || len(items) == 0 {
			return false
		}
		for _, it := range items {
			if it.Body.Response == request.ID && (it.Kind == session.ItemTool || it.State == session.ItemComplete) {
				return true
			}
			if before = it.Seq; it.Attempt != "" && it.Attempt != request.Attempt {
				return false // of an earlier attempt: the request belongs to the last
			}
		}
	}
}

// probe asks the tools what became of the calls that were dispatched.
func (g *gathering) probe(ctx context.Context) error {
	for _, ef := range g.effects {
		if ef.State != session.EffectDispatched || ef.Fact == session.FactUnknown && ef.Lookup != session.LookupFile {
			continue
		}
		f := session.Finding{Fact: session.FactUnknown, Lookup: session.LookupNothing, Note: unseen(ef)}
		for _, tool := range g.in.Engine.Tools {
			if p, ok := tool.(session.Prober); ok && tool.Spec().Name == ef.Tool {
				env := session.ToolEnv{Cwd: g.in.Session.Cwd, Roots: g.in.Session.Roots, Env: g.environ, RunDir: ef.Dir}
				var err error
				if f, err = p.Probe(ctx, env, ef.Plan); err != nil {
					return fmt.Errorf("probe call %s: %w", ef.ID, err)
				}
			}
		}
		g.findings[ef.ID] = f
	}
	return nil
}

// unseen is why the outcome of a call is unknown whose process is gone.
func unseen(ef session.Effect) string {
	if ef.Plan.External != nil {
		return "Holdfast ended when the call may have been sent and no answer was stored."
	}
	return "Holdfast ended when the call may have been made and no result was stored."
}

func (g *gathering) facts(ctx context.Context) (Facts, error) {
	in := g.in
	redo, err := g.redo(ctx)
	f := Facts{Redo: redo, Desired: in.Run.Desired, Closed: in.Session.Closed, Approval: NoQuestion, Directory: g.directory(), Model: g.model(), Tools: g.tools(ctx),
		Attempt: NeverTried, Calls: CallsClosed, Streaming: g.streaming, Auto: autos[g.held]}
	if f.Auto == "" {
		f.Auto = AutoGoes
	}
	switch in.Last.State {
	case "":
	case session.AttemptInterrupted:
		f.Attempt = EndedTry
		if in.Last.HandedTo != "" {
			f.Attempt = HandedTry
		}
		f.CrashLoop = in.Run.Deaths >= crashLoop
	case session.AttemptRunning:
		f.Attempt = LostTry
		deaths := in.Run.Deaths
		if in.Last.Died {
			deaths++
		}
		f.CrashLoop = in.Run.CommitPoint <= in.Last.StartPoint && deaths >= crashLoop
	default:
		f.Attempt = EndedTry
		f.CrashLoop = in.Run.Deaths >= crashLoop
	}
	for _, p := range g.approvals {
		switch {
		case p.Run != in.Run.ID:
		case p.State == session.ApprovalPending:
			f.Approval = Pending
		case f.Approval == NoQuestion:
			f.Approval = Answered
		}
	}
	rank := map[Calls]int{CallsPlanned: 1, CallsLive: 2, CallsUnseen: 3, CallsUnknown: 4}
	for _, ef := range g.effects {
		c := CallsClosed
		switch found, ok := g.findings[ef.ID]; {
		case ok && found.Fact == session.FactRunning:
			c = CallsLive
		case ok && found.Fact == session.FactUnknown && found.Lookup == session.LookupFile:
			c = CallsUnseen
		case ok && found.Fact == session.FactUnknown:
			c = CallsUnknown
		case ef.State == session.EffectPlanned:
			c = CallsPlanned
		}
		if rank[c] > rank[f.Calls] {
			f.Calls = c
		}
	}
	return f, err
}

// redo looks whether the last attempt stalled, and whether what it changed can be put back without a person.
func (g *gathering) redo(ctx context.Context) (Redo, error) {
	switch {
	case g.in.Run.Redo == session.RedoEntry:
		return RedoAll, nil
	case g.in.Run.Redo == session.RedoKeep:
		return RedoFromHere, nil
	case g.in.Last.State != session.AttemptStalled:
		return NoRedo, nil
	}
	var err error
	if g.stalled, err = g.in.Engine.LastTurn(ctx, g.in.Run); err != nil {
		return NoRedo, fmt.Errorf("look at what the stalled turn changed: %w", err)
	}
	if g.stalled.Safe && g.stalled.Times == 1 {
		return RedoProven, nil
	}
	return RedoConfirm, nil
}

// entry records the work tree that the next attempt begins in. When that fails the work goes on without.
func (g *gathering) entry(ctx context.Context) session.Checkpoint {
	now, err := g.in.Engine.Workspace.Snapshot(ctx, g.in.Session.Cwd)
	if err != nil {
		g.in.Engine.Log.Error().Err(err).Str("session_id", string(g.in.Session.ID)).Msg("recording the work tree failed; going on without")
	}
	return now
}

// begun tells the next turn that it begins again.
func (g *gathering) begun() string {
	why := "The user asked for it."
	if g.in.Run.Redo == session.RedoNone {
		why = fmt.Sprintf("Your last attempt did nothing for %s and was ended.", g.in.Engine.Stall)
	}
	return "[" + why + " Begin again from the request. What was put back, if anything, is said above. Look before you act.]"
}

func (g *gathering) directory() Directory {
	id, err := g.in.Engine.Workspace.Identity(g.in.Session.Cwd)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return DirMissing
	case err != nil:
		return DirMissing
	case id != g.in.Session.Identity && len(g.findings) == 0:
		return DirChanged // with a call in flight, the call itself may have changed it
	}
	return DirSame
}

func (g *gathering) model() Model {
	if _, err := g.in.Engine.ModelFor(g.profile()); err != nil {
		return ModelMissing
	}
	if !g.in.Engine.Fits(g.profile()) {
		return ModelDiffers
	}
	return ModelSame
}

// profile is what the work runs with.
func (g *gathering) profile() session.Profile { return g.in.Run.Profile.Or(g.in.Session.Profile) }

// tools looks whether every call that was planned can be made here.
func (g *gathering) tools(ctx context.Context) Tools {
	if g.missing(ctx) != "" {
		return ToolsMissing
	}
	return ToolsHere
}

// missing names the server that a planned call needs and only a client can bring back.
func (g *gathering) missing(ctx context.Context) string {
	box := g.in.Engine.Toolbox
	for _, ef := range g.effects {
		if box == nil || ef.State != session.EffectPlanned {
			continue
		}
		if m := box.Missing(ctx, g.in.Session, ef.Tool); m != "" {
			return m
		}
	}
	return ""
}

func (g *gathering) why(ctx context.Context, code session.Code) string {
	d := session.Diagnostics[code]
	switch code {
	case session.CodeEnvironment:
		return session.Differs(g.profile(), g.in.Engine.HereFor(g.profile().Choice()))
	case session.CodeWorkspaceChanged:
		now, _ := g.in.Engine.Workspace.Identity(g.in.Session.Cwd) // it is there, or the code would be another
		return fmt.Sprintf("%s %s (%s)", d.Sentence, changed(g.in.Session.Identity, now), g.in.Session.Cwd)
	case session.CodeDirectoryMissing:
		return session.DirectoryMissing(g.in.Session.Cwd)
	case session.CodeServerMissing:
		return d.Sentence + " (" + g.missing(ctx) + ")"
	case session.CodeStalled:
		return fmt.Sprintf("It did nothing for %s.%s /redo puts that back as far as it is unchanged since and begins again; /retry goes on as it is; /diff shows it.",
			g.in.Engine.Stall, g.stalled.List())
	case session.CodeModelUnavailable:
		if _, err := g.in.Engine.ModelFor(g.profile()); err != nil {
			return err.Error()
		}
	}
	return d.Sentence
}

// changed says in words what differs between two identities of a directory: the directory itself, or what HEAD names in it.
func changed(before, now string) string {
	dir, ref, _ := strings.Cut(before, " ")
	dirNow, refNow, _ := strings.Cut(now, " ")
	var parts []string
	if dir != dirNow {
		parts = append(parts, "Another directory is in its place.")
	}
	if ref != refNow {
		parts = append(parts, fmt.Sprintf("It was on %s and is on %s now.", onRef(ref), onRef(refNow)))
	}
	return strings.Join(append(parts, "/retry goes on in it as it is now; it also goes on when it is as it was."), " ")
}

func onRef(ref string) string {
	switch ref {
	case "no git":
		return "no git branch"
	case "detached":
		return "no branch (a detached HEAD)"
	}
	return strings.TrimPrefix(ref, "refs/heads/")
}

// note tells the next turn what never started, what is unknown, what is known after all, and what the work tree looks like now.
func (g *gathering) note(ctx context.Context, f Facts) string {
	var b strings.Builder
	b.WriteString("[Holdfast was restarted while you were working. The work tree is as you left it. Look before you act.]\n")
	if f.Streaming {
		b.WriteString("Your last answer was cut off; what was stored of it is above. Go on from there without repeating it.\n")
	}
	for _, ef := range g.effects {
		title := ef.Plan.Title
		if title == "" {
			title = ef.Tool
		}
		switch found, ok := g.findings[ef.ID]; {
		case ok && found.Fact == session.FactUnknown:
			fmt.Fprintf(&b, "Outcome unknown, never repeat it blindly: %s (%s)\n", title, found.Note)
		case ok && found.Fact == session.FactNotStarted, ef.State == session.EffectPlanned && f.Calls == CallsUnknown, ef.State == session.EffectPlanned && f.Streaming:
			fmt.Fprintf(&b, "Never started: %s\n", title)
		case ok && found.Fact == session.FactCompleted:
			fmt.Fprintf(&b, "Ended meanwhile, its result is above: %s\n", title)
		}
	}
	status, now := g.in.Engine.Workspace.Status(ctx, g.in.Session.Cwd, g.in.Last.EntryTree)
	g.now = now
	b.WriteString(status)
	return b.String()
}

// shown is the one line for the user.
func (g *gathering) shown() string {
	what := "your request"
	switch g.in.Run.Kind {
	case session.RunGoal:
		what = "the goal"
	case session.RunVerification:
		return "" // a review is not chat
	}
	return fmt.Sprintf("Holdfast was restarted; continuing %s of %s.", what, g.in.Run.CreatedAt.Local().Format("15:04"))
}
