package acp

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"holdfast/acp/rpc"
	"holdfast/goals"
	"holdfast/internal/fault"
	"holdfast/session"
)

// Waiting times towards a client.
const (
	// quiet is the silence after session/load and session/resume: some clients take an update right after the answer for an endless replay.
	quiet = 500 * time.Millisecond
	// confirmWithin is how long a cancelled prompt waits for the owner to stop before it is answered all the same.
	confirmWithin = time.Second
	// burst is how long a prompt that started a Goal stays open, so that the client's Stop button works.
	burst = 10 * time.Minute
	// steerWithin: a prompt this soon after a cancelled answer is one act with the cancel.
	steerWithin = time.Second
)

// follower shows one session to the client. Everything but post belongs to its goroutine.
type follower struct {
	a      *Agent
	b      *Backend
	id     session.SessionID
	sub    *session.Subscription
	tasks  chan func()
	untold chan struct{} // rings when there is something to tell
	gone   chan struct{} // closed when the goroutine has ended
	ctx    context.Context
	stop   context.CancelFunc

	seq      int64 // the last event shown
	known    int64 // up to here the client knows the history; of what is closed there, items holds nothing
	quietTil time.Time
	late     map[session.RunID]session.Run // runs met on a full page: their items may come on the next
	items    map[session.ItemID]*shownItem
	muted    map[session.RunID]bool // runs whose prompt was answered as cancelled before they stopped
	own      map[session.RunID]bool // prompts of this connection: the client shows them itself
	prompts  map[session.RunID]*openPrompt
	held     []*openPrompt // prompts that stay open for a goal
	goalDue  bool          // held prompts are looked at when the log has been read
	asking   map[session.ApprovalID]*question
	ongoing  map[session.ItemID]*ongoing // calls that were shown as running
	mode     session.Mode
	choice   session.Choice
	title    string
	cancel   cancelled
	// toldOwner is what the client was told of the process that has the session, "" while there is nothing to tell.
	toldOwner string
	// toldParked is why each request waits for a person, as far as the client was told.
	toldParked map[session.RunID]session.Code
	// planShown is a digest of the plan that the client has, "" for none.
	planShown string
	meter     meter
	stops     atomic.Int32 // cancels that have arrived and are not stored yet
}

// shownItem is what the client was told of an item.
type shownItem struct {
	text   int // bytes of text sent
	closed bool
	tool   string // digest of the last tool update
}

// openPrompt is a session/prompt that has not been answered.
type openPrompt struct {
	req    *rpc.Request
	goal   string // set when it stays open for a goal
	timers []*time.Timer

	cancelled bool // the client has stopped its goal; what becomes of the goal afterwards makes no difference
	stopping  bool // what the goal was doing when it was stopped has not ended yet
	overdue   bool // that took too long
}

func (p *openPrompt) answer(f *follower, stop string) {
	for _, t := range p.timers {
		t.Stop()
	}
	p.req.Reply(promptResult(stop))
	if stop == "cancelled" {
		f.cancel.answered = f.a.Now()
	}
}

func (p *openPrompt) fail(e *rpc.Error) {
	for _, t := range p.timers {
		t.Stop()
	}
	p.req.Fail(e)
}

// question is a permission request on its way.
type question struct {
	cancel context.CancelFunc
	parked bool // the client gave no answer; it is not asked again on this connection until something changes
	stray  bool // raised while no prompt was open: some clients never answer that, and some never show it
}

// cancelled is the last cancel of this connection.
type cancelled struct {
	command  string
	answered time.Time
}

func (a *Agent) newFollower(b *Backend, s session.Session) *follower {
	ctx, stop := context.WithCancel(a.ctx)
	return &follower{a: a, b: b, id: s.ID, sub: b.Engine.Subscribe(s.ID), tasks: make(chan func(), 64), untold: make(chan struct{}, 1), gone: make(chan struct{}), ctx: ctx, stop: stop,
		seq: s.LastSeq, items: map[session.ItemID]*shownItem{}, late: map[session.RunID]session.Run{}, muted: map[session.RunID]bool{}, own: map[session.RunID]bool{},
		prompts: map[session.RunID]*openPrompt{}, toldParked: map[session.RunID]session.Code{}, asking: map[session.ApprovalID]*question{}, ongoing: map[session.ItemID]*ongoing{}, mode: s.Mode, choice: s.Choice, title: s.Title}
}

