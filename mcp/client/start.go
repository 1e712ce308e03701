package client

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	mcpclient "github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/mcp"
)

const (
	modernEra = "modern"
	legacyEra = "legacy"
)

// Eras remembers which configuration speaks the older protocol only, so that it is not probed again. The zero value is ready.
type Eras struct {
	mu     sync.Mutex
	legacy map[[32]byte]bool
}

func (e *Eras) key(c Config) [32]byte {
	b, _ := json.Marshal([]any{c.Command, c.Args, c.Dir})
	return sha256.Sum256(b)
}

func (e *Eras) isLegacy(c Config) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.legacy[e.key(c)]
}

func (e *Eras) set(c Config, legacy bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.legacy == nil {
		e.legacy = map[[32]byte]bool{}
	}
	e.legacy[e.key(c)] = legacy
}

func (s *Server) libOptions() []mcpclient.ClientOption {
	o := []mcpclient.ClientOption{mcpclient.WithMaxInputRoundTrips(1), mcpclient.WithDiscoverTimeout(s.lim.Probe)}
	if s.opts.Eras.isLegacy(s.cfg) {
		o = append(o, mcpclient.WithProtocolVersion(mcp.LATEST_LEGACY_PROTOCOL_VERSION))
	}
	return o
}

// errBudget: a start took too long.
var errBudget = errors.New("the server was not ready within")

// launch makes one start: process, protocol, list. A process that the probe kills gets a second life with the older handshake.
func (s *Server) launch() (*conn, error) {
	s.mu.Lock()
	s.change(Starting, "")
	budget := s.lim.budget(s.cfg.Command, s.wasReady)
	s.mu.Unlock()
	ctx, cancel := context.WithTimeoutCause(s.ctx, budget, fmt.Errorf("%w %s", errBudget, budget))
	defer cancel()
	c, err := s.open(ctx)
	if err != nil && c != nil && c.diedOfProbe() {
		s.opts.Eras.set(s.cfg, true)
		if c, err = s.open(ctx); err != nil {
			s.opts.Eras.set(s.cfg, false)
			s.innocent = true
		}
	} else if err != nil {
		s.opts.Eras.set(s.cfg, false) // it may have learnt the newer protocol
	}
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	s.conn, s.wanted, s.wasReady = c, false, true
	s.state.Era, s.state.Protocol = c.era, c.version
	s.change(Ready, "")
	s.mu.Unlock()
	c.listen()
	return c, nil
}

// listen asks a server of the newer protocol to tell about changes of its list; older ones do so unasked.
func (c *conn) listen() {
	if tools := c.lib.GetServerCapabilities().Tools; c.era != modernEra || tools == nil || !tools.ListChanged || !c.enter() {
		return
	}
	go func() {
		defer c.wg.Done()
		ctx, stop := c.alive(context.Background())
		defer stop()
		_ = c.lib.Listen(ctx, mcp.SubscriptionFilter{ToolsListChanged: true}) // a server that refuses tells us nothing, and the hash is compared anyway
	}()
}

// open launches one process and agrees with it. On failure the conn is closed already, and returned for its last words.
func (s *Server) open(ctx context.Context) (*conn, error) {
	s.mu.Lock()
	s.past.started(s.opts.Now(), s.lim)
	s.state.Generation++
	gen := s.state.Generation
	s.mu.Unlock()
	c, err := connect(s, gen)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	s.state.PID = c.child.self.PID
	s.mu.Unlock()
	err = c.negotiate(ctx)
	if err == nil {
		err = s.firstList(ctx, c)
	}
	if err == nil {
		return c, nil
	}
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	} else if within(c.broken, exitPause) {
		err = errors.New(c.why()) // says more than the library's closed transport
	}
	c.close("the start failed")
	s.mu.Lock()
	s.stderr = c.err.String()
	s.mu.Unlock()
	return c, err
}

// negotiate agrees on the protocol. A server that was too slow for the probe and then refuses the older handshake is asked once more.
func (c *conn) negotiate(ctx context.Context) error {
	ctx, stop := c.alive(ctx)
	defer stop()
	if err := c.lib.Start(ctx); err != nil {
		return err
	}
	r := mcp.InitializeRequest{}
	r.Params.ClientInfo = mcp.Implementation{Name: "holdfast", Version: c.s.opts.Version}
	_, err := c.lib.Initialize(ctx, r)
	if err != nil && c.answers() > 0 && ctx.Err() == nil {
		_, err = c.lib.Initialize(ctx, r)
	}
	if err != nil {
		return fmt.Errorf("the server did not agree on a protocol: %w", err)
	}
	c.version = c.lib.ProtocolVersion()
	c.era = legacyEra
	if mcp.IsModernProtocol(c.version) {
		c.era = modernEra
	}
	return nil
}

// alive ends a context with the conn, of whose end the library does not know.
func (c *conn) alive(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, stop := context.WithCancel(ctx)
	go func() {
		select {
		case <-c.broken:
			stop()
		case <-ctx.Done():
		}
	}()
	return ctx, stop
}

func (c *conn) answers() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.answered
}

// diedOfProbe: it ended by itself before it answered anything, after it was asked something that older servers do not know.
func (c *conn) diedOfProbe() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.s.innocent && !c.s.opts.Eras.isLegacy(c.s.cfg) && c.answered == 0 && c.alone
}
