package harness

import (
	"encoding/json"
	"testing"
)

func TestValidate_PlantedBogusUpdateFails(t *testing.T) {
	good := Message{Method: "session/update", Params: json.RawMessage(`{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"x"}}}`)}
	if err := Validate("session/update", good); err != nil {
		t.Errorf("a good update is refused: %v", err)
	}
	for name, params := range map[string]string{
		"unknown kind":   `{"sessionId":"s","update":{"sessionUpdate":"bogus","content":{"type":"text","text":"x"}}}`,
		"missing member": `{"sessionId":"s","update":{"sessionUpdate":"tool_call","title":"x"}}`,
		"wrong type":     `{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":1}}}`,
		"no session":     `{"update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"x"}}}`,
	} {
		if err := Validate("session/update", Message{Method: "session/update", Params: json.RawMessage(params)}); err == nil {
			t.Errorf("%s: a bogus update passes", name)
		}
	}
	if err := Validate("", Message{Method: "session/bogus", Params: json.RawMessage(`{}`)}); err == nil {
		t.Error("an undefined method passes")
	}
	if err := Validate("session/prompt", Message{ID: json.RawMessage("1"), Result: json.RawMessage(`{"stopReason":"bogus"}`)}); err == nil {
		t.Error("an undefined stop reason passes")
	}
}
