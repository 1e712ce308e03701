package acp_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
)

// What cannot be used is refused by name, and says what to do.
func TestParams_NameTheMember(t *testing.T) {
	w := newWorld(t, nil)
	a := w.start()
	session := a.NewSession(w.work)
	missing := w.path("missing")
	if err := os.WriteFile(w.path("file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ method, params, member string }{
		"cwd is a number":          {"session/new", `{"cwd":1,"mcpServers":[]}`, "cwd"},
		"cwd is missing":           {"session/new", `{"mcpServers":[]}`, "cwd"},
		"cwd is relative":          {"session/new", `{"cwd":"src","mcpServers":[]}`, "cwd"},
		"cwd is empty":             {"session/new", `{"cwd":"","mcpServers":[]}`, "cwd"},
		"cwd does not exist":       {"session/new", `{"cwd":` + encode(missing) + `,"mcpServers":[]}`, "cwd"},
		"cwd is a file":            {"session/new", `{"cwd":` + encode(w.path("file")) + `,"mcpServers":[]}`, "cwd"},
		"a root is relative":       {"session/new", `{"cwd":` + encode(w.work) + `,"mcpServers":[],"additionalDirectories":["x"]}`, "additionalDirectories[0]"},
		"a root does not exist":    {"session/new", `{"cwd":` + encode(w.work) + `,"mcpServers":[],"additionalDirectories":[` + encode(missing) + `]}`, "additionalDirectories[0]"},
		"params: []":               {"session/new", `[]`, "cwd"},
		"params are a list":        {"session/new", `[1]`, "params"},
		"params are text":          {"session/new", `"cwd"`, "params"},
		"load elsewhere":           {"session/load", `{"sessionId":` + encode(session) + `,"cwd":"/","mcpServers":[]}`, "cwd"},
		"load names no session":    {"session/load", `{"cwd":` + encode(w.work) + `,"mcpServers":[]}`, "sessionId"},
		"session is a number":      {"session/prompt", `{"sessionId":4,"prompt":[{"type":"text","text":"x"}]}`, "sessionId"},
		"session is missing":       {"session/prompt", `{"prompt":[{"type":"text","text":"x"}]}`, "sessionId"},
		"prompt is text":           {"session/prompt", `{"sessionId":` + encode(session) + `,"prompt":"hi"}`, "prompt"},
		"prompt is missing":        {"session/prompt", `{"sessionId":` + encode(session) + `}`, "prompt"},
		"prompt is empty":          {"session/prompt", `{"sessionId":` + encode(session) + `,"prompt":[]}`, "prompt"},
		"prompt is blank":          {"session/prompt", `{"sessionId":` + encode(session) + `,"prompt":[{"type":"text","text":" \n"}]}`, "prompt"},
		"a block's text is a list": {"session/prompt", `{"sessionId":` + encode(session) + `,"prompt":[{"type":"text","text":[]}]}`, "prompt[0]"},
		"an image":                 {"session/prompt", `{"sessionId":` + encode(session) + `,"prompt":[{"type":"image","data":"","mimeType":"image/png"}]}`, "prompt[0]"},
		"no image":                 {"session/prompt", `{"sessionId":` + encode(session) + `,"prompt":[{"type":"image","data":"aGVsbG8=","mimeType":"image/png"}]}`, "prompt[0]"},
		"audio":                    {"session/prompt", `{"sessionId":` + encode(session) + `,"prompt":[{"type":"audio","data":"aGVsbG8=","mimeType":"audio/wav"}]}`, "prompt[0]"},
		"an unknown block":         {"session/prompt", `{"sessionId":` + encode(session) + `,"prompt":[{"type":"hologram"}]}`, "prompt[0]"},
		"mode is a number":         {"session/set_mode", `{"sessionId":` + encode(session) + `,"modeId":1}`, "modeId"},
		"auth method is unknown":   {"authenticate", `{"methodId":"palm-reading"}`, "methodId"},
		"objective is a number":    {"create_goal", `{"sessionId":` + encode(session) + `,"objective":5}`, "objective"},
		"requirements are text":    {"create_goal", `{"sessionId":` + encode(session) + `,"objective":"x","requirements":"y"}`, "requirements"},
		"get_goal without a name":  {"get_goal", `[]`, "sessionId"},
	} {
		t.Run(name, func(t *testing.T) {
			_, e := a.Call(c.method, json.RawMessage(c.params))
			refused(t, c.method+" "+c.params, e, -32602, c.member)
		})
	}
	if n := len(w.model.Requests()); n != 0 {
		t.Errorf("%d model requests came of it", n)
	}
	if got := stop(t, a, a.Prompt(session, "hi")); got != "end_turn" {
		t.Errorf("the session stops with %s afterwards", got)
	}
}

// Some clients encode an empty object as a list, or leave out what is empty.
func TestParams_Lenient(t *testing.T) {
	w := newWorld(t, nil)
	a := w.raw(nil)
	a.Must("initialize", json.RawMessage(`{"protocolVersion":1,"clientCapabilities":[],"clientInfo":null,"_meta":[],"more":1}`), nil)
	for name, params := range map[string]string{
		"lists for objects": `{"cwd":` + encode(w.work) + `,"mcpServers":{},"_meta":[]}`,
		"null servers":      `{"cwd":` + encode(w.work) + `,"mcpServers":null}`,
		"no servers":        `{"cwd":` + encode(w.work) + `}`,
		"null roots":        `{"cwd":` + encode(w.work) + `,"mcpServers":[],"additionalDirectories":null}`,
		"more members":      `{"cwd":` + encode(w.work) + `,"mcpServers":[],"systemPrompt":"x"}`,
	} {
		if _, e := a.Call("session/new", json.RawMessage(params)); e != nil {
			t.Errorf("%s: %v", name, e)
		}
	}
	for _, params := range []string{`[]`, `{}`, `null`} {
		if _, e := a.Call("session/list", json.RawMessage(params)); e != nil {
			t.Errorf("session/list %s: %v", params, e)
		}
	}
	a.Send(json.RawMessage(`{"jsonrpc":"2.0","id":"bare","method":"session/list"}`))
	message(t, a, `"bare"`, `"sessions"`)
}

// Methods nobody knows are answered, notifications nobody knows are not.
func TestMethods_Unknown(t *testing.T) {
	w := newWorld(t, nil)
	a := w.start()
	for _, method := range []string{"session/fly", "initialized", "fs/read_text_file", "_x", "_zed.dev/thing", "$/ask", "", "session/cancel"} {
		_, e := a.Call(method, map[string]any{})
		refused(t, "method "+method, e, -32601)
	}
	before := len(a.Log())
	for _, method := range []string{"session/fly", "_x", "$/progress", "session/new", "session/prompt", ""} {
		a.Notify(method, map[string]any{"sessionId": "x", "cwd": w.work})
	}
	a.Notify("session/cancel", map[string]any{"sessionId": "no such session"})
	a.Notify("session/cancel", []any{})
	a.Notify("$/cancel_request", map[string]any{"requestId": 12345})
	a.Send(map[string]any{"jsonrpc": "2.0", "id": 999, "result": nil})
	a.Send(map[string]any{"jsonrpc": "2.0", "id": 999, "error": map[string]any{"code": 1, "message": "x"}})
	var l listed
	a.Must("session/list", map[string]any{}, &l)
	if got := a.Log()[before:]; len(got) != 1 || len(l.Sessions) != 0 {
		t.Errorf("notifications were answered or obeyed: %s, %+v", got[0].Raw, l)
	}
}

// A session that does not exist is always the same error, which names it.
func TestSession_Unknown(t *testing.T) {
	w := newWorld(t, nil)
	a := w.start()
	const id = "01234567-none"
	for method, more := range map[string]map[string]any{
		"session/load":          {"cwd": w.work, "mcpServers": []any{}},
		"session/resume":        {"cwd": w.work, "mcpServers": []any{}},
		"session/close":         {},
		"session/set_mode":      {"modeId": "ask"},
		"session/prompt":        {"prompt": []any{map[string]any{"type": "text", "text": "x"}}},
		"create_goal":           {"objective": "x"},
		"get_goal":              {},
		"update_goal":           {"action": "pause"},
		"_holdfast/create_goal": {"objective": "x"},
		"_holdfast/get_goal":    {},
		"_holdfast/update_goal": {"action": "pause"},
	} {
		t.Run(strings.ReplaceAll(method, "/", " "), func(t *testing.T) {
			more["sessionId"] = id
			_, e := a.Call(method, more)
			data := refused(t, method, e, -32002, id)
			if data["sessionId"] != id || data["details"] != "Session not found: "+id {
				t.Errorf("data is %v", data)
			}
		})
	}
}
