package v1

import (
	"encoding/json"
	"errors"
	"os"
	"reflect"
	"strings"
	"testing"
)

func TestDecode_NamesTheMember(t *testing.T) {
	cases := []struct {
		name, raw string
		into      any
		want      string
	}{
		{"missing", `{"mcpServers":[]}`, &NewSessionRequest{}, "params.cwd: is missing"},
		{"no parameters at all", ``, &NewSessionRequest{}, "params.cwd: is missing"},
		{"null parameters", `null`, &NewSessionRequest{}, "params.cwd: is missing"},
		{"null", `{"cwd":null}`, &NewSessionRequest{}, "params.cwd: is missing"},
		{"other case", `{"CWD":"/"}`, &NewSessionRequest{}, "params.cwd: is missing"},
		{"number for a text", `{"cwd":5}`, &NewSessionRequest{}, "params.cwd: want a string, got a number"},
		{"list for an object", `[1]`, &NewSessionRequest{}, "params: want an object, got a list"},
		{"text for an object", `"x"`, &NewSessionRequest{}, "params: want an object, got a string"},
		{"text for a list", `{"cwd":"/","additionalDirectories":"x"}`, &NewSessionRequest{}, "params.additionalDirectories: want a list, got a string"},
		{"item", `{"cwd":"/","additionalDirectories":["a",{}]}`, &NewSessionRequest{}, "params.additionalDirectories[1]: want a string, got an object"},
		{"null item", `{"cwd":"/","additionalDirectories":[null]}`, &NewSessionRequest{}, "params.additionalDirectories[0]: want a string, got null"},
		{"stdio server", `{"cwd":"/","mcpServers":[{"name":"a"}]}`, &NewSessionRequest{}, "params.mcpServers[0].command: is missing"},
		{"stdio server's secret", `{"cwd":"/","mcpServers":[{"name":"a","command":"b","env":[{"name":"KEY","value":12345}]}]}`, &NewSessionRequest{},
			"params.mcpServers[0].env[0].value: want a string, got a number"},
		{"http server", `{"cwd":"/","mcpServers":[{"type":"http","name":"a"}]}`, &NewSessionRequest{}, "params.mcpServers[0].url: is missing"},
		{"tag", `{"sessionId":"s","prompt":[{"type":5}]}`, &PromptRequest{}, "params.prompt[0].type: want a string, got a number"},
		{"missing tag", `{"sessionId":"s","prompt":[{"text":"x"}]}`, &PromptRequest{}, "params.prompt[0].type: is missing"},
		{"member of a variant", `{"sessionId":"s","prompt":[{"type":"text"}]}`, &PromptRequest{}, "params.prompt[0].text: is missing"},
		{"shape without a tag", `{"sessionId":"s","prompt":[{"type":"resource","resource":{"uri":"u"}}]}`, &PromptRequest{}, "params.prompt[0].resource: fits none of the known shapes"},
		{"version as text", `{"protocolVersion":"1"}`, &InitializeRequest{}, "params.protocolVersion: want an integer from 0 to 65535, got a string"},
		{"negative version", `{"protocolVersion":-1}`, &InitializeRequest{}, "params.protocolVersion: want an integer from 0 to 65535, got a number"},
		{"large version", `{"protocolVersion":65536}`, &InitializeRequest{}, "params.protocolVersion: want an integer from 0 to 65535, got a number"},
		{"fractional version", `{"protocolVersion":1.5}`, &InitializeRequest{}, "params.protocolVersion: want an integer from 0 to 65535, got a number"},
		{"id", `{"requestId":{}}`, &CancelRequestNotification{}, "params.requestId: want a string, an integer or null, got an object"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			err := Decode(json.RawMessage(c.raw), c.into)
			var m *MemberError
			if !errors.As(err, &m) || err.Error() != c.want {
				t.Errorf("got %v, want %s", err, c.want)
			}
		})
	}
}

// read decodes or fails.
func read[T any](t *testing.T, raw string) T {
	t.Helper()
	var v T
	if err := Decode(json.RawMessage(raw), &v); err != nil {
		t.Fatalf("%v\n%s", err, raw)
	}
	return v
}

