package client

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

// Server is one configured server. A supervisor goroutine owns its process, a second one calls back; both end with Close.
type Server struct {
	cfg    Config
	opts   Options
	lim    Limits
	mask   *mask
	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup
	demand chan struct{} // somebody needs it ready
	places chan struct{} // one for each call in flight
	quiet  chan struct{} // the supervisor has ended: nothing more will be called back

	mu       sync.Mutex
	state    State
	stderr   string // the end of the last process's
	last     string // why the last process ended or did not become ready
	innocent bool   // the probe is not what its processes die of
	wanted   bool   // a start is under way or about to be
	closed   bool
	running  bool          // the goroutines
	moved    chan struct{} // closed and replaced at each change
	conn     *conn         // while ready
	past     history
	wasReady bool
	tools    []Tool
	aside    []Aside
	used     map[string]struct{} // tickets
	calls    []func()            // callbacks that wait for their goroutine
	called   chan struct{}
}

// New prepares a server and starts nothing.
func New(cfg Config, o Options) *Server {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Eras == nil {
		o.Eras = &Eras{}
	}
	o.Log = o.Log.With().Str("mcp_server", cfg.Name).Logger()
	s := &Server{cfg: cfg, opts: o, lim: o.Limits.withDefaults(), mask: newMask(cfg.Secrets), demand: make(chan struct{}, 1),
		state: State{Phase: Stopped}, moved: make(chan struct{}), used: map[string]struct{}{}, called: make(chan struct{}, 1), quiet: make(chan struct{})}
	s.places = make(chan struct{}, s.lim.InFlight)
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s
}

// Start asks for the server in the background. It does nothing if it is ready or on its way. A server that ended after it was ready is
// started again only by this or by a call that needs it.
func (s *Server) Start() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.want()
}

// want asks the supervisor for a start. The lock is held.
func (s *Server) want() {
	if s.closed || s.wanted || s.conn != nil {
		return
	}
	s.wanted = true
	if !s.running {
		s.running = true
		s.wg.Add(2)
		go func() { defer s.wg.Done(); defer close(s.quiet); s.supervise() }()
		go func() { defer s.wg.Done(); s.callBack() }()
	}
	s.demand <- struct{}{} // wanted is false only when it is empty
}

// Wait blocks until the server is ready or has failed to become so. It does not start it.
func (s *Server) Wait(ctx context.Context) error {
	for {
		s.mu.Lock()
		ready, wanted, closed, moved := s.conn != nil, s.wanted, s.closed, s.moved
		err := s.startError()
		s.mu.Unlock()
		switch {
		case closed:
			return ErrClosed
		case ready:
			return nil
		case !wanted:
			return err
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// startError describes why it is not ready. The lock is held.
func (s *Server) startError() *StartError {
	reason := s.state.Reason
	if reason == "" {
		reason = "the server was not started"
	}
	return &StartError{Server: s.cfg.Name, Reason: reason, Stderr: s.stderr}
}

// State is where the server is now.
func (s *Server) State() State {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state
}

// Tools are the last known ones, sorted by exposed name, whether the server runs or not.
func (s *Server) Tools() []Tool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.tools)
}

// Aside lists the tools that are not offered, with the reason.
func (s *Server) Aside() []Aside {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.aside)
}

// Close ends the server and everything it started, and waits for that. Calls in flight become unknown. It may be called twice.
func (s *Server) Close() {
	s.mu.Lock()
	s.closed = true
	s.change(Stopped, "the server is closed")
	s.mu.Unlock()
	s.cancel()
	s.wg.Wait()
}

// change moves to a phase and wakes whoever waits for one. The lock is held.
func (s *Server) change(p Phase, reason string) {
	if s.closed && p != Stopped {
		return
	}
	s.state.Phase, s.state.Reason = p, reason
	if p != Ready && p != Starting {
		s.state.PID = 0
	}
	close(s.moved)
	s.moved = make(chan struct{})
}

