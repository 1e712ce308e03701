package provider

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"holdfast/session"
)

// Scripted plays a script: ordered rules, of which the first that matches a request answers it. docs/scripted.md describes the
// format. It keeps no state (I7), so work that a crash interrupted goes on in the next process as it would with a real model.
type Scripted struct {
	name  string
	rules []rule
}

// NewScripted parses a script. The name is shown as the model's name: the path of the file, or a word for an embedded script.
func NewScripted(name string, data []byte) (*Scripted, error) {
	rules, err := parseScript(data)
	if err != nil {
		return nil, fmt.Errorf("read the script %s: %w", name, err)
	}
	return &Scripted{name: name, rules: rules}, nil
}

// Identity implements session.Model.
func (m *Scripted) Identity() session.ModelIdentity {
	return session.ModelIdentity{Provider: "scripted", Name: m.name, Scripted: true}
}

// Stream implements session.Model.
func (m *Scripted) Stream(ctx context.Context, req session.ModelRequest, onDelta func(session.Delta) error) (session.ModelResponse, error) {
	if err := ctx.Err(); err != nil {
		return session.ModelResponse{}, err
	}
	s := survey(req)
	r, ok := m.match(s)
	if !ok {
		r = rule{say: m.nothing(s), chunks: 1, finish: session.FinishStop}
	} else {
		r.say, r.think = s.expand(r.say), s.expand(r.think)
	}
	if err := play(ctx, r, onDelta); err != nil {
		return session.ModelResponse{}, err
	}
	if r.fault != nil {
		fault := *r.fault
		return session.ModelResponse{}, &fault
	}
	resp := session.ModelResponse{Text: r.say, Thought: r.think, Finish: r.finish, Usage: r.usage}
	ids := newCallIDs(req.Messages)
	for _, c := range r.calls {
		resp.Calls = append(resp.Calls, session.Call{ID: ids.next(), Name: c.name, Args: c.args(s)})
	}
	return resp, nil
}

func (m *Scripted) match(s surveyed) (rule, bool) {
	for _, r := range m.rules {
		if r.when.holds(s) {
			return r, true
		}
	}
	return rule{}, false
}

// nothing is the answer when no rule matches. It shows what rules look at, so that a script can be mended from it.
func (m *Scripted) nothing(s surveyed) string {
	return fmt.Sprintf("This is a scripted model, and no rule of its script %s matches this request (last user message: %q; "+
		"tool results: %d, since that message: %d; tools offered: %s).", m.name, clip(oneLine(s.user), 80), s.results, s.turnResults,
		cmp.Or(strings.Join(slices.Sorted(maps.Keys(s.tools)), ", "), "none"))
}

// play sends the deltas of an answer, the thought first.
func play(ctx context.Context, r rule, onDelta func(session.Delta) error) error {
	var deltas []session.Delta
	for _, t := range split(r.think, r.chunks) {
		deltas = append(deltas, session.Delta{Thought: t})
	}
	for _, t := range split(r.say, r.chunks) {
		deltas = append(deltas, session.Delta{Text: t})
	}
	for _, d := range deltas {
		if err := pause(ctx, r.delay); err != nil {
			return err
		}
		if err := onDelta(d); err != nil {
			return err
		}
	}
	return pause(ctx, r.delay)
}

func pause(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// split cuts a text between characters into n parts of nearly equal length, or fewer when it is shorter.
func split(text string, n int) []string {
	if text == "" {
		return nil
	}
	if n <= 1 {
		return []string{text}
	}
	runes := []rune(text)
	n = min(n, len(runes))
	parts := make([]string, n)
	for i := range parts {
		parts[i] = string(runes[i*len(runes)/n : (i+1)*len(runes)/n])
	}
	return parts
}

// surveyed is what rules may look at in a request.
type surveyed struct {
	user        string // last user message
	result      string // last tool result
	results     int    // tool results in the whole request
	turnResults int    // tool results after the last user message
	users       int    // user messages
	faults      int
	cwd         string
	tools       map[string]bool
	texts       []string
}

func survey(req session.ModelRequest) surveyed {
	s := surveyed{tools: map[string]bool{}, faults: req.Faults, cwd: req.Cwd}
	for _, t := range req.Tools {
		s.tools[t.Name] = true
	}
	for _, m := range req.Messages {
		s.texts = append(s.texts, m.Text)
		switch m.Role {
		case session.RoleUser:
			s.user, s.turnResults = m.Text, 0
			s.users++
		case session.RoleTool:
			s.result = m.Text
			s.results++
			s.turnResults++
		}
	}
	return s
}

// contains looks into each message on its own, so that no match spans two of them.
func (s surveyed) contains(part string) bool {
	for _, t := range s.texts {
		if strings.Contains(t, part) {
			return true
		}
	}
	return false
}
