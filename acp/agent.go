package acp

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"holdfast/acp/rpc"
	"holdfast/goals"
	"holdfast/session"
)

// Backend is what the agent works with once the store is open.
type Backend struct {
	Engine *session.Engine
	Goals  *goals.Service
	// Servers runs the MCP servers that the client hands over; nil ignores them.
	Servers Servers
	// Projects decides about what directories bring along; nil has none.
	Projects Projects
	// Dead tells whether another process provably lives no more; nil says of nobody that it is dead.
	Dead func(session.InstanceID) bool
	// Park is how long a prompt stays open for an unanswered question; 0 means half an hour.
	Park time.Duration
	// Takeover ends the process that has a session and goes on with it here, and says what became of it. Without sure it ends nothing that has
	// more than that session. Nil where it is not possible.
	Takeover func(ctx context.Context, id session.SessionID, sure bool) (string, error)
	// Delete removes a session with everything it had. What cannot be removed yet goes later and is no error.
	Delete func(context.Context, session.SessionID) error
	// ModelError says why no model can be used here, or nil.
	ModelError func() error
}

func (b *Backend) parkAfter() time.Duration {
	if b.Park > 0 {
		return b.Park
	}
	return parkDefault
}

// Options of an agent.
type Options struct {
	Version  string
	Scripted bool // the model plays a script, which every surface says
	// Backend opens everything slow. It is called beside initialize, and again by session requests until it succeeds; its error is what
	// they answer with.
	Backend func(context.Context) (*Backend, error)
	// Diagnose names what the store reports inside a request, nil for anything else.
	Diagnose func(error) *Unavailable
	// Initialized is called after the answer to initialize went out, Wanted at the first session request.
	Initialized func()
	Wanted      func()
	Now         func() time.Time
	Log         zerolog.Logger
}

// parkDefault is how long a prompt stays open for an unanswered question.
const parkDefault = 30 * time.Minute

// Agent serves one client. Serve waits for every goroutine it started.
type Agent struct {
	Options
	conn *rpc.Conn

	ctx    context.Context
	cancel context.CancelFunc
	last   context.Context // of controls: ends a moment after ctx, so that what a client says last is still carried out
	wg     sync.WaitGroup

	opening chan struct{} // held while the store is opened

	mu          sync.Mutex
	back        *Backend
	retired     *Unavailable // why this process works no more
	initialized bool
	client      session.Client
	lanes       map[string]*lane
	open        map[session.SessionID]*follower
	prompting   map[*rpc.Request]session.SessionID // prompts without an answer
	announcer   *follower                          // of the first session that was opened: it tells what was recovered elsewhere,
	announced   bool                               // which has been looked for
	forms       bool                               // the client shows forms
	notices     bool                               // the client shows notices
	compactions bool                               // the client shows compactions as such
	panel       panel                              // where the client looks for goal snapshots
	buffers     bool                               // the client gives the text of files in its editor
	untold      map[session.SessionID][]string     // what the client was not told yet
	held        *heldStore                         // why the store is not open yet
	stuck       chan struct{}                      // closed when another process keeps the store from being opened
	toldBusy    time.Time                          // since when the store was kept that the client was told of
}

// NewAgent returns an agent; Serve runs it.
func NewAgent(o Options) *Agent {
	ctx, cancel := context.WithCancel(context.Background())
	return &Agent{Options: o, ctx: ctx, cancel: cancel, last: lasting(ctx), opening: make(chan struct{}, 1), stuck: make(chan struct{}),
		lanes: map[string]*lane{}, open: map[session.SessionID]*follower{}, prompting: map[*rpc.Request]session.SessionID{},
		untold: map[session.SessionID][]string{}}
}

// Serve works until the connection ends.
func (a *Agent) Serve(connect func(rpc.Handler) *rpc.Conn) {
	a.wg.Go(a.openStore)
	a.mu.Lock() // a request may arrive before conn is set
	a.conn = connect(a)
	a.mu.Unlock()
	<-a.conn.Done()
	a.cancel()
	a.wg.Wait()
}

// lane keeps the order of what concerns one session while different sessions go on side by side.
type lane struct{ last chan struct{} }

