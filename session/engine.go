package session

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"holdfast/internal/secret"
	"holdfast/usage"
)

// Causes with which an execution is stopped.
var (
	// ErrDetach: this process ends or lets go; commands go on running and the work stays wanted.
	ErrDetach = errors.New("the process lets go of the session")
	// ErrStopped: the user no longer wants the work.
	ErrStopped = errors.New("stopped by the user")
	// errYield: user input goes before the next step of a Goal.
	errYield = errors.New("user input goes first")
)

// Driver is what makes one kind of run different from another. The turn loop is the same for all.
type Driver interface {
	// Observe looks at the outside (files, the work tree) before a transaction that begins or ends an attempt; what it returns reaches
	// Begin or End. A transaction never waits for the outside.
	Observe(ctx context.Context, s Session, r Run) (any, error)
	// Begin appends what the model should see at the start of an attempt.
	Begin(tx Tx, b *Begin) error
	// Setup says which prompt and tools the attempt works with.
	Setup(tx Tx, s Session, r Run) (Setup, error)
	// End decides what follows an attempt that came to its own end. It sets the run's phase and desired state.
	End(tx Tx, e *End) error
	// Failed decides what follows when the model endpoint refuses for good.
	Failed(tx Tx, e *End, code Code, reason string) error
}

// Begin is the start of an attempt.
type Begin struct {
	Session  Session
	Run      *Run
	Attempt  Attempt
	Observed any
	Add      func(*Item) error // fills in ids, run, attempt, thread and time
	// AddCalls appends calls that code wants executed as if a model had made them.
	AddCalls func(calls []Call) error
}

// End is the end of an attempt.
type End struct {
	Session  Session
	Run      *Run
	Attempt  Attempt
	Observed any
	Finish   Finish
	Now      time.Time
	NewID    func() string
}

// Setup is what an attempt works with.
type Setup struct {
	System    string
	Tools     []Tool // offered to the model
	CodeTools []Tool // only for calls that code plans
	Thread    string
	Reviewer  bool
	Before    *Enquiry // asked before the attempt's first step; nil for nothing
}

// StateTool is a tool whose whole effect is a change of the store: it is applied and settled in one transaction.
type StateTool interface {
	Tool
	Apply(tx Tx, c CallContext, args []byte) (Output, error)
	// EndsTurn tells that nothing is left to say once a call of it succeeded.
	EndsTurn() bool
}

// CallContext is what a StateTool may know about its call.
type CallContext struct {
	Session  Session
	Run      Run
	Revision int64 // of the run when the attempt began
	Attempt  Attempt
	Effect   EffectID
	Now      time.Time
	NewID    func() string
}

// Finding is what is certain about a dispatched call after its owner was lost.
type Finding struct {
	Fact     Fact
	By       SettledBy // "" for recovery
	Output   *Output
	Note     string
	Lookup   Lookup     // of an unknown outcome; "" for nothing
	Evidence string     // digest of what proves it; "" for that of the output
	Instance InstanceID // who found it out; "" for the owner of the session
}

// Prober is a tool that can tell afterwards what became of a call.
type Prober interface {
	Probe(ctx context.Context, env ToolEnv, plan Plan) (Finding, error)
}

// Reattacher is a tool whose calls may outlive the process that made them.
type Reattacher interface {
	Reattach(ctx context.Context, env ToolEnv, plan Plan, progress func(Output)) (Output, error)
	// Kill ends a call that nobody wants any more.
	Kill(ctx context.Context, env ToolEnv) (Output, error)
}

// Workspace looks at the work tree without touching what the user has there.
type Workspace interface {
	// Identity names the directory itself.
	Identity(cwd string) (string, error)
	// Root names what the directory belongs to: the top of its git work tree, or the directory itself.
	Root(cwd string) string
	// Snapshot records the work tree as a git tree, the zero Checkpoint without git.
	Snapshot(ctx context.Context, cwd string) (Checkpoint, error)
	// Keep gives a recorded tree a name of its own, so that it stays.
	Keep(ctx context.Context, cwd, name, tree string) error
	// Status describes the work tree and what changed since tree, for a model to read, and returns what it recorded for that.
	Status(ctx context.Context, cwd, tree string) (string, Checkpoint)
	// Changed lists the files that differ between two recorded trees.
	Changed(ctx context.Context, cwd, before, after string) ([]PathChange, error)
	// Content returns what a recorded file held.
	Content(ctx context.Context, cwd, blob string) ([]byte, error)
	// At says what a path holds now, and Put gives it what a step says, while it holds what the step expects.
	At(path string) (PathState, error)
	Put(step PathStep, content []byte) error
	// Clean removes what a process that died in Put left beside the path.
	Clean(step PathStep)
}

