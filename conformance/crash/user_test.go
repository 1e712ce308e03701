package crash_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"sync"
	"syscall"

	"holdfast/conformance/fakemodel"
	"holdfast/conformance/harness"
)

// errDied: the agent was killed. What was not acknowledged has to be done again.
var errDied = errors.New("the agent died")

// user is one client and what it remembers across the agent's lives.
type user struct {
	w        *world
	a        *harness.Agent
	launches int
	died     string // the point at which the last life ended

	session string // "" until one was acknowledged
	created bool   // the Goal was acknowledged
	sent    string // the prompt that was sent last
	steps   map[string]bool
	retries int      // the Goal waited because of two deaths in a row, and was told to go on
	env     []string // for the next life that dies

	// choose answers a permission request, "" leaves it open; nil allows everything. unknown answers one that names an unknown outcome.
	choose  func(title string) string
	unknown func() string

	mu   sync.Mutex
	asks []ask
}

// ask is one permission request as it came.
type ask struct {
	launch  int
	title   string
	unknown bool
}

func newUser(w *world) *user { return &user{w: w, steps: map[string]bool{}} }

// launch starts the agent, which dies at the point unless that is "". It does not say hello yet.
func (u *user) launch(point string, more ...string) {
	u.w.t.Helper()
	plain, faulty, err := harness.Binaries()
	if err != nil {
		u.w.t.Fatal(err)
	}
	u.launches++
	bin := plain
	env := append(append([]string{"HOLDFAST_HOME=" + u.w.home, "HOLDFAST_LOG=info"}, u.w.model.Env(fakemodel.Family())...), more...)
	if point != "" {
		bin = faulty
		env = append(env, u.w.arm(u.launches, point)...)
	}
	n := u.launches
	u.a = harness.Start(u.w.t, harness.Options{Binary: bin, Env: env, Permission: func(p json.RawMessage) string { return u.permit(n, p) }})
}

func (u *user) permit(launch int, params json.RawMessage) string {
	var p struct {
		ToolCall struct{ Title string }
		Options  []struct{ OptionID string }
	}
	if err := json.Unmarshal(params, &p); err != nil {
		u.w.t.Errorf("a permission request: %v", err)
	}
	q := ask{launch: launch, title: p.ToolCall.Title}
	for _, o := range p.Options {
		q.unknown = q.unknown || o.OptionID == "it_happened"
	}
	u.mu.Lock()
	u.asks = append(u.asks, q)
	u.mu.Unlock()
	switch {
	case q.unknown && u.unknown != nil:
		return u.unknown()
	case u.choose != nil:
		return u.choose(q.title)
	}
	return "allow_once"
}

// asked counts the permission requests of the present life that hold the text.
func (u *user) asked(text string) int {
	u.mu.Lock()
	defer u.mu.Unlock()
	n := 0
	for _, q := range u.asks {
		if q.launch == u.launches && strings.Contains(q.title, text) {
			n++
		}
	}
	return n
}

// call sends a request and decodes its result. It returns errDied when the agent is gone.
func (u *user) call(method string, params map[string]any, v any) error {
	u.w.t.Helper()
	return u.await(u.a.Begin(method, params), method, v)
}

func (u *user) await(id, method string, v any) error {
	u.w.t.Helper()
	m, ok := u.a.Find(func(m harness.Message) bool { return m.Method == "" && string(m.ID) == id })
	if !ok && syscall.Kill(u.a.PID(), 0) == nil {
		return fmt.Errorf("%s: no answer", method)
	}
	if !ok {
		return fmt.Errorf("%s: %w", method, errDied)
	}
	if m.Error != nil {
		return fmt.Errorf("%s: %w", method, m.Error)
	}
	if v == nil {
		return nil
	}
	return json.Unmarshal(m.Result, v)
}

// until polls, and stops at an error.
func (u *user) until(what string, ok func() (bool, error)) error {
	u.w.t.Helper()
	var err error
	harness.Eventually(u.w.t, what, func() bool {
		var is bool
		is, err = ok()
		return is || err != nil
	})
	return err
}

func (u *user) hello() error {
	return u.call("initialize", map[string]any{"protocolVersion": 1, "clientCapabilities": map[string]any{}}, nil)
}

// open makes the session, or opens the one there is. It returns the mode the session is in.
func (u *user) open() (mode string, err error) {
	var r struct {
		SessionID string
		Modes     struct{ CurrentModeID string }
	}
	if u.session == "" {
		if err := u.call("session/new", map[string]any{"cwd": u.w.work, "mcpServers": []any{}}, &r); err != nil {
			return "", err
		}
		u.session = r.SessionID
		return r.Modes.CurrentModeID, nil
	}
	err = u.call("session/load", map[string]any{"sessionId": u.session, "cwd": u.w.work, "mcpServers": []any{}}, &r)
	return r.Modes.CurrentModeID, err
}

// leave ends the agent's input, as an editor does that closes, and waits for its end.
func (u *user) leave() error {
	u.w.t.Helper()
	err := u.a.CloseInput()
	var ee *exec.ExitError
	if errors.As(err, &ee) {
		if st, ok := ee.Sys().(syscall.WaitStatus); ok && st.Signal() == syscall.SIGKILL {
			return errDied
		}
		return fmt.Errorf("the agent ended with %w: %s", err, u.a.Stderr())
	}
	return err
}

// goal is what get_goal tells.
type goal struct {
	Status, Phase, ReasonCode, Reason string
	History                           []struct {
		What, Kind, State, Mode, Rule, Title, Fact, SettledBy string
		Generation                                            int64
		ExitCode                                              *int
	}
}

func (u *user) goal() (goal, error) {
	var r struct{ Goal *goal }
	err := u.call("get_goal", map[string]any{"sessionId": u.session, "history": true}, &r)
	if err == nil && r.Goal == nil {
		err = errors.New("the session has no goal")
	}
	if err != nil {
		return goal{}, err
	}
	return *r.Goal, nil
}

// must fails the test.
func (u *user) must(err error) {
	u.w.t.Helper()
	if err != nil {
		u.w.t.Fatal(err)
	}
}