// inLane runs fn after everything given to the same lane before.
func (a *Agent) inLane(key string, fn func()) {
	a.mu.Lock()
	l := a.lanes[key]
	if l == nil {
		l = &lane{}
		a.lanes[key] = l
	}
	before, done := l.last, make(chan struct{})
	l.last = done
	a.mu.Unlock()
	a.wg.Go(func() {
		defer close(done)
		if before != nil {
			<-before
		}
		fn()
		a.mu.Lock()
		if l.last == done {
			delete(a.lanes, key)
		}
		a.mu.Unlock()
	})
}

// methods that need no session in their lane share one.
const globalLane = ""

// laneOf reads only the session id; anything odd is reported by the handler itself.
func laneOf(params json.RawMessage) string {
	var p struct {
		SessionID any `json:"sessionId"`
	}
	_ = json.Unmarshal(params, &p) // the handler decodes again and says what is wrong
	if id, ok := p.SessionID.(string); ok {
		return id
	}
	return globalLane
}

// Request implements rpc.Handler. It is called in order of arrival and hands everything slow to a lane.
func (a *Agent) Request(ctx context.Context, req *rpc.Request) {
	if req.Method == "initialize" {
		a.initialize(req)
		return
	}
	a.mu.Lock()
	ok := a.initialized
	a.mu.Unlock()
	if !ok {
		req.Fail(&rpc.Error{Code: rpc.CodeInvalidRequest, Message: "Call initialize first."})
		return
	}
	h, known := handlers[req.Method]
	if !known {
		req.Fail(&rpc.Error{Code: rpc.CodeMethodNotFound, Message: "Unknown method " + req.Method + ".", Data: map[string]any{"method": req.Method}})
		return
	}
	if a.Wanted != nil {
		a.Wanted()
	}
	ctx = a.control(ctx, req)
	a.inLane(laneOf(req.Params), func() {
		b, err := a.backend(ctx)
		if err == nil {
			err = h(a, ctx, b, req)
		}
		if err != nil {
			e := a.toError(err, session.SessionID(laneOf(req.Params)))
			var down *Unavailable
			if e.Code == rpc.CodeInternalError && !errors.As(a.named(err), &down) { // what is down was logged when it was found
				a.Log.Error().Err(err).Str("method", req.Method).Msg("a request failed")
			}
			req.Fail(e)
		}
	})
}

// Notification implements rpc.Handler. Unknown ones are ignored.
func (a *Agent) Notification(_ context.Context, method string, params json.RawMessage) {
	a.mu.Lock()
	ok := a.initialized
	a.mu.Unlock()
	if !ok || method != "session/cancel" {
		return
	}
	a.stopInLane(session.SessionID(laneOf(params)), func(*follower) bool { return true })
}

// handler answers one method. It replies itself or returns the error to answer with.
type handler func(a *Agent, ctx context.Context, b *Backend, req *rpc.Request) error

var handlers map[string]handler

func init() {
	handlers = map[string]handler{
		"authenticate":              (*Agent).authenticate,
		"session/new":               (*Agent).newSession,
		"session/load":              (*Agent).loadSession,
		"session/resume":            (*Agent).resumeSession,
		"session/list":              (*Agent).listSessions,
		"session/close":             (*Agent).closeSession,
		"session/delete":            (*Agent).deleteSession,
		"session/set_mode":          (*Agent).setMode,
		"session/set_config_option": (*Agent).setOption,
		"session/prompt":            (*Agent).prompt,
		"create_goal":               (*Agent).createGoal,
		"get_goal":                  (*Agent).getGoal,
		"update_goal":               (*Agent).updateGoal,
		"_holdfast/create_goal":     (*Agent).createGoal,
		"_holdfast/get_goal":        (*Agent).getGoal,
		"_holdfast/update_goal":     (*Agent).updateGoal,
		"list_goals":                (*Agent).listGoals,
		"_holdfast/list_goals":      (*Agent).listGoals,
		panelMethod:                 (*Agent).panelGoal,
		steeringMethod:              (*Agent).steering,
	}
}

func (a *Agent) follower(id session.SessionID) *follower {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.open[id]
}
