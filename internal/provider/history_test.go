package provider

import (
	"bytes"
	"encoding/json"
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"holdfast/conformance/fakemodel"
	"holdfast/session"
)

// anyHistory draws what a store may hold after any number of crashes: answers that were cut, calls in every state and of answers that were
// never stored, results that came or did not, ids that come again in another answer, answers in a provider's own form, and a compaction.
func anyHistory(t *rapid.T, id session.ModelIdentity) []session.Item {
	var items []session.Item
	texts := rapid.SampledFrom([]string{"", "a", "two\nlines", "ünï", " ", "[Outcome unknown.]", "\x00"})
	used := map[string]bool{}
	for i := range rapid.IntRange(0, 24).Draw(t, "items") {
		it := session.Item{ID: session.ItemID(fmt.Sprint("i", i)), Seq: int64(i + 1),
			Kind: rapid.SampledFrom([]session.ItemKind{session.ItemUser, session.ItemNote, session.ItemAgent, session.ItemAgent, session.ItemTool, session.ItemTool,
				session.ItemTool, session.ItemThought, session.ItemMarker, session.ItemGoal, session.ItemCompaction}).Draw(t, "kind"),
			State: rapid.SampledFrom([]session.ItemState{session.ItemOpen, session.ItemComplete, session.ItemInterrupted}).Draw(t, "state")}
		it.Body.Text = texts.Draw(t, "text")
		response := rapid.SampledFrom([]string{"r1", "r2", "r3", "r4"}).Draw(t, "response")
		switch it.Kind {
		case session.ItemUser, session.ItemNote:
			it.State = session.ItemComplete
			it.Body.Text += fmt.Sprint("input ", i)
		case session.ItemAgent:
			it.Body.Response = response
			if rapid.Bool().Draw(t, "native") { // of this model, but behind another history: it must not go back on the messages wire
				it.Body.Native = &session.Native{Provider: id.Provider, Model: id.Name, Before: "other", Blocks: []json.RawMessage{json.RawMessage(`{"type":"text","text":"own form"}`)}}
			}
		case session.ItemTool:
			c := &session.ToolCall{CallID: rapid.SampledFrom([]string{"a", "b", "c d", "toolu_0123456789012345678901234567890123456789012345"}).Draw(t, "call id"),
				Name:   rapid.SampledFrom([]string{"read", "no such tool!", "mcp__x__y"}).Draw(t, "name"),
				Args:   rapid.SampledFrom([]string{`{}`, `{"path":"x"}`, `{"command`, ``, `null`, `[1]`}).Draw(t, "args"),
				Status: rapid.SampledFrom([]session.ToolStatus{session.ToolPending, session.ToolInProgress, session.ToolCompleted, session.ToolFailed}).Draw(t, "status"),
				Fact:   rapid.SampledFrom([]session.Fact{session.FactNone, session.FactNotStarted, session.FactUnknown, session.FactRunning, session.FactCompleted}).Draw(t, "fact")}
			if rapid.Bool().Draw(t, "output") {
				c.Output = &session.Output{Text: texts.Draw(t, "result"), IsError: rapid.Bool().Draw(t, "is error")}
			}
			if key := response + " " + c.CallID; used[key] {
				continue // such an answer is refused when it comes
			} else {
				used[key] = true
			}
			it.Body = session.ItemBody{Response: response, Tool: c}
		case session.ItemCompaction:
			it.State = session.ItemComplete
			it.Body = session.ItemBody{Text: "summary", Compaction: &session.Compaction{Covers: int64(rapid.IntRange(0, i).Draw(t, "covers")), Pinned: "facts"}}
		}
		items = append(items, it)
	}
	return items
}

// Whatever a history has gone through, each wire gets what its service accepts, and the same bytes each time; the history stays as it is.
func TestWires_AcceptAnyHistory(t *testing.T) {
	for _, family := range fakemodel.Families {
		t.Run(family, func(t *testing.T) {
			s := fakemodel.New(always(fakemodel.Text("ok")))
			t.Cleanup(s.Close)
			env := map[string]string{"OPENAI_BASE_URL": s.URL(), "ANTHROPIC_BASE_URL": s.Origin()}
			name := "openai/fake"
			switch family {
			case "anthropic":
				name = "anthropic/claude-fake"
			case "responses":
				env["HOLDFAST_OPENAI_API"] = "responses"
			}
			m, err := Resolve(Config{Model: name, Getenv: func(n string) string { return env[n] }, Limits: testLimits()})
			if err != nil {
				t.Fatal(err)
			}
			if c, ok := m.(interface{ Close() }); ok {
				t.Cleanup(c.Close)
			}
			rapid.Check(t, func(r *rapid.T) {
				items := anyHistory(r, m.Identity())
				stored := mustJSON(t, items)
				bodies := [2][]byte{}
				for i := range bodies {
					messages, err := session.Project(items, m.Identity())
					if err != nil {
						r.Fatalf("%v\n%s", err, stored)
					}
					if len(messages) == 0 || messages[0].Role != session.RoleUser { // a conversation begins with the user
						messages = append([]session.Message{{Role: session.RoleUser, Text: "begin"}}, messages...)
					}
					h := ask(t.Context(), m, session.ModelRequest{System: "s", Messages: messages, Tools: fullRequest().Tools})
					all := s.Requests()
					last := all[len(all)-1]
					if h.err != nil || last.Refused != "" {
						r.Fatalf("refused: %v %s\n%s\nfrom %s", h.err, last.Refused, last.Body, stored)
					}
					if err := fakemodel.CheckPairs(last.Messages); err != nil {
						r.Fatalf("%v\n%s\nfrom %s", err, last.Body, stored)
					}
					bodies[i] = last.Body
				}
				if !bytes.Equal(bodies[0], bodies[1]) {
					r.Fatalf("the same history gave\n%s\nand\n%s", bodies[0], bodies[1])
				}
				if now := mustJSON(t, items); now != stored {
					r.Fatalf("the history was changed from\n%s\nto\n%s", stored, now)
				}
			})
		})
	}
}
