package acp

import (
	"context"
	"encoding/json"
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
	// Backend opens everything slow. It is called once, beside initialize; its error is what session requests answer with.
	Backend func(context.Context) (*Backend, error)
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
	wg     sync.WaitGroup

	ready   chan struct{} // closed when back and backErr are set
	back    *Backend
	backErr error

	mu          sync.Mutex
	initialized bool
	lanes       map[string]*lane
	open        map[session.SessionID]*follower
	notices     bool                           // the client shows notices
	untold      map[session.SessionID][]string // what the client was not told yet
}

// NewAgent returns an agent; Serve runs it.
func NewAgent(o Options) *Agent {
	ctx, cancel := context.WithCancel(context.Background())
	return &Agent{Options: o, ctx: ctx, cancel: cancel, ready: make(chan struct{}), lanes: map[string]*lane{},
		open: map[session.SessionID]*follower{}, untold: map[session.SessionID][]string{}}
}

// Serve works until the connection ends.
func (a *Agent) Serve(connect func(rpc.Handler) *rpc.Conn) {
	a.wg.Go(func() {
		a.back, a.backErr = a.Backend(a.ctx)
		close(a.ready)
	})
	a.mu.Lock() // a request may arrive before conn is set
	a.conn = connect(a)
	a.mu.Unlock()
	<-a.conn.Done()
	a.cancel()
	a.wg.Wait()
}

// backend waits for the store.
func (a *Agent) backend(ctx context.Context) (*Backend, error) {
	select {
	case <-a.ready:
		return a.back, a.backErr
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
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
	a.inLane(laneOf(req.Params), func() {
		b, err := a.backend(ctx)
		if err == nil {
			err = h(a, ctx, b, req)
		}
		if err != nil {
			e := toError(err, session.SessionID(laneOf(req.Params)))
			if e.Code == rpc.CodeInternalError {
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
	f := a.follower(session.SessionID(laneOf(params)))
	if f != nil {
		f.stops.Add(1) // from here on, not from when it is stored
	}
	a.inLane(laneOf(params), func() {
		if f != nil {
			defer f.stops.Add(-1)
		}
		b, err := a.backend(a.ctx)
		if err != nil {
			return
		}
		// A stop must not be lost because the store is busy: it is tried again while the client is there.
		id := session.SessionID(laneOf(params))
		for id != "" && a.ctx.Err() == nil {
			_, err := a.stored(a.ctx, b, id)
			if session.IsNotFound(err) {
				return // there is nothing to stop
			}
			if err == nil {
				err = a.cancelSession(b, id)
			}
			if err == nil {
				return
			}
			a.Log.Error().Err(err).Msg("a cancel failed; trying again")
			select {
			case <-time.After(200 * time.Millisecond):
			case <-a.ctx.Done():
			}
		}
	})
}

// handler answers one method. It replies itself or returns the error to answer with.
type handler func(a *Agent, ctx context.Context, b *Backend, req *rpc.Request) error

var handlers map[string]handler

func init() {
	handlers = map[string]handler{
		"authenticate":          (*Agent).authenticate,
		"session/new":           (*Agent).newSession,
		"session/load":          (*Agent).loadSession,
		"session/resume":        (*Agent).resumeSession,
		"session/list":          (*Agent).listSessions,
		"session/close":         (*Agent).closeSession,
		"session/set_mode":      (*Agent).setMode,
		"session/prompt":        (*Agent).prompt,
		"create_goal":           (*Agent).createGoal,
		"get_goal":              (*Agent).getGoal,
		"update_goal":           (*Agent).updateGoal,
		"_holdfast/create_goal": (*Agent).createGoal,
		"_holdfast/get_goal":    (*Agent).getGoal,
		"_holdfast/update_goal": (*Agent).updateGoal,
	}
}

func (a *Agent) follower(id session.SessionID) *follower {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.open[id]
}