// Hooks ties controls of a session to what is built on top of it.
type Hooks interface {
	// Cancelled changes what must not go on after the user's cancel, in the same transaction.
	Cancelled(tx Tx, s SessionID, command string, now time.Time) error
	// Uncancelled undoes that change and nothing else, for a prompt that follows the cancel at once.
	Uncancelled(tx Tx, s SessionID, command string, now time.Time) error
	// Pinned is what a compaction keeps of it in the session, as it is now; "" for nothing.
	Pinned(tx Tx, s SessionID) (string, error)
	// Grants are what the user allowed beforehand for a run, as it is wanted now.
	Grants(tx Tx, r Run) ([]Rule, error)
	// Affords tells whether the budget of what a request is for allows it. Exhaust stops that when it does not; goesOn tells that it does by now.
	Affords(tx Tx, r Request, now time.Time) (bool, error)
	Exhaust(tx Tx, r Request, now time.Time) (goesOn bool, err error)
}

// Recoverer decides how inherited work goes on; see package recovery.
type Recoverer interface {
	Recover(ctx context.Context, in Inherited) (Verdict, error)
}

// Config is everything an engine depends on.
type Config struct {
	Store  Store
	Self   InstanceRow
	Tools  []Tool
	Model  func() (Model, error) // an error says what to set up
	Models Models                // what a session can have instead; nil for nothing else
	// ReviewModel is what reviews of goals are asked of, as PROVIDER/NAME; "" is the model of the goal.
	ReviewModel string
	// Limits are how many tokens a model reads and writes, as far as that is known; 0 is not known. nil knows of none.
	Limits func(ModelIdentity) (window, output int64, known bool)
	// Prices are what the tokens of a model cost now, and Longest how many tokens an answer has at most; 0 is not known. nil knows of none.
	Prices      func(ModelIdentity) usage.Price
	Longest     func(ModelIdentity) int64
	Drivers     map[RunKind]Driver
	Hooks       Hooks
	Recoverer   Recoverer
	Workspace   Workspace
	Toolbox     Toolbox                // tools of external servers; nil for none
	Confiner    Confiner               // what confines commands; nil for nothing
	Rules       func(Session) Rulebook // what the configuration says of a session; nil for nothing. It is asked outside of transactions
	Working     int                    // runs that work unattended at once, over all processes; 0 is WorkingDefault
	Auto        Auto                   // what is done by itself with work whose process is gone; "" is AutoAlways
	Passive     bool                   // this instance only writes controls: it owns nothing and executes nothing
	Poke        func(ids ...string)    // rings other instances
	Stall       time.Duration          // how long an attempt may do nothing; 0 is StallAfter
	StateDir    string
	Env         []string       // environment for commands that come from a client of this process
	Environment Environment    // the same as it is stored
	Mask        *secret.Masker // hides secrets in what leaves the engine; nil knows no values
	Now         func() time.Time
	NewID       func() string
	Log         zerolog.Logger
}

// Engine executes the sessions this instance owns. Close waits for everything it started.
type Engine struct {
	Config
	bus    *bus
	ctx    context.Context
	cancel context.CancelCauseFunc
	wg     sync.WaitGroup

	backgrounds atomic.Bool // some background command may have no recorded end

	mu       sync.Mutex
	actors   map[SessionID]*actor
	others   bool // other instances share the store
	admitted chan struct{}
	once     sync.Once
	closed   bool
	parked   map[SessionID]Standings // sessions that wait for their turn, and how they stood then
	offers   map[SessionID]offer

	client atomic.Pointer[Client] // who this process works for

	buffers sync.Map // SessionID → *Buffers of the attached editor

	undoing sync.Mutex // held while files are put back
}

// NewEngine returns an engine that executes nothing until Admit.
func NewEngine(c Config) *Engine {
	ctx, cancel := context.WithCancelCause(context.Background())
	if c.Stall <= 0 {
		c.Stall = StallAfter
	}
	if c.Working < 1 {
		c.Working = WorkingDefault
	}
	return &Engine{Config: c, bus: newBus(c.Mask), ctx: ctx, cancel: cancel, actors: map[SessionID]*actor{}, parked: map[SessionID]Standings{}, admitted: make(chan struct{})}
}

// rulebook is what configurations say of a session's calls.
func (e *Engine) rulebook(s Session) Rulebook {
	if e.Rules == nil {
		return Rulebook{}
	}
	return e.Rules(s)
}

