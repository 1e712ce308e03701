package soak_test

import (
	"encoding/json"
	"slices"
	"sync"
	"time"

	"holdfast/conformance/harness"
)

// window is what a user has open: one agent at a time. Its members belong to the chaos goroutine.
type window struct {
	w        *world
	sessions []*session // its own, and some that it opened beside their window
	live     *launch    // nil between a death and the next launch
	again    time.Time  // when the next launch is due
}

// launch is one agent of a window. Answers arrive on the agent's reading goroutine.
type launch struct {
	w       *world
	a       *harness.Agent
	stopped time.Time // until when it is suspended; chaos goroutine only
	doomed  time.Time // when it is killed; chaos goroutine only

	mu      sync.Mutex
	pending map[string]func(harness.Message)
	opened  map[*session]bool
	waiting map[*session][]func() // what to do once the session is open
	open    map[*session]int      // prompts without an answer
}

// start launches the window's next agent. more is added to its environment.
func (win *window) start(more ...string) *launch {
	l := &launch{w: win.w, pending: map[string]func(harness.Message){}, opened: map[*session]bool{}, waiting: map[*session][]func(){}, open: map[*session]int{}}
	l.a = harness.Start(win.w.t, harness.Options{Binary: win.w.bin, Env: append(win.w.env(), more...), Dir: win.w.dir, Invalid: true, Incoming: l.incoming})
	win.live, win.again = l, time.Time{}
	return l
}

func (l *launch) incoming(a *harness.Agent, m harness.Message) {
	switch {
	case m.Method == "session/request_permission":
		a.Answer(m.ID, map[string]any{"outcome": map[string]any{"outcome": "selected", "optionId": "allow_once"}})
	case m.Method != "":
	default:
		l.mu.Lock()
		then := l.pending[string(m.ID)]
		delete(l.pending, string(m.ID))
		l.mu.Unlock()
		if then != nil {
			then(m)
		}
	}
}

// begin sends a request; then gets its answer, if one ever comes. sending is called in the order of the wire.
func (l *launch) begin(method string, params any, sending func(), then func(harness.Message)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if sending != nil {
		sending()
	}
	l.pending[l.a.Begin(method, params)] = then
}

// hello introduces a later launch.
func (l *launch) hello() {
	l.begin("initialize", map[string]any{"protocolVersion": 1, "clientCapabilities": map[string]any{}}, nil, nil)
}

// with does something once the session is open here.
func (l *launch) with(s *session, do func()) {
	l.mu.Lock()
	if l.opened[s] {
		l.mu.Unlock()
		do()
		return
	}
	l.waiting[s] = append(l.waiting[s], do)
	first := len(l.waiting[s]) == 1
	l.mu.Unlock()
	if first {
		l.load(s)
	}
}

func (l *launch) load(s *session) {
	l.begin("session/load", map[string]any{"sessionId": s.id, "cwd": s.dir, "mcpServers": []any{}}, nil, func(m harness.Message) {
		l.mu.Lock()
		todo := l.waiting[s]
		delete(l.waiting, s)
		l.opened[s] = m.Error == nil
		l.mu.Unlock()
		if m.Error != nil {
			l.w.did("session/load refused: " + m.Error.Message)
			return
		}
		for _, do := range todo {
			do()
		}
	})
}

// again loads a session once more whose load was refused: the store may have been busy for too long.
func (l *launch) again(s *session) {
	l.mu.Lock()
	refused := !l.opened[s] && len(l.waiting[s]) == 0
	l.mu.Unlock()
	if refused {
		l.with(s, func() {})
	}
}

// opens tells whether the session is open here.
func (l *launch) opens(s *session) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.opened[s]
}

func (l *launch) unanswered(s *session) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.open[s]
}

// prompt sends a prompt in a session that is open.
func (l *launch) prompt(p *prompt) {
	params := map[string]any{"sessionId": p.session.id, "prompt": []any{map[string]any{"type": "text", "text": p.text}}}
	l.begin("session/prompt", params, func() {
		l.open[p.session]++
		l.w.mu.Lock()
		defer l.w.mu.Unlock()
		p.launch, p.sent = l, now()
		l.w.prompts = append(l.w.prompts, p)
	}, func(m harness.Message) {
		var r struct{ StopReason string }
		if m.Error == nil && json.Unmarshal(m.Result, &r) != nil {
			l.w.t.Errorf("an answer to a prompt: %s", m.Raw)
		}
		l.mu.Lock()
		l.open[p.session]--
		l.mu.Unlock()
		l.w.mu.Lock()
		defer l.w.mu.Unlock()
		p.answered, p.stopReason, p.failed = now(), r.StopReason, m.Error
		if m.Error != nil {
			l.w.counts["prompt refused: "+m.Error.Message]++
		}
	})
}

// cancel stops what the session does.
func (l *launch) cancel(s *session) {
	l.a.Notify("session/cancel", map[string]any{"sessionId": s.id})
}

// setGoal sets a goal in a session that is open.
func (l *launch) setGoal(s *session, token string) {
	l.begin("create_goal", map[string]any{"sessionId": s.id, "objective": "Put " + token + " into " + pursued + "."}, nil, func(m harness.Message) {
		var r struct{ Goal struct{ GoalID string } }
		if m.Error != nil || json.Unmarshal(m.Result, &r) != nil || r.Goal.GoalID == "" {
			l.w.did("goals refused")
			return
		}
		l.w.mu.Lock()
		defer l.w.mu.Unlock()
		l.w.goals = append(l.w.goals, &goal{id: r.Goal.GoalID, token: token, session: s})
	})
}

// busy lists sessions of the window with prompts that wait for their answer.
func (win *window) busy() []*session {
	return slices.DeleteFunc(slices.Clone(win.sessions), func(s *session) bool { return win.live.unanswered(s) == 0 })
}
