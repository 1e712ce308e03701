package editors_test

import (
	"encoding/json"
	"slices"
	"strings"
)

// entry is a message or a tool call as a user sees it in the end.
type entry struct {
	id, kind, text, status string
}

// history joins what a connection showed of a session.
func history(c *client, session string) []*entry {
	var out []*entry
	at := map[string]*entry{}
	for _, raw := range c.a.Updates(session) {
		u := decode[struct {
			SessionUpdate, MessageID, ToolCallID, Title, Status string
			Content                                             json.RawMessage
		}](c.s, raw)
		id := u.MessageID + u.ToolCallID
		if id == "" {
			continue
		}
		e := at[id]
		if e == nil {
			e = &entry{id: id, kind: strings.TrimSuffix(u.SessionUpdate, "_update")}
			at[id] = e
			out = append(out, e)
		}
		if u.ToolCallID != "" {
			e.text, e.status = u.Title+string(u.Content), u.Status
			continue
		}
		e.text += decode[struct{ Text string }](c.s, u.Content).Text
	}
	return out
}

// compare loads the session twice, each time in a new process, and compares with what was shown live and with what was accepted.
func (s *story) compare(session string) {
	var shows []string
	var stored []*entry
	for range 2 {
		c := s.launch()
		c.initialize()
		s.require(c.openBy("session/load", session) == nil, nothingLost, "the thread cannot be loaded")
		shows = append(shows, strings.Join(c.replay(session), "\n"))
		stored = history(c, session)
		if err := c.a.CloseInput(); err != nil {
			s.fail(endsClean, "%v", err)
		}
	}
	if shows[0] != shows[1] {
		s.fail(sameAgain, "%s\n\nand then\n\n%s", shows[0], shows[1])
	}
	s.keeps(stored)
	dropped := 0
	for _, c := range s.clients[:len(s.clients)-2] {
		dropped += s.keepsDropped(session, stored, c)
		s.covers(stored, history(c, session), c == s.killed)
	}
	if (dropped > 0) != (s.p.stray == dropsStray) {
		s.fail(droppedKept, "%d updates came while no prompt was open", dropped)
	}
}

// keepsDropped checks that what the editor threw away of the session is there, and returns how much that was. What another session was told,
// that work goes on elsewhere for example, belongs to no history.
func (s *story) keepsDropped(session string, stored []*entry, c *client) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := 0
	for _, d := range c.unseen {
		if d.session != session {
			continue
		}
		n++
		if c != s.killed && !slices.ContainsFunc(stored, func(e *entry) bool { return e.id == d.id }) {
			s.fail(droppedKept, "%s", d.raw)
		}
	}
	return n
}

// replay is everything that came before the answer to session/load, as it came.
func (c *client) replay(session string) (lines []string) {
	for _, m := range c.a.Log() {
		if m.Method == "session/update" && strings.Contains(string(m.Params), session) {
			lines = append(lines, string(m.Params))
		}
		if m.Method == "" && strings.Contains(string(m.Result), `"modes"`) {
			return lines
		}
	}
	return lines
}

// keeps checks that each accepted prompt is there once.
func (s *story) keeps(stored []*entry) {
	for _, text := range s.accepted {
		n := 0
		for _, e := range stored {
			if e.kind == "user_message_chunk" && e.text == text {
				n++
			}
		}
		if n != 1 {
			s.fail(nothingLost, "the prompt %q is there %d times", text, n)
		}
	}
}

// covers checks that what was shown live is stored, and in the same order. Text that streamed when the agent was killed may be lost.
func (s *story) covers(stored, live []*entry, killed bool) {
	last := -1
	for i, e := range live {
		at := slices.IndexFunc(stored, func(have *entry) bool { return have.id == e.id })
		cut := killed && i == len(live)-1
		switch {
		case at < 0 && !cut:
			s.fail(nothingLost, "%s is not in the load: %q", e.kind, e.text)
		case at < 0:
		case !same(stored[at], e) && !cut:
			s.fail(nothingLost, "%s was shown as %q (%s) and is loaded as %q (%s)", e.kind, e.text, e.status, stored[at].text, stored[at].status)
		case strings.Contains(stored[at].text, interrupted):
			continue // what is cut off gets its place when it is stored
		case at < last:
			s.fail(nothingLost, "the order differs at %q: shown %q; loaded %q", e.text, titles(live), titles(stored))
		}
		last = max(last, at)
	}
}

// interrupted begins the mark behind a text that was cut off.
const interrupted = "\n\n[interrupted"

// same allows for the mark that tells that a message was cut off.
func same(stored, live *entry) bool {
	text, mark, found := strings.Cut(stored.text, interrupted)
	if found && !strings.Contains(live.text, mark) {
		return text == live.text
	}
	return stored.text == live.text && stored.status == live.status
}

func titles(all []*entry) (out []string) {
	for _, e := range all {
		out = append(out, e.kind+" "+e.text[:min(len(e.text), 24)])
	}
	return out
}