// post runs fn in the follower's goroutine. It is dropped when the follower has ended.
func (f *follower) post(fn func()) {
	select {
	case f.tasks <- fn:
	case <-f.ctx.Done():
	}
}

// after runs fn in the follower's goroutine once d has passed.
func (f *follower) after(d time.Duration, fn func()) *time.Timer {
	return time.AfterFunc(d, func() { f.post(fn) })
}

func (f *follower) loop() {
	defer close(f.gone)
	defer f.sub.Close()
	defer f.offerBuffers()()
	defer func() {
		for _, q := range f.asking {
			q.cancel()
		}
	}()
	for {
		select {
		case <-f.ctx.Done():
			return
		case fn := <-f.tasks:
			fn()
		case <-f.untold:
			f.tell()
		case <-f.sub.Bell():
			f.runTasks() // what was posted before the log grew comes first
			f.drain()
		}
	}
}

func (f *follower) runTasks() {
	for {
		select {
		case fn := <-f.tasks:
			fn()
		default:
			return
		}
	}
}

func (f *follower) isQuiet() bool { return f.a.Now().Before(f.quietTil) }

// hush keeps silent for a moment and then catches up.
func (f *follower) hush() {
	if fault.Without("load_gap") {
		f.wakeUp()
		return
	}
	f.quietTil = f.a.Now().Add(quiet)
	f.after(quiet, f.wakeUp)
}

// wakeUp ends the silence.
func (f *follower) wakeUp() {
	f.quietTil = time.Time{}
	f.begin()
}

// begin sends what a client should know of a session it has just opened, what happened meanwhile, and the questions that are open: those
// come last, because a question shows its call, and what was said before the call comes before it.
func (f *follower) begin() {
	f.send(commandsUpdate())
	f.goal()
	f.plan()
	f.usage()
	f.catchUp()
	f.questions()
	f.announce()
	f.ownerAtOpen()
	f.parkedAtOpen()
}

// questions raises the questions that are open.
func (f *follower) questions() {
	var open []session.Approval
	err := f.b.Engine.Store.Read(f.ctx, func(tx session.Tx) (err error) { open, err = tx.OpenApprovals(f.id); return err })
	if err != nil {
		f.fail(err, "reading open questions failed")
		return
	}
	for _, p := range open {
		f.approval(p, true)
	}
	f.tell()
}

func (f *follower) fail(err error, what string) {
	if f.ctx.Err() == nil {
		f.a.Log.Error().Err(err).Str("session_id", string(f.id)).Msg(what)
	}
}

func (f *follower) send(u update) { f.a.notify(f.id, u) }

// drain shows what the bus brought: text at once, the log when it has grown.
func (f *follower) drain() {
	if f.isQuiet() {
		f.sub.Next()
		return
	}
	for _, l := range f.sub.Next() {
		switch {
		case l.Wake:
			f.catchUp()
		case l.Thread != "" || f.muted[l.Run]:
		case l.Compaction != "":
			f.compacting(l)
		case l.Output != nil:
			if sh := f.items[l.Item]; sh != nil && !sh.closed {
				f.live(l.Item, *l.Output)
			}
		default:
			f.text(l.Item, l.Kind, l.Offset, l.Text)
		}
	}
}

func (f *follower) shown(id session.ItemID) *shownItem {
	sh := f.items[id]
	if sh == nil {
		sh = &shownItem{}
		f.items[id] = sh
	}
	return sh
}

// text sends the part of a fragment that the client does not have; a gap is left to the log.
func (f *follower) text(id session.ItemID, kind session.ItemKind, offset int, text string) {
	sh := f.shown(id)
	if offset > sh.text || offset+len(text) <= sh.text {
		return
	}
	text = text[sh.text-offset:]
	sh.text += len(text)
	f.send(textChunk(kind, id, text))
}

const eventPage = 500

// catchUp reads the log from where the client is and shows what the events point at.
func (f *follower) catchUp() {
	for f.ctx.Err() == nil {
		n, err := f.page()
		if err == nil && n < eventPage {
			if !f.goalDue {
				return
			}
			f.goalDue = false
			err = f.settleHeld()
		}
		if err != nil {
			f.fail(err, "following a session failed")
			if f.a.isRetired() {
				f.stop()
			}
			f.after(time.Second, f.catchUp)
			return
		}
	}
}

