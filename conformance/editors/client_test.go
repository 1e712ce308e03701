package editors_test

import (
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"time"

	"holdfast/conformance/harness"
)

// client is the editor's side of one connection. Its members belong to mu: the reading goroutine takes what comes, the story asks.
type client struct {
	s *story
	p profile
	a *harness.Agent

	mu        sync.Mutex
	opened    map[string]bool      // sessions that this connection may be told of
	replaying bool                 // session/load has no answer yet
	opening   map[string]string    // session/new ("") and session/resume without an answer, by request id
	answers   map[string]int       // how many, by request id
	taken     int                  // messages so far
	answered  map[string]int       // taken when the answer came, by request id
	prompts   map[string]*openTurn // without an answer
	finished  map[string]string    // message and tool call ids of finished turns, with the prompt
	questions []bool               // permission requests; true came while a prompt was open
	hesitates bool                 // the user looks at a question and does not answer it
	waiting   []json.RawMessage    // questions the user looks at
	unseen    []string             // message and tool call ids that this editor dropped
	news      chan struct{}        // gets a token with each message, when somebody waits for silence
}

// openTurn is a prompt whose answer has not come.
type openTurn struct {
	text    string
	ids     map[string]bool
	goal    bool // a goal works meanwhile: what is shown may belong to that
	stopped bool
}

// launch starts the agent the editor's way.
func (s *story) launch() *client {
	plain, faulty, err := harness.Binaries()
	if err != nil {
		s.t.Fatal(err)
	}
	env := []string{"HOLDFAST_HOME=" + s.home, "HOLDFAST_MODEL=openai/fake", "OPENAI_BASE_URL=" + s.model.URL()}
	if !s.p.pathOnly {
		env = append(env, "HOME="+s.dir, "USER=user", "LANG=C.UTF-8", "SHELL=/bin/sh", "TMPDIR="+s.dir)
	}
	binary := plain
	if s.tagged != nil {
		binary, env = faulty, append(env, s.tagged...)
	}
	c := &client{s: s, p: s.p, opened: map[string]bool{}, opening: map[string]string{}, answers: map[string]int{}, answered: map[string]int{}, prompts: map[string]*openTurn{}, finished: map[string]string{}}
	c.a = harness.Start(s.t, harness.Options{Binary: binary, Env: env, Dir: s.work, Incoming: c.take})
	s.clients = append(s.clients, c)
	return c
}

// take looks at one message as it comes.
func (c *client) take(a *harness.Agent, m harness.Message) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.taken++
	if !strings.HasPrefix(string(m.Raw), "{") || !strings.Contains(string(m.Raw), `"jsonrpc":"2.0"`) {
		c.s.fail(onlyProtocol, "%s", m.Raw)
	}
	select {
	case c.news <- struct{}{}:
	default:
	}
	switch {
	case m.Method == "":
		c.answer(m)
	case len(m.ID) == 0:
		c.notification(m)
	default:
		c.request(a, m)
	}
}

func (c *client) answer(m harness.Message) {
	id := string(m.ID)
	if c.answers[id]++; c.answers[id] > 1 {
		c.s.fail(oneAnswer, "request %s has %d answers", id, c.answers[id])
	}
	c.answered[id] = c.taken
	if session, ok := c.opening[id]; ok && m.Error == nil {
		r := struct{ SessionID string }{session}
		_ = json.Unmarshal(m.Result, &r) // newSession looks at it again
		c.opened[r.SessionID] = true
	}
	delete(c.opening, id)
	if m.Error != nil && c.p.errorEndsPrompt && len(c.prompts) > 0 {
		c.s.fail(noErrors, "an error ends the open prompt in the window: %v", m.Error)
	}
	if turn := c.prompts[id]; turn != nil {
		delete(c.prompts, id)
		if c.p.onlyEndTurn && !turn.stopped && !strings.Contains(string(m.Result), `"end_turn"`) {
			c.s.fail(endTurnOnly, "%q: %s", turn.text, m.Raw)
		}
		for item := range turn.ids {
			c.finished[item] = turn.text
		}
	}
}

func (c *client) notification(m harness.Message) {
	if m.Method == "$/cancel_request" {
		return
	}
	var n struct {
		SessionID string
		Update    struct{ SessionUpdate, MessageID, ToolCallID string }
	}
	if err := json.Unmarshal(m.Params, &n); err != nil || m.Method != "session/update" {
		c.s.fail(onlyKnown, "%s", m.Raw)
		return
	}
	switch u := n.Update; {
	case c.opened[n.SessionID]:
	case len(c.opening) > 0 && c.p.hangsOnEarlyCommands && u.SessionUpdate == "available_commands_update":
		c.s.fail(commandsLater, "%s", m.Raw)
	case len(c.opening) > 0:
		c.s.fail(answerFirst, "%s", m.Raw)
	default:
		c.s.fail(onlyOpened, "%s", m.Raw)
	}
	item := n.Update.MessageID + n.Update.ToolCallID
	if item == "" {
		return
	}
	if prompt := c.finished[item]; prompt != "" {
		c.s.fail(answerLast, "after the answer to %q: %s", prompt, m.Raw)
	}
	if len(c.prompts) == 0 && c.p.stray == dropsStray && !c.replaying {
		c.unseen = append(c.unseen, item)
	}
	for _, turn := range c.prompts {
		if !turn.goal {
			turn.ids[item] = true
		}
	}
}

// request answers a request of the agent as the editor does.
func (c *client) request(a *harness.Agent, m harness.Message) {
	area, _, _ := strings.Cut(m.Method, "/")
	allowed := map[string]bool{"fs": c.p.fs, "terminal": c.p.terminal, "elicitation": c.p.elicitation}
	gate, gated := allowed[area]
	switch {
	case m.Method == "session/request_permission":
		c.permission(a, m)
		return
	case !gated:
		c.s.fail(onlyKnown, "%s", m.Raw)
	case !gate:
		c.s.fail(onlyAnnounced, "%s", m.Raw)
	}
	if c.p.unknown == refusedRequest {
		go a.Send(object{"jsonrpc": "2.0", "id": m.ID, "error": object{"code": -32601, "message": "Method not found"}})
	}
}

func (c *client) permission(a *harness.Agent, m harness.Message) {
	var p struct {
		SessionID string
		Options   []struct{ OptionID, Kind string }
	}
	if err := json.Unmarshal(m.Params, &p); err != nil || !c.opened[p.SessionID] {
		c.s.fail(onlyOpened, "%s", m.Raw)
		return
	}
	inTurn := len(c.prompts) > 0
	c.questions = append(c.questions, inTurn)
	if c.hesitates {
		c.waiting = append(c.waiting, m.ID)
		return
	}
	if !inTurn && c.p.unopened == ignored {
		return
	}
	outcome := object{"outcome": "cancelled"}
	if inTurn || c.p.unopened != cancelled {
		for _, o := range p.Options {
			if o.Kind == "allow_once" {
				outcome = object{"outcome": "selected", "optionId": o.OptionID}
				break
			}
		}
	}
	a.Answer(m.ID, object{"outcome": outcome})
}

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
