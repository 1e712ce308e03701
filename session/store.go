package session

import (
	"context"
	"errors"
	"time"
)

// Errors callers act on.
var (
	// ErrFenced: another owner has the session; the executor stops and writes nothing.
	ErrFenced = errors.New("the session has another owner")
	// ErrNotFound: no such record.
	ErrNotFound = errors.New("not found")
	// ErrNotNow: nothing was stored, and later the same can be: the disk is full, the store is held by somebody, moved or not writable.
	ErrNotNow = errors.New("it cannot be stored now")
	// ErrStale: the record changed since it was read.
	ErrStale = errors.New("the record changed meanwhile")
)

// StoreBusy is the error of a store that another process keeps from being written; what was tried is not stored. It may be tried again: the
// store is free when that process goes on, and when it ends. Reading goes on meanwhile.
type StoreBusy interface {
	error
	Holder() (pid int, since time.Time)
}

// IsBusy recognises it.
func IsBusy(err error) bool {
	var busy StoreBusy
	return errors.As(err, &busy)
}

// Store keeps everything. Commit runs fn in one write transaction named by its crash point; Read runs it in a read one.
type Store interface {
	Commit(ctx context.Context, point string, fn func(Tx) error) error
	Read(ctx context.Context, fn func(Tx) error) error
}