// page shows one page of events. Records are read once each, as they are now, in the order of their first event.
func (f *follower) page() (int, error) {
	var evs []session.Event
	var recs []any
	err := f.b.Engine.Store.Read(f.ctx, func(tx session.Tx) (err error) {
		if evs, err = tx.Events(f.id, f.seq, eventPage); err != nil {
			return err
		}
		recs, err = records(tx, evs)
		return err
	})
	if err != nil {
		return 0, err
	}
	if len(recs) > 0 {
		f.usage()
	}
	for _, r := range recs {
		switch r := r.(type) {
		case session.Item:
			f.item(r)
		case session.Run:
			if len(evs) == eventPage {
				f.late[r.ID] = r
				continue
			}
			delete(f.late, r.ID)
			f.run(r)
		case session.Approval:
			f.approval(r, false)
		case session.Session:
			f.session(r)
		case goalChanged:
			f.goal()
			f.plan() // its todo may be what is shown
		}
	}
	if len(evs) > 0 {
		f.seq = evs[len(evs)-1].Seq
	}
	if len(evs) < eventPage {
		for id, r := range f.late { // nothing newer was said about these
			delete(f.late, id)
			f.run(r)
		}
	}
	return len(evs), nil
}

type goalChanged struct{}

// records reads what events point at. Items come where they were first named; runs, questions and goals where they were last named,
// because the end of a run is shown after everything that belongs to it.
func records(tx session.Tx, evs []session.Event) ([]any, error) {
	last := map[string]int{}
	for i, e := range evs {
		last[e.Ref] = i
	}
	seen := map[string]bool{}
	var out []any
	for i, e := range evs {
		if e.Kind == session.EventItem {
			if seen[e.Ref] {
				continue
			}
			seen[e.Ref] = true
		} else if last[e.Ref] != i {
			continue
		}
		var r any
		var err error
		switch e.Kind {
		case session.EventItem:
			r, err = tx.Item(session.ItemID(e.Ref))
		case session.EventRun:
			r, err = tx.Run(session.RunID(e.Ref))
		case session.EventApproval:
			r, err = tx.Approval(session.ApprovalID(e.Ref))
		case session.EventSession:
			r, err = tx.Session(e.Session)
		case session.EventGoal:
			r = goalChanged{}
		}
		var broken *session.RecordError
		if errors.As(err, &broken) {
			continue // doctor names it; what comes after it is shown
		}
		if err != nil {
			return nil, err
		}
		out = append(out, r)
	}
	return out, nil
}

// item shows an item as it is now, as far as the client does not have it.
func (f *follower) item(it session.Item) {
	if f.muted[it.Run] || hidden(it) {
		return
	}
	if f.items[it.ID] == nil && it.Seq <= f.known && it.Kind != session.ItemTool {
		return // closed when the session was opened: it is as it was
	}
	sh := f.shown(it.ID)
	switch it.Kind {
	case session.ItemUser:
		if !sh.closed && !f.own[it.Run] {
			for _, u := range userChunks(it) {
				f.send(u)
			}
		}
		sh.closed = true
	case session.ItemAgent, session.ItemThought, session.ItemMarker, session.ItemGoal:
		f.text(it.ID, it.Kind, 0, it.Body.Text)
		if it.State == session.ItemInterrupted && !sh.closed && it.Body.Text != "" {
			f.send(textChunk(it.Kind, it.ID, interruptedMark))
		}
		sh.closed = it.State != session.ItemOpen
	case session.ItemCompaction:
		if !sh.closed {
			f.compacted(it)
		}
		sh.closed = true
	case session.ItemTool:
		it = f.truthful(it)
		u, key := toolUpdate(it, f.first(it, sh))
		if key != sh.tool {
			f.send(u)
		}
		sh.tool, sh.closed = key, it.State != session.ItemOpen
	}
}

// hidden tells whether an item is not for the user: notes to the model, and everything a review says. A command that code runs as
// evidence is shown.
func hidden(it session.Item) bool {
	if it.Kind == session.ItemNote {
		return true
	}
	return it.Thread != "" && (it.Kind != session.ItemTool || !it.Body.Tool.ByCode)
}

