package acp_test

import (
	"encoding/json"
	"testing"

	"holdfast/conformance/harness"
)

// Version 1 is the one spoken: a client that asks for another is told so, and decides. Only what is no version is an error, after which
// the client may try again.
func TestInitialize_Versions(t *testing.T) {
	for name, c := range map[string]struct {
		params string
		code   int
	}{
		"0":       {`{"protocolVersion":0}`, 0},
		"1":       {`{"protocolVersion":1,"clientCapabilities":{}}`, 0},
		"2":       {`{"protocolVersion":2,"capabilities":{},"info":{"name":"x","version":"1"}}`, 0},
		"3":       {`{"protocolVersion":3}`, 0},
		"65535":   {`{"protocolVersion":65535}`, 0},
		"string":  {`{"protocolVersion":"1"}`, -32602},
		"missing": {`{}`, -32602},
		"65536":   {`{"protocolVersion":65536}`, -32602},
		"-1":      {`{"protocolVersion":-1}`, -32602},
		"array":   {`[]`, -32602},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newWorld(t, nil).raw(nil)
			raw, e := a.Call("initialize", json.RawMessage(c.params))
			if c.code != 0 {
				refused(t, "initialize", e, c.code, "protocolVersion")
				_, e = a.Call("session/list", map[string]any{})
				refused(t, "a request after a failed initialize", e, -32600)
				raw, e = a.Call("initialize", map[string]any{"protocolVersion": 1})
			}
			if e != nil {
				t.Fatal(e)
			}
			r := decode[struct {
				ProtocolVersion   int
				AgentInfo         struct{ Name, Version string }
				AgentCapabilities struct {
					LoadSession         bool
					PromptCapabilities  struct{ Image, Audio bool }
					SessionCapabilities map[string]any
				}
				AuthMethods []struct{ ID, Type string }
			}](t, raw)
			if r.ProtocolVersion != 1 {
				t.Errorf("the version is %d", r.ProtocolVersion)
			}
			if r.AgentInfo.Name == "" || r.AgentInfo.Version == "" || !r.AgentCapabilities.LoadSession {
				t.Errorf("got %s", raw)
			}
			for _, m := range r.AuthMethods {
				if m.Type != "" && m.Type != "agent" {
					t.Errorf("the method %s is of type %q, which this client did not announce", m.ID, m.Type)
				}
			}
			if len(r.AuthMethods) == 0 {
				t.Error("no way to sign in is named")
			}
			a.Must("session/list", map[string]any{}, nil)
		})
	}
}

// Before initialize a request is refused, whatever it is, and everything else is ignored.
func TestInitialize_ComesFirst(t *testing.T) {
	w := newWorld(t, nil)
	a := w.raw(nil)
	a.Notify("session/cancel", map[string]any{"sessionId": "x"})
	a.Notify("$/cancel_request", map[string]any{"requestId": 7})
	a.Send(map[string]any{"jsonrpc": "2.0", "id": 99, "result": map[string]any{}})
	methods := []string{"session/new", "session/load", "session/resume", "session/list", "session/close", "session/set_mode", "session/prompt", "authenticate",
		"create_goal", "get_goal", "update_goal", "_holdfast/create_goal", "_holdfast/get_goal", "_holdfast/update_goal", "no/such", "_x"}
	for _, method := range methods {
		_, e := a.Call(method, map[string]any{"sessionId": "x", "cwd": w.work, "mcpServers": []any{}})
		refused(t, method, e, -32600)
	}
	if n := len(a.Log()); n != len(methods) {
		t.Errorf("%d messages for %d requests: %s", n, len(methods), sent(a))
	}
	a.Initialize()
	a.NewSession(w.work)
}

// Ids come back as they were sent.
func TestEnvelope_EchoesIDs(t *testing.T) {
	a := newWorld(t, nil).start()
	for _, id := range []string{`0`, `-7`, `"1"`, `"a b\u00e9"`, `""`, `9007199254740993`, `null`} {
		a.Send(map[string]any{"jsonrpc": "2.0", "id": json.RawMessage(id), "method": "session/list", "params": map[string]any{}})
		if _, ok := a.Find(func(m harness.Message) bool { return string(m.ID) == id && m.Result != nil }); !ok && id != "null" {
			t.Errorf("the id %s did not come back: %s", id, sent(a))
		}
	}
	a.Must("session/list", map[string]any{}, nil)
	// The harness cannot tell a null id from a missing one; the bytes can.
	message(t, a, `"id":null`, `"sessions"`)
}