func TestDecode_Forgives(t *testing.T) {
	cases := []struct {
		name, raw string
		got       func(*testing.T, string) any
		want      any
	}{
		{"empty array for parameters", `[]`, func(t *testing.T, s string) any { return read[ListSessionsRequest](t, s) }, ListSessionsRequest{}},
		{"spaces in it", " [ \t] ", func(t *testing.T, s string) any { return read[ListSessionsRequest](t, s) }, ListSessionsRequest{}},
		{"empty array for capabilities, a marker and _meta", `{"protocolVersion":1,"clientCapabilities":{"fs":[],"elicitation":{"form":[]},"_meta":[]},"_meta":[]}`,
			func(t *testing.T, s string) any { return read[InitializeRequest](t, s) },
			InitializeRequest{ProtocolVersion: 1, Meta: Meta{}, ClientCapabilities: ClientCapabilities{Meta: Meta{}, Elicitation: &ElicitationCapabilities{Form: &ElicitationFormCapabilities{}}}}},
		{"empty array for all capabilities", `{"protocolVersion":1,"clientCapabilities":[]}`,
			func(t *testing.T, s string) any { return read[InitializeRequest](t, s) }, InitializeRequest{ProtocolVersion: 1}},
		{"capabilities that are none", `{"protocolVersion":1,"clientCapabilities":{"fs":5,"terminal":"yes","elicitation":null},"clientInfo":{"name":5},"_meta":7}`,
			func(t *testing.T, s string) any { return read[InitializeRequest](t, s) }, InitializeRequest{ProtocolVersion: 1}},
		{"a good capability beside a bad one", `{"protocolVersion":65535,"clientCapabilities":{"fs":5,"terminal":true}}`,
			func(t *testing.T, s string) any { return read[InitializeRequest](t, s) },
			InitializeRequest{ProtocolVersion: 65535, ClientCapabilities: ClientCapabilities{Terminal: true}}},
		{"whole number with a point", `{"protocolVersion":1.0}`, func(t *testing.T, s string) any { return read[InitializeRequest](t, s) }, InitializeRequest{ProtocolVersion: 1}},
		{"no servers", `{"cwd":"/"}`, func(t *testing.T, s string) any { return read[NewSessionRequest](t, s) }, NewSessionRequest{Cwd: "/"}},
		{"null servers and directories", `{"cwd":"/","mcpServers":null,"additionalDirectories":null}`,
			func(t *testing.T, s string) any { return read[NewSessionRequest](t, s) }, NewSessionRequest{Cwd: "/"}},
		{"empty object for servers", `{"cwd":"/","mcpServers":{}}`, func(t *testing.T, s string) any { return read[NewSessionRequest](t, s) },
			NewSessionRequest{Cwd: "/", McpServers: List[McpServer]{}}},
		{"server of each kind, and one from tomorrow", `{"cwd":"/","mcpServers":[{"name":"a","command":"b"},{"type":"stdio","name":"a","command":"b","args":null,"env":[]},
			{"type":"http","name":"a","url":"u","headers":{}},{"type":"carrier_pigeon","name":"a"}]}`,
			func(t *testing.T, s string) any { return read[NewSessionRequest](t, s).McpServers },
			List[McpServer]{{Stdio: &McpServerStdio{Name: "a", Command: "b"}}, {Stdio: &McpServerStdio{Name: "a", Command: "b", Env: List[EnvVariable]{}}},
				{Http: &McpServerHttp{Name: "a", URL: "u", Headers: List[HttpHeader]{}}}, {Unknown: json.RawMessage(`{"type":"carrier_pigeon","name":"a"}`)}}},
		{"members nobody knows", `{"sessionId":"s","reason":"r"}`, func(t *testing.T, s string) any { return read[CancelNotification](t, s) }, CancelNotification{SessionID: "s"}},
		{"bad annotation, and one bad item of its list", `{"sessionId":"s","prompt":[{"type":"text","text":"x","annotations":{"audience":["user",5,"nobody"],"priority":"high"}}]}`,
			func(t *testing.T, s string) any { return read[PromptRequest](t, s).Prompt[0].Text.Annotations }, &Annotations{Audience: []Role{RoleUser}}},
		{"block from tomorrow", `{"sessionId":"s","prompt":[{"type":"video","x":[1, 2]}]}`,
			func(t *testing.T, s string) any { return read[PromptRequest](t, s).Prompt }, List[ContentBlock]{{Unknown: json.RawMessage(`{"type":"video","x":[1, 2]}`)}}},
		{"resource by its members", `{"sessionId":"s","prompt":[{"type":"resource","resource":{"uri":"u","blob":"AA==","text":null}}]}`,
			func(t *testing.T, s string) any {
				return read[PromptRequest](t, s).Prompt[0].Resource.Resource.BlobResourceContents
			}, &BlobResourceContents{Uri: "u", Blob: "AA=="}},
		{"option value without a type", `{"sessionId":"s","configId":"c","value":"v"}`,
			func(t *testing.T, s string) any { return read[SetSessionConfigOptionRequest](t, s) },
			SetSessionConfigOptionRequest{SessionID: "s", ConfigID: "c", ValueID: &SetSessionConfigOptionRequestValueID{Value: "v"}}},
		{"option value that is a boolean", `{"sessionId":"s","configId":"c","type":"boolean","value":false}`,
			func(t *testing.T, s string) any { return read[SetSessionConfigOptionRequest](t, s) },
			SetSessionConfigOptionRequest{SessionID: "s", ConfigID: "c", Boolean: &SetSessionConfigOptionRequestBoolean{}}},
		{"permission", `{"outcome":{"outcome":"selected","optionId":"o"}}`, func(t *testing.T, s string) any { return read[RequestPermissionResponse](t, s) },
			RequestPermissionResponse{Outcome: RequestPermissionOutcome{Selected: &SelectedPermissionOutcome{OptionID: "o"}}}},
		{"permission from tomorrow", `{"outcome":{"outcome":"postponed"}}`, func(t *testing.T, s string) any { return read[RequestPermissionResponse](t, s).Outcome },
			RequestPermissionOutcome{Unknown: json.RawMessage(`{"outcome":"postponed"}`)}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if got := c.got(t, c.raw); !reflect.DeepEqual(got, c.want) {
				a, _ := json.Marshal(got)
				b, _ := json.Marshal(c.want)
				t.Errorf("got  %s\nwant %s", a, b)
			}
		})
	}
}