// Admit opens the gate for paid work.
func (e *Engine) Admit() { e.once.Do(func() { close(e.admitted) }) }

// SetShared says whether other instances share the store, which is when their doorbells and the fallback polling matter.
func (e *Engine) SetShared(shared bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.others = shared
}

func (e *Engine) shared() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.others
}

// Subscribe follows a session in this process.
func (e *Engine) Subscribe(id SessionID) *Subscription { return e.bus.subscribe(id) }

// Ring makes every follower and every executor look at the store: another process may have changed it.
func (e *Engine) Ring() {
	e.bus.wakeAll()
	e.mu.Lock()
	for id, a := range e.actors {
		if _, parked := e.parked[id]; !parked {
			a.ring()
		}
	}
	e.mu.Unlock()
	e.serve(false)
}

// Changed is for those who commit to the store directly: it tells everybody concerned.
func (e *Engine) Changed(id SessionID) { e.changed(id) }

// changed tells this process and the others concerned that a session's log has grown.
func (e *Engine) changed(id SessionID) {
	e.bus.publish(id, Live{Wake: true})
	e.wake(id)
	if e.Poke == nil || !e.shared() && e.Owns(id) {
		return
	}
	var ids []string
	_ = e.Store.Read(context.Background(), func(tx Tx) error { // a lost doorbell costs delay only
		s, err := tx.Session(id)
		if err != nil {
			return err
		}
		at, err := tx.Attached(id)
		if err == nil && s.Owner == "" {
			at, err = everybody(tx) // whoever executes may take it, this one too
		}
		for _, i := range append(at, s.Owner) {
			if i != "" && (i != e.Self.ID || s.Owner == "" && !e.Passive) {
				ids = append(ids, string(i))
			}
		}
		return err
	})
	if len(ids) > 0 {
		e.Poke(ids...)
	}
}

func everybody(tx Tx) (ids []InstanceID, err error) {
	rows, err := tx.Instances()
	for _, r := range rows {
		ids = append(ids, r.ID)
	}
	return ids, err
}

// Commit runs a control transaction and tells everybody concerned.
func (e *Engine) Commit(ctx context.Context, point string, id SessionID, fn func(Tx) error) error {
	if err := e.Store.Commit(ctx, point, fn); err != nil {
		return err
	}
	e.changed(id)
	return nil
}

// Own starts executing a session that this instance holds under generation.
func (e *Engine) Own(id SessionID, generation int64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return
	}
	if old := e.actors[id]; old != nil {
		if old.gen == generation {
			return
		}
		old.stop(ErrFenced)
	}
	a := newActor(e, id, generation)
	e.actors[id] = a
	delete(e.parked, id)
	e.begin(a)
}

// Owns tells whether this instance executes the session.
func (e *Engine) Owns(id SessionID) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.actors[id] != nil
}

// Rests tells whether this instance has looked at all the work of a session since it owns it and now waits: for a person, for a time, or
// for work. It says so of sessions that it does not own, too.
func (e *Engine) Rests(id SessionID) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	a := e.actors[id]
	_, parked := e.parked[id]
	return a == nil || parked || a.rests.Load()
}

func (e *Engine) forget(a *actor) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.actors[a.id] == a {
		delete(e.actors, a.id)
		delete(e.parked, a.id)
	}
}

// release stops executing one session and waits until that is so.
func (e *Engine) release(id SessionID, cause error) {
	e.mu.Lock()
	a := e.actors[id]
	if a != nil && !a.begun {
		delete(e.actors, id)
		delete(e.parked, id)
		a = nil
	}
	e.mu.Unlock()
	if a == nil {
		return
	}
	a.stop(cause)
	<-a.done
}

// ErrHeldUp: running work did not let go in time. The next process finds it as after a death of this one, and goes on.
var ErrHeldUp = errors.New("running work did not let go in time")

// Close lets go of everything: it stops admission, waits at most the context's time for what runs to be committed, and gives up
// ownership, so that the next process goes on at once.
func (e *Engine) Close(ctx context.Context) error {
	e.mu.Lock()
	if e.closed {
		e.mu.Unlock()
		return nil
	}
	e.closed = true
	e.mu.Unlock()
	e.cancel(ErrDetach)
	idle := make(chan struct{})
	go func() { e.wg.Wait(); close(idle) }() // ends with the last actor; the process ends with it at the latest
	select {
	case <-idle:
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", ErrHeldUp, ctx.Err())
	}
	return e.Store.Commit(ctx, "instance.left", func(tx Tx) error { return tx.DeleteInstance(e.Self.ID) })
}