// Tx is what a transaction can do. An executor calls Fence first, so every write of it is bound to its generation.
type Tx interface {
	// Fence fails with ErrFenced unless owner holds the session under this generation.
	Fence(id SessionID, owner InstanceID, generation int64) error

	InsertInstance(InstanceRow) error
	Instance(InstanceID) (InstanceRow, error)
	Instances() ([]InstanceRow, error)
	// Lost tells whether an instance is provably dead and nobody has taken over from it yet.
	Lost(InstanceID) bool
	// Condition is what is known of an instance at this moment.
	Condition(InstanceID) Condition
	// MarkDied records that a process died in what it was working on.
	MarkDied(InstanceID) error
	// DeleteInstance removes the row, its attachments, places and ownerships, and marks the work that it leaves behind.
	DeleteInstance(InstanceID) error

	InsertSession(Session) error
	Session(SessionID) (Session, error)
	// Intact returns a *RecordError when something cannot be used that executing a session depends on: the session itself, what is open in
	// it, its servers, its Goal. The history is looked at where it is used.
	Intact(SessionID) error
	// UpdateSession writes everything but owner, generation and sequence, and announces the change.
	UpdateSession(Session) error
	// Own makes owner the owner under the next generation, which it returns. An empty owner lets go without raising it.
	Own(id SessionID, owner InstanceID) (int64, error)
	// Sessions lists sessions, newest first, that come after (updated, id); limit bounds the answer.
	Sessions(cwd string, updated time.Time, id SessionID, limit int) ([]Session, error)
	OwnedBy(InstanceID) ([]SessionID, error)
	// Unowned lists sessions nobody owns that hold work which is still wanted.
	Unowned() ([]SessionID, error)
	// Busy lists the sessions that hold work which is wanted, whoever owns them.
	Busy() ([]SessionID, error)
	// Attach stores who has a session open; again, it keeps the time and renews the rest.
	Attach(Attachment) error
	// Recovered lists the sessions without a client in which work went on under another owner than it began with, and does so now or
	// has done so since.
	Recovered(since time.Time) ([]SessionID, error)
	Detach(InstanceID, SessionID) error
	Attached(SessionID) ([]InstanceID, error)
	Attachments(SessionID) ([]Attachment, error)
	// PutEnvironment stores an environment unless it is there.
	PutEnvironment(Environment, time.Time) error
	Environment(digest string) (Environment, error)

	// Queue lists every place in the queue, Holding those that hold a slot or a work tree, Slot that of a session.
	Queue() ([]Slot, error)
	Holding() ([]Slot, error)
	Slot(SessionID) (Slot, error)
	PutSlot(Slot) error
	DropSlot(SessionID) error
	// Serve records that work of the session begins.
	Serve(SessionID, time.Time) error
	// Standings says of every session of an instance whether anything about it has changed.
	Standings(InstanceID) ([]Standings, error)

	// Announce appends an event.
	Announce(id SessionID, kind EventKind, ref string, at time.Time) (int64, error)
	Events(id SessionID, after int64, limit int) ([]Event, error)

	InsertRun(Run) error
	Run(RunID) (Run, error)
	// UpdateRun writes the run and announces it.
	UpdateRun(Run, time.Time) error
	OpenRuns(SessionID) ([]Run, error)
	// RunsOf lists every run of a session in order of acceptance.
	RunsOf(SessionID) ([]Run, error)
	InsertAttempt(Attempt) error
	UpdateAttempt(Attempt) error
	// LastAttempt returns the newest attempt of a run, or ErrNotFound.
	LastAttempt(RunID) (Attempt, error)
	Attempts(RunID) ([]Attempt, error)

	// InsertItem gives the item its place and announces it.
	InsertItem(*Item) error
	UpdateItem(Item, time.Time) error
	Item(ItemID) (Item, error)
	// Items lists the items of a thread in order, from the place after; limit 0 means all.
	Items(id SessionID, thread string, after int64, limit int) ([]Item, error)
	OpenItems(SessionID) ([]Item, error)
	// Page lists the next items of a thread that together hold about so many bytes, one at least, with large results in their short form;
	// none are left when it is empty.
	Page(id SessionID, thread string, after int64, bytes int) ([]Item, error)
	// History is Items without what only a person is shown, the diffs of calls and the content blocks of prompts, and with large results in
	// their short form.
	History(id SessionID, thread string, after int64, limit int) ([]Item, error)
	// LastCompaction returns the newest compaction of a thread, or ErrNotFound.
	LastCompaction(id SessionID, thread string) (Item, error)
	// Latest lists the newest items of a thread before a place, newest first, as History does; 0 is the end.
	Latest(id SessionID, thread string, before int64, limit int) ([]Item, error)

	InsertEffect(Effect) error
	UpdateEffect(Effect) error
	Effect(EffectID) (Effect, error)
	EffectsOf(RunID) ([]Effect, error)
	// OpenEffects lists the effects of a session that are not settled.
	OpenEffects(SessionID) ([]Effect, error)

	// KeepImages stores the bytes that images bring with them, under their digests.
	KeepImages([]Image) error
	// Content returns what a file held, what a long result said or the bytes of an image, by its digest.
	Content(digest string) (string, error)

	// Effects lists journal records over all sessions, newest first, before the place (planned, id).
	Effects(f EffectFilter, planned time.Time, id EffectID, limit int) ([]Effect, error)

	// AppendSettlement stores what was found out about a call; the same finding again is not stored twice.
	AppendSettlement(Settlement) error
	// Settlements lists what was found out about a call, in order.
	Settlements(EffectID) ([]Settlement, error)
	// PutTrees stores the work trees around a call.
	PutTrees(EffectTrees) error
	TreesOf(RunID) ([]EffectTrees, error)
	// Trees lists every recorded work tree that a record refers to.
	Trees() ([]string, error)
	// InsertUndo gives the step its number.
	InsertUndo(*Undo) error
	UpdateUndo(Undo) error
	Undo(id string) (Undo, error)
	// Undos lists the steps of a session in order, OpenUndos those that are not settled; without a session those of all.
	Undos(SessionID) ([]Undo, error)
	OpenUndos(SessionID) ([]Undo, error)

	InsertSend(Send) error
	UpdateSend(Send) error
	Send(id string) (Send, error)
	// Sends lists what was sent for a call, without the answers.
	Sends(EffectID) ([]Send, error)
	PutServers(SessionID, []ServerDef) error
	Servers(SessionID) ([]ServerDef, error)

	InsertBackground(Background) error
	UpdateBackground(Background) error
	Background(EffectID) (Background, error)
	Backgrounds(SessionID) ([]Background, error)
	// RunningBackgrounds lists those of every session without a recorded end.
	RunningBackgrounds() ([]Background, error)
	// UntoldBackgrounds lists those of a session whose end the model does not know.
	UntoldBackgrounds(SessionID) ([]Background, error)

	InsertApproval(Approval) error
	UpdateApproval(Approval, time.Time) error
	Approval(ApprovalID) (Approval, error)
	// OpenApprovals lists pending and answered ones.
	OpenApprovals(SessionID) ([]Approval, error)
	// PendingApprovals lists the pending ones of every session, oldest first.
	PendingApprovals() ([]Approval, error)

	InsertRule(Rule) error
	// RevokeRule ends a rule; false when it had ended before.
	RevokeRule(RuleID, time.Time) (bool, error)
	Rule(RuleID) (Rule, error)
	// Rules lists the rules that were not revoked, oldest first.
	Rules() ([]Rule, error)

	// PutLimit stores a limit in the place of what was known of the same one, and forgets those whose time has come.
	PutLimit(Limit) error
	// Limits lists what is known of what a request would meet: of its model, and of its account. PruneLimits forgets those whose time has come.
	Limits(LimitScope) ([]Limit, error)
	PruneLimits(now time.Time) error
	// NewestLimit is the id of the newest one that is stored, 0 without any.
	NewestLimit() (int64, error)
	// LiftLimits marks what a request met in spite of limits up to that one, and returns how many.
	LiftLimits(s LimitScope, upTo int64) (int64, error)

	// PutTrust stores the trust in a directory in place of an earlier one.
	PutTrust(Trust) error
	// Trust returns what there is of a directory, revoked or not.
	Trust(dir string) (Trust, error)
	// Trusts lists those that were not revoked.
	Trusts() ([]Trust, error)

	InsertCommand(Command) error
	Command(id string) (Command, error)
	// Consume marks a command as acted on; false when it was already.
	Consume(id string, generation int64, at time.Time) (bool, error)
	OpenCommands(SessionID) ([]Command, error)
	// LastCommand numbers the newest control of all: it rises with each.
	LastCommand() (int64, error)

	// Erase removes every record of a session and stores what it had beside them; Erased forgets that, and Erasures lists it.
	Erase(SessionID, time.Time) error
	Erased(SessionID) error
	Erasures() ([]Erasure, error)
	// Lying lists the sessions that have lain still since a time and hold nothing open, oldest first.
	Lying(since time.Time, limit int) ([]SessionID, error)

	// PlanOf returns the plan of a session, empty without one, and PutPlan replaces it and announces that.
	PlanOf(SessionID) ([]PlanEntry, error)
	PutPlan(SessionID, []PlanEntry, time.Time) error
	// TodoOf returns the plan of a Goal, and PutTodo replaces it and announces that.
	TodoOf(goal string) ([]PlanEntry, error)
	PutTodo(goal string, s SessionID, plan []PlanEntry, now time.Time) error
	// ShownPlan is what a client of the session sees: the last written one of its own plan and that of its open Goal.
	ShownPlan(SessionID) ([]PlanEntry, error)

	InsertRequest(Request) error
	UpdateRequest(Request) error
	RequestsOf(RunID) ([]Request, error)
	RequestsOfGoal(goal string) ([]Request, error)
	RequestsOfSession(SessionID) ([]Request, error)
	// RequestsAfter lists those behind a row, in order.
	RequestsAfter(id SessionID, row int64) ([]Request, error)
}

// EffectFilter narrows a listing of the journal. Empty members match everything.
type EffectFilter struct {
	Session SessionID
	Fact    Fact // for example FactUnknown
	Open    bool // only what is not settled
}