// TestDecode_ResourceNeedsItsOwnMember: a null text does not make a text resource of a blob.
func TestDecode_ResourceNeedsItsOwnMember(t *testing.T) {
	var r EmbeddedResourceResource
	if err := json.Unmarshal([]byte(`{"uri":"u","text":"x"}`), &r); err != nil || r.TextResourceContents == nil {
		t.Errorf("got %+v, %v", r, err)
	}
}

func TestDecode_ResultsSaySo(t *testing.T) {
	var r RequestPermissionResponse
	if err := json.Unmarshal([]byte(`{"outcome":{"outcome":"selected"}}`), &r); err == nil || !strings.Contains(err.Error(), "result.outcome.optionId: is missing") {
		t.Errorf("got %v", err)
	}
}

func TestUnion_HasExactlyOneVariant(t *testing.T) {
	for name, u := range map[string]any{
		"none":           SessionUpdate{},
		"two":            ContentBlock{Text: &TextContent{}, Image: &ImageContent{}},
		"one and rest":   ContentBlock{Text: &TextContent{}, Unknown: json.RawMessage(`{}`)},
		"options of two": SessionConfigSelectOptions{Ungrouped: []SessionConfigSelectOption{}, Grouped: []SessionConfigSelectGroup{}},
	} {
		if b, err := json.Marshal(u); err == nil {
			t.Errorf("%s: wrote %s", name, b)
		}
	}
}