// run answers the prompt that a run belongs to, when it has come to its end.
func (f *follower) run(r session.Run) {
	if r.Kind != session.RunPrompt {
		f.goalMoved()
	}
	if r.Phase == session.PhaseEnded || r.Kind != session.RunPrompt && r.Phase != session.PhaseWorking {
		delete(f.muted, r.ID) // a goal's run goes on under the same id
	}
	p := f.prompts[r.ID]
	if p == nil {
		f.tellParked(r)
		return
	}
	switch {
	case r.Desired == session.DesiredCancelled && r.Phase != session.PhaseEnded:
		f.confirmSoon(r.ID, p)
	case r.Phase == session.PhaseEnded && r.StopReason == "error":
		delete(f.prompts, r.ID)
		p.req.Fail(promptError(r))
	case r.Phase == session.PhaseEnded:
		delete(f.prompts, r.ID)
		p.answer(f, r.StopReason)
	case r.Phase == session.PhaseWaiting && !session.Timed(r.ReasonCode) && r.ReasonCode != session.CodeApproval:
		delete(f.prompts, r.ID)
		f.toldParked[r.ID] = r.ReasonCode
		f.line(r.Reason)
		p.answer(f, "end_turn")
	}
}

// line says something to the user that the model does not see. It stands in the history from then on; when it cannot be stored, it is
// said all the same.
func (f *follower) line(text string) {
	id := session.ItemID(f.b.Engine.NewID())
	it := session.Item{ID: id, Kind: session.ItemMarker, Body: session.ItemBody{Text: text}}
	if err := f.b.Engine.Remark(f.ctx, f.id, session.Item{}, it); err != nil {
		f.fail(err, "storing a line failed")
	}
	f.text(id, session.ItemMarker, 0, text)
	f.shown(id).closed = true
}

// session shows a changed mode or title.
func (f *follower) session(s session.Session) {
	if s.Mode != f.mode {
		f.mode, f.choice = s.Mode, s.Choice
		f.send(modeUpdate(s.Mode))
		f.send(optionsUpdate(f.b, s))
	} else if s.Choice != f.choice {
		f.choice = s.Choice
		f.send(optionsUpdate(f.b, s))
	}
	if s.Title != f.title {
		f.title = s.Title
		f.send(titleUpdate(s))
	}
	f.plan()
}

// goal sends the current snapshot.
func (f *follower) goal() {
	v, err := f.b.Goals.Get(f.ctx, "", f.id)
	switch {
	case goals.NoGoal(err):
		return
	case err != nil:
		f.fail(err, "reading the goal failed")
		return
	}
	f.send(f.a.goalUpdate(v))
	f.goalMoved()
}

// goalMoved makes the next catchUp look whether prompts that stay open for a goal can be answered.
func (f *follower) goalMoved() { f.goalDue = f.goalDue || len(f.held) > 0 }

// settleHeld answers the prompts whose goal no longer works. The goal is read first and the log after it: everything up to the state that
// is answered with is shown before the answer.
func (f *follower) settleHeld() error {
	if len(f.held) == 0 {
		return nil
	}
	v, err := f.b.Goals.Get(f.ctx, "", f.id)
	var busy []session.Run
	if err == nil {
		busy, err = f.busy()
	}
	for n := eventPage; n == eventPage && err == nil; {
		n, err = f.page()
	}
	if err != nil {
		f.goalDue = true
		return fmt.Errorf("look at the goal that prompts wait for: %w", err)
	}
	var kept []*openPrompt
	for _, p := range f.held {
		if !p.cancelled && p.goal == v.GoalID && working(v) || f.stillStops(p, busy) {
			kept = append(kept, p)
			continue
		}
		switch {
		case (p.cancelled || v.Status == goals.Paused && v.ReasonCode == session.CodeUserCancelled) && !fault.Without("cancelled_goal"):
			p.answer(f, "cancelled")
			continue
		case !v.Status.Ended(): // an ended goal has left its record
			f.line(statusLine(v))
		}
		p.answer(f, "end_turn")
	}
	f.held = kept
	return nil
}

// working tells whether a goal moves, or waits for something that this client can be asked.
func working(v goals.View) bool {
	if v.Status != goals.Active {
		return false
	}
	switch v.ReasonCode {
	case session.CodeNone, session.CodeApproval, session.CodeModelRetry, session.CodeVerifying, session.CodeUnmet, session.CodeTodoOpen, session.CodeCommandRuns:
		return true
	}
	return v.Phase != "waiting"
}
