package editors_test

import (
	"encoding/json"
	"slices"
	"testing"

	"holdfast/conformance/harness"
)

// hears gives a client lines as if its agent had sent them, and returns the checks that failed. Session "s" is open; the prompt with id 1 is
// not answered; request 2 is a session/new.
func hears(editor string, lines ...string) (failed []check) {
	s := &story{p: profileOf(editor)}
	c := s.client()
	c.opened["s"] = true
	c.prompts["1"] = &openTurn{text: "hello", ids: map[string]bool{}}
	for _, line := range lines {
		if line == "session/new" {
			c.opening["2"] = ""
			continue
		}
		m := harness.Message{Raw: []byte(line)}
		_ = json.Unmarshal(m.Raw, &m) // what is no JSON is a line all the same
		c.take(nil, m)
	}
	for _, f := range s.failures {
		failed = append(failed, f.check)
	}
	return failed
}

func said(session, id string) string {
	return `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"` + session + `","update":` +
		`{"sessionUpdate":"agent_message_chunk","messageId":"` + id + `","content":{"type":"text","text":"x"}}}}`
}

const (
	answer1  = `{"jsonrpc":"2.0","id":1,"result":{"stopReason":"end_turn"}}`
	commands = `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"new","update":` +
		`{"sessionUpdate":"available_commands_update","availableCommands":[]}}}`
	question = `{"jsonrpc":"2.0","id":9,"method":"session/request_permission","params":{"sessionId":"t","options":[]}}`
)

// What no workaround can bring about is brought about here: a check that cannot fail would prove nothing.
func TestChecks_SeeWhatAnEditorCannotTake(t *testing.T) {
	for _, c := range []struct {
		name, editor string
		lines        []string
		want         check // "" for none
	}{
		{"a turn and its answer", "zed", []string{said("s", "m1"), answer1, said("s", "m2")}, ""},
		{"a new session and its update", "zed", []string{"session/new", `{"jsonrpc":"2.0","id":2,"result":{"sessionId":"new"}}`, said("new", "m1")}, ""},
		{"two answers", "zed", []string{answer1, answer1}, oneAnswer},
		{"a line that is no object", "zed", []string{`["jsonrpc":"2.0"]`}, onlyProtocol},
		{"a log line", "zed", []string{`starting up`}, onlyProtocol},
		{"an update of a finished turn", "zed", []string{said("s", "m1"), answer1, said("s", "m1")}, answerLast},
		{"an update of another session", "zed", []string{said("t", "m1")}, onlyOpened},
		{"an update before the answer", "zed", []string{"session/new", said("new", "m1")}, answerFirst},
		{"commands before the answer", "jetbrains", []string{"session/new", commands}, commandsLater},
		{"a question about another session", "codecompanion", []string{question}, onlyOpened},
		{"a file request without the capability", "agentic.nvim", []string{`{"jsonrpc":"2.0","id":9,"method":"fs/read_text_file","params":{}}`}, onlyAnnounced},
		{"a terminal without the capability", "codecompanion", []string{`{"jsonrpc":"2.0","id":9,"method":"terminal/create","params":{}}`}, onlyAnnounced},
		{"a form without the capability", "avante", []string{`{"jsonrpc":"2.0","id":9,"method":"elicitation/create","params":{}}`}, onlyAnnounced},
		{"a request of our own", "avante", []string{`{"jsonrpc":"2.0","id":9,"method":"_holdfast/hello","params":{}}`}, onlyKnown},
		{"a notification of our own", "avante", []string{`{"jsonrpc":"2.0","method":"_holdfast/hello","params":{}}`}, onlyKnown},
		{"an error while a prompt is open", "codecompanion", []string{`{"jsonrpc":"2.0","id":7,"error":{"code":-32602,"message":"no"}}`}, noErrors},
		{"the same error elsewhere", "zed", []string{`{"jsonrpc":"2.0","id":7,"error":{"code":-32602,"message":"no"}}`}, ""},
		{"another stop reason", "codecompanion", []string{`{"jsonrpc":"2.0","id":1,"result":{"stopReason":"max_tokens"}}`}, endTurnOnly},
	} {
		got := hears(c.editor, c.lines...)
		if c.want == "" && len(got) > 0 || c.want != "" && !slices.Contains(got, c.want) {
			t.Errorf("%s in %s: want %q, got %q", c.name, c.editor, c.want, got)
		}
	}
}

// The comparison of what was shown with what is loaded sees what is missing.
func TestChecks_SeeWhatIsLost(t *testing.T) {
	user, one, two := &entry{"u", "user_message_chunk", "hello", ""}, &entry{"a", "agent_message_chunk", "one", ""}, &entry{"b", "agent_message_chunk", "two", ""}
	tool, done := &entry{"c", "tool_call", "ls", "in_progress"}, &entry{"c", "tool_call", "ls", "completed"}
	for _, c := range []struct {
		name         string
		stored, live []*entry
		want         check
	}{
		{"all of it", []*entry{user, one, two, done}, []*entry{one, two, done}, ""},
		{"a message is missing", []*entry{user, one}, []*entry{one, two}, nothingLost},
		{"the text is shorter", []*entry{user, {"a", "agent_message_chunk", "on", ""}}, []*entry{one}, nothingLost},
		{"a call has another end", []*entry{user, done}, []*entry{tool}, nothingLost},
		{"the order differs", []*entry{user, two, one}, []*entry{one, two}, nothingLost},
		{"the prompt is missing", []*entry{one}, []*entry{one}, nothingLost},
		{"the prompt is there twice", []*entry{user, user, one}, []*entry{one}, nothingLost},
	} {
		s := &story{accepted: []string{"hello"}}
		s.keeps(c.stored)
		s.covers(c.stored, c.live, false)
		if got := len(s.failures) > 0; got != (c.want != "") {
			t.Errorf("%s: %v", c.name, s.failures)
		}
	}
	s := &story{}
	s.keepsDropped("s", []*entry{one}, &client{unseen: []dropped{{"s", "a", ""}, {"s", "b", ""}, {"another", "c", ""}}})
	if len(s.failures) != 1 {
		t.Errorf("one of two dropped messages is missing: %v", s.failures)
	}
}