// TestWrite_Examples are the messages an agent sends most, each with what stands on the wire.
func TestWrite_Examples(t *testing.T) {
	valid := newValidator(t)
	cases := []struct {
		def  string
		v    any
		want string
	}{
		{"SessionUpdate", SessionUpdate{AgentMessageChunk: &ContentChunk{Content: Text("a<b"), MessageID: "m1"}},
			`{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"a\u003cb"},"messageId":"m1"}`},
		{"SessionUpdate", SessionUpdate{ToolCall: &ToolCall{ToolCallID: "t", Title: "Read a.go", Kind: ToolKindRead, Status: ToolCallStatusPending, RawInput: json.RawMessage(`{"path":"a.go"}`)}},
			`{"sessionUpdate":"tool_call","kind":"read","rawInput":{"path":"a.go"},"status":"pending","title":"Read a.go","toolCallId":"t"}`},
		{"SessionUpdate", SessionUpdate{ToolCallUpdate: &ToolCallUpdate{ToolCallID: "t", Status: ToolCallStatusCompleted,
			Content: []ToolCallContent{{Diff: &Diff{Path: "/a", OldText: new(""), NewText: "x"}}}}},
			`{"sessionUpdate":"tool_call_update","content":[{"type":"diff","newText":"x","oldText":"","path":"/a"}],"status":"completed","toolCallId":"t"}`},
		{"SessionUpdate", SessionUpdate{ToolCallUpdate: &ToolCallUpdate{ToolCallID: "t", Content: []ToolCallContent{}}},
			`{"sessionUpdate":"tool_call_update","content":[],"toolCallId":"t"}`},
		{"SessionUpdate", SessionUpdate{Plan: &Plan{}}, `{"sessionUpdate":"plan","entries":[]}`},
		{"ListSessionsResponse", ListSessionsResponse{}, `{"sessions":[]}`},
		{"RequestPermissionRequest", RequestPermissionRequest{SessionID: "s", ToolCall: ToolCallUpdate{ToolCallID: "t"},
			Options: []PermissionOption{{OptionID: "y", Name: "Allow", Kind: PermissionOptionKindAllowOnce}}},
			`{"options":[{"kind":"allow_once","name":"Allow","optionId":"y"}],"sessionId":"s","toolCall":{"toolCallId":"t"}}`},
		{"RequestPermissionOutcome", RequestPermissionOutcome{Cancelled: &struct{}{}}, `{"outcome":"cancelled"}`},
		{"SessionConfigOption", SessionConfigOption{ID: "c", Name: "C", Select: &SessionConfigSelect{CurrentValue: "v",
			Options: SessionConfigSelectOptions{Ungrouped: []SessionConfigSelectOption{{Value: "v", Name: "V"}}}}},
			`{"type":"select","id":"c","name":"C","currentValue":"v","options":[{"name":"V","value":"v"}]}`},
		{"PromptResponse", PromptResponse{StopReason: StopReasonEndTurn}, `{"stopReason":"end_turn"}`},
		{"AuthMethod", AuthMethod{Agent: &AuthMethodAgent{ID: "a", Name: "A"}}, `{"id":"a","name":"A"}`},
	}
	for _, c := range cases {
		raw, err := json.Marshal(c.v)
		if err != nil {
			t.Errorf("%s: %v", c.def, err)
			continue
		}
		if string(raw) != c.want {
			t.Errorf("%s is written as\n%s, want\n%s", c.def, raw, c.want)
		}
		if err := valid.check(c.def, raw); err != nil {
			t.Errorf("%s: %v", raw, err)
		}
	}
}

func FuzzDecode(f *testing.F) {
	for name, pair := range messages {
		if raw, err := json.Marshal(pair[0]); err == nil {
			f.Add(name, raw)
		}
	}
	f.Add(MethodSessionPrompt, []byte(`{"sessionId":"s","prompt":[{"type":"resource","resource":{"uri":"u","text":"t"}}]}`))
	f.Fuzz(func(t *testing.T, name string, raw []byte) {
		pair, ok := messages[name]
		if !ok || !json.Valid(raw) {
			return
		}
		v := reflect.New(reflect.TypeOf(pair[0]).Elem()).Interface()
		err := Decode(raw, v)
		var m *MemberError
		if err != nil && (!errors.As(err, &m) || !strings.HasPrefix(m.Member, "params")) {
			t.Errorf("an error without a member: %v", err)
		}
		if err == nil {
			if _, err := json.Marshal(v); err != nil {
				t.Errorf("what was read cannot be written: %v", err)
			}
		}
	})
}

// TestGenerated_FileSaysSo guards the marks that tools and readers look for.
func TestGenerated_FileSaysSo(t *testing.T) {
	b, err := os.ReadFile("types_gen.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"// Code generated by schemagen", "DO NOT EDIT.", "Apache-2.0"} {
		if !strings.Contains(string(b), want) {
			t.Errorf("types_gen.go does not say %q", want)
		}
	}
}
