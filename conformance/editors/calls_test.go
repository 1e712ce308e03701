package editors_test

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"holdfast/conformance/harness"
)

// initialize says hello, and signs in where this editor does.
func (c *client) initialize() {
	params := object{"protocolVersion": 1, "clientCapabilities": c.p.capabilities}
	if c.p.info != nil {
		params["clientInfo"] = c.p.info
	}
	r := decode[struct{ AuthMethods []struct{ ID string } }](c.s, c.must(noHang, "initialize", params))
	if c.p.authenticate && len(r.AuthMethods) > 0 {
		with := object{"methodId": r.AuthMethods[0].ID}
		for k, v := range c.p.authExtra {
			with[k] = v
		}
		c.must(signsIn, "authenticate", with)
	}
	c.must(lenient, "session/list", json.RawMessage(c.p.emptyParams))
}

// newSession opens a session.
func (c *client) newSession() string {
	params := object{"cwd": c.s.work, "mcpServers": array{}}
	if c.p.newMeta != nil {
		params["_meta"] = c.p.newMeta
	}
	c.mu.Lock() // the answer must not come before its id is known
	id := c.a.Begin("session/new", params)
	c.opening[id] = ""
	c.mu.Unlock()
	m := c.await(id)
	r := decode[struct {
		SessionID     string
		ConfigOptions []any
		Modes         struct{ AvailableModes []struct{ ID string } }
	}](c.s, m.Result)
	if r.SessionID == "" {
		c.s.halt(noHang, "session/new: %s", m.Raw)
	}
	if c.p.setMode && len(r.Modes.AvailableModes) > 0 { // options are only set where there are some
		c.must(noErrors, "session/set_mode", object{"sessionId": r.SessionID, "modeId": r.Modes.AvailableModes[0].ID})
	}
	return r.SessionID
}

// open opens a stored session again, and waits for a quiet moment where the editor does.
func (c *client) open(session string) *harness.Error {
	method := map[reopening]string{load: "session/load", resume: "session/resume"}[c.p.reopen]
	return c.openBy(method, session)
}

func (c *client) openBy(method, session string) *harness.Error {
	c.mu.Lock()
	id := c.a.Begin(method, object{"sessionId": session, "cwd": c.s.work, "mcpServers": array{}})
	if method == "session/load" {
		c.opened[session], c.replaying = true, true // the replay comes before the answer
	} else {
		c.opening[id] = session
	}
	c.mu.Unlock()
	m := c.await(id)
	c.mu.Lock()
	c.replaying = false
	c.mu.Unlock()
	at := c.position(id)
	if m.Error != nil {
		c.mu.Lock()
		delete(c.opened, session)
		c.mu.Unlock()
		return m.Error
	}
	if c.p.patience > 0 && method == "session/load" && !c.quietWithin(at, c.p.quiet, c.p.patience) {
		c.s.halt(quietGap, "no quiet moment of %v within %v after session/load", c.p.quiet, c.p.patience)
	}
	return nil
}

// prompt sends a prompt and returns its id.
func (c *client) prompt(session, text string, goal bool) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	id := c.a.Prompt(session, text)
	c.prompts[id] = &openTurn{text: text, ids: map[string]bool{}, goal: goal}
	return id
}

// hesitate makes the user look at questions without answering them.
func (c *client) hesitate(on bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.hesitates = on
}

// close closes a session; nothing may be said about it afterwards.
func (c *client) close(session string) {
	c.must(noErrors, "session/close", object{"sessionId": session})
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.opened, session)
}

// cancel stops what the session does.
func (c *client) cancel(session string) {
	params := object{"sessionId": session}
	for k, v := range c.p.cancelExtra {
		params[k] = v
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, turn := range c.prompts {
		turn.stopped = true
	}
	c.a.Notify("session/cancel", params)
	for _, question := range c.waiting {
		if c.p.cancelAnswer {
			c.a.Answer(question, object{"outcome": object{"outcome": "cancelled"}})
		}
	}
	c.waiting = nil
}

// ends waits for the answer to a prompt and checks how it ended.
func (c *client) ends(name check, id, want string) {
	m := c.await(id)
	if m.Error != nil {
		c.s.halt(name, "the prompt failed: %v", m.Error)
	}
	got := decode[struct{ StopReason string }](c.s, m.Result).StopReason
	if got != want {
		c.s.halt(name, "the prompt stops with %s, not %s", got, want)
	}
	if c.p.settles {
		c.quietWithin(c.position(id), settleMoment, 5*settleMoment) // it goes on without one all the same
	}
}

// position is how many messages had come when a request was answered.
func (c *client) position(id string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.answered[id]
}

func (c *client) await(id string) harness.Message {
	m, ok := c.a.Find(func(m harness.Message) bool { return m.Method == "" && string(m.ID) == id })
	if !ok {
		c.s.halt(noHang, "no answer to request %s", id)
	}
	return m
}

func (c *client) must(name check, method string, params any) json.RawMessage {
	m := c.await(c.a.Begin(method, params))
	if m.Error != nil {
		c.s.halt(name, "%s: %v", method, m.Error)
	}
	return m.Result
}

// sees waits for a message with these parts.
func (c *client) sees(name check, parts ...string) {
	_, ok := c.a.Find(func(m harness.Message) bool {
		return !slices.ContainsFunc(parts, func(p string) bool { return !strings.Contains(string(m.Raw), p) })
	})
	if !ok {
		c.s.halt(name, "no message has %q", parts)
	}
}

// asked waits until the n-th question of this connection came.
func (c *client) asked(name check, n int) {
	came := func() int {
		c.mu.Lock()
		defer c.mu.Unlock()
		return len(c.questions)
	}
	for end := time.Now().Add(c.s.limit); came() < n; <-time.After(10 * time.Millisecond) {
		if time.Now().After(end) {
			c.s.halt(name, "%d questions came, not %d", came(), n)
		}
	}
}

func decode[T any](s *story, raw json.RawMessage) (v T) {
	if err := json.Unmarshal(raw, &v); err != nil {
		s.halt(onlyProtocol, "%v: %s", err, raw)
	}
	return v
}