// supervise starts the server whenever somebody needs it, and never on its own.
func (s *Server) supervise() {
	for {
		select {
		case <-s.demand:
		case <-s.ctx.Done():
			return
		}
		if c := s.bring(); c != nil {
			s.serve(c)
		}
	}
}

// bring tries until the server is ready or nothing is left to try.
func (s *Server) bring() *conn {
	for {
		s.mu.Lock()
		wait, ok := s.past.next(s.opts.Now(), s.lim, rand.Float64())
		if !ok {
			s.wanted = false
			s.change(Failed, fmt.Sprintf("%s; it was started %d times within %s", s.last, len(s.past.starts), s.lim.Window))
			s.mu.Unlock()
			return nil
		}
		s.mu.Unlock()
		if !s.pause(wait) {
			return nil
		}
		c, err := s.launch()
		if err == nil {
			return c
		}
		if !s.again(err) {
			return nil
		}
	}
}

// again notes a start that failed, and tells whether to try once more without being asked: not a command that is not there, and not a
// server that has already been waited for.
func (s *Server) again(err error) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.past.over(time.Time{}, s.opts.Now(), s.lim)
	s.last = clean(s.mask.hide(err.Error()), 500)
	phase := BackingOff
	switch {
	case errors.Is(err, errCommand):
		phase, s.wanted = Failed, false
	case errors.Is(err, errBudget):
		s.wanted = false
	}
	s.change(phase, s.last)
	s.opts.Log.Warn().Str("reason", s.last).Msg("an MCP server did not start")
	return s.wanted
}

func (s *Server) pause(d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return s.ctx.Err() == nil
	case <-s.ctx.Done():
		return false
	}
}

// serve keeps a ready server until its process ends.
func (s *Server) serve(c *conn) {
	ready := s.opts.Now()
	var listed time.Time
	row := 0 // of lists within a second of each other
	for alive := true; alive; {
		select {
		case <-s.ctx.Done():
			c.fail("the server was closed")
			alive = false
		case <-c.broken:
			alive = false
		case <-c.stale:
			if row++; time.Since(listed) > time.Second {
				row = 0
			}
			c.settle(row)
			alive = s.relist(c)
			listed = time.Now()
		}
	}
	s.mu.Lock()
	s.conn = nil
	s.past.over(ready, s.opts.Now(), s.lim)
	s.last, s.stderr = s.mask.hide(c.why()), c.err.String()
	s.change(BackingOff, s.last)
	s.mu.Unlock()
	<-c.gone
	s.mu.Lock()
	s.stderr = c.err.String()
	s.mu.Unlock()
	s.opts.Log.Warn().Str("reason", s.mask.hide(c.why())).Int("noise", c.noise).Msg("an MCP server ended")
}

// later hands a callback to its goroutine.
func (s *Server) later(f func()) {
	s.mu.Lock()
	s.calls = append(s.calls, f)
	s.mu.Unlock()
	select {
	case s.called <- struct{}{}:
	default:
	}
}

// callBack runs callbacks in order, the ones that are left at the end included.
func (s *Server) callBack() {
	for {
		last := isClosed(s.quiet)
		s.mu.Lock()
		calls := s.calls
		s.calls = nil
		s.mu.Unlock()
		for _, f := range calls {
			f()
		}
		switch {
		case len(calls) > 0:
			continue
		case last:
			return
		}
		select {
		case <-s.called:
		case <-s.quiet:
		}
	}
}

func (s *Server) late(ticket string, line []byte) {
	if s.opts.Late != nil {
		s.later(func() { s.opts.Late(ticket, readAnswer(line, s.lim.Text)) })
	}
}

// use marks a ticket as sent, once.
func (s *Server) use(ticket string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, used := s.used[ticket]; used || ticket == "" {
		return false
	}
	s.used[ticket] = struct{}{}
	return true
}
