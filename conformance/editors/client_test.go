package editors_test

import (
	"encoding/json"
	"strings"
	"sync"

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
	unseen    []dropped            // what this editor dropped
	news      chan struct{}        // gets a token with each message, when somebody waits for silence
}

// dropped is an update of a message or a tool call that came while no prompt was open.
type dropped struct{ session, id, raw string }

// openTurn is a prompt whose answer has not come.
type openTurn struct {
	text    string
	ids     map[string]bool
	goal    bool // a goal works meanwhile: what is shown may belong to that
	stopped bool
}

// client is one that has heard nothing.
func (s *story) client() *client {
	return &client{s: s, p: s.p, opened: map[string]bool{}, opening: map[string]string{}, answers: map[string]int{}, answered: map[string]int{},
		prompts: map[string]*openTurn{}, finished: map[string]string{}}
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
	c := s.client()
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
		c.unseen = append(c.unseen, dropped{n.SessionID, item, string(m.Raw)})
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
