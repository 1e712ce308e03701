package fakemodel

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"
)

// maxBody bounds a request.
const maxBody = 256 << 20

// Server is the fake service. Its goroutines are the HTTP server's; Close waits for them.
type Server struct {
	handler func(Request) Reply
	url     string
	http    *http.Server
	stop    context.CancelFunc
	served  chan struct{}

	mu       sync.Mutex
	closed   bool
	thinks   bool
	extracts bool
	listing  Listing
	cache    *cache
	running  sync.WaitGroup
	requests []Request
	arrived  chan struct{} // closed and replaced with each logged request
}

// New starts a server on a free loopback port. It panics when there is none: nothing can be tested then. The handler may be called
// by several goroutines at once.
func New(handler func(Request) Reply) *Server {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(fmt.Sprintf("fakemodel: listen on loopback: %v", err))
	}
	ctx, stop := context.WithCancel(context.Background())
	s := &Server{handler: handler, url: "http://" + l.Addr().String() + "/v1", stop: stop,
		served: make(chan struct{}), arrived: make(chan struct{})}
	s.http = &http.Server{Handler: s, ReadHeaderTimeout: 30 * time.Second, BaseContext: func(net.Listener) context.Context { return ctx }}
	go func() {
		defer close(s.served)
		_ = s.http.Serve(l) // ends with Close
	}()
	return s
}

// URL is the base URL, as one would set it for OpenAI: with the version.
func (s *Server) URL() string { return s.url }

// Origin is the base URL, as one would set it for Anthropic: without the version.
func (s *Server) Origin() string { return strings.TrimSuffix(s.url, "/v1") }

// Think lets every answer on the messages and responses wires begin with a thought of which only the sealed form is sent, as newer models
// do unless asked for more.
func (s *Server) Think() *Server {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.thinks = true
	return s
}

// Extract lets the handler answer requests for the requirements of an objective. Unless it is called they are answered with an empty list and do
// not appear among Requests, so that a script begins with its first turn.
func (s *Server) Extract() *Server {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.extracts = true
	return s
}

// aside answers what a script does not want to see.
func (s *Server) aside(r Request) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.extracts && len(r.Tools) == 1 && r.Tools[0].Name == "submit_requirements"
}

// Families are the model families that the server plays.
var Families = []string{"openai", "anthropic", "responses"}

// Family is the one that a whole suite runs on: HOLDFAST_FAMILY, or the first.
func Family() string {
	if f := os.Getenv("HOLDFAST_FAMILY"); f != "" {
		return f
	}
	return Families[0]
}

// Env is what an agent gets in its environment to talk to this server as a model of that family.
func (s *Server) Env(family string) []string {
	switch family {
	case "openai":
		return []string{"HOLDFAST_MODEL=openai/fake", "OPENAI_BASE_URL=" + s.URL()}
	case "responses":
		return []string{"HOLDFAST_MODEL=openai/fake", "OPENAI_BASE_URL=" + s.URL(), "HOLDFAST_OPENAI_API=responses"}
	case "anthropic":
		return []string{"HOLDFAST_MODEL=anthropic/claude-fake", "ANTHROPIC_BASE_URL=" + s.Origin()}
	}
	panic("fakemodel: unknown family " + family)
}

// Close ends all streams and waits for their handlers. It may be called twice.
func (s *Server) Close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.stop()
	_ = s.http.Close()
	<-s.served
	s.running.Wait()
}

// Requests returns what arrived so far.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Request(nil), s.requests...)
}

// Wait returns once n requests have arrived, or with the context's error.
func (s *Server) Wait(ctx context.Context, n int) ([]Request, error) {
	for {
		s.mu.Lock()
		arrived, got := s.arrived, append([]Request(nil), s.requests...)
		s.mu.Unlock()
		if len(got) >= n {
			return got, nil
		}
		select {
		case <-arrived:
		case <-ctx.Done():
			return got, fmt.Errorf("wait for %d model requests, %d came: %w", n, len(got), ctx.Err())
		}
	}
}

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !s.enter() {
		return
	}
	defer s.running.Done()
	switch {
	case r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/models"):
		s.list(w, r)
	case r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/chat/completions"):
		s.complete(w, r, chat{}, parse)
	case r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/v1/messages"):
		s.mu.Lock()
		thinks := s.thinks
		s.mu.Unlock()
		s.complete(w, r, &messages{thinks: thinks}, parseMessages)
	case r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/responses"):
		s.mu.Lock()
		thinks := s.thinks
		s.mu.Unlock()
		s.complete(w, r, &responses{thinks: thinks}, parseResponses)
	default:
		writeJSON(w, http.StatusNotFound, chat{}.problem(0, Problem{Message: "Invalid URL (" + r.Method + " " + r.URL.Path + ")", Kind: "invalid_request_error"}))
	}
}

// enter counts a running handler, unless the server is closed.
func (s *Server) enter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.running.Add(1)
	}
	return !s.closed
}

func (s *Server) complete(w http.ResponseWriter, r *http.Request, wire wire, parse func([]byte) (Request, error)) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		return // the client is gone or too large; there is nobody to answer
	}
	req, err := parse(body)
	req.Header, req.Path = r.Header.Clone(), r.URL.Path
	if err == nil && s.aside(req) {
		none := Calls(Call{ID: "call_requirements", Name: "submit_requirements", Args: `{"requirements":[]}`})
		none.Usage = &Usage{}
		(&player{wire: wire, w: w, ctx: r.Context(), req: req, reply: none}).play()
		return
	}
	req = s.log(req, err)
	if err != nil {
		var bad *refusal
		if !errors.As(err, &bad) {
			bad = &refusal{message: err.Error()}
		}
		writeJSON(w, http.StatusBadRequest, wire.problem(http.StatusBadRequest, Problem{Message: bad.message, Kind: "invalid_request_error", Code: bad.code}))
		return
	}
	p := &player{wire: wire, w: w, ctx: r.Context(), req: req, reply: s.counted(req, s.handler(req))}
	p.play()
}

func (s *Server) log(req Request, err error) Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	req.N = len(s.requests) + 1
	if err != nil {
		req.Refused = err.Error()
	}
	s.requests = append(s.requests, req)
	close(s.arrived)
	s.arrived = make(chan struct{})
	return req
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // the client may be gone
}
