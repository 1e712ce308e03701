// Package sdk_test uses the official TypeScript SDK as the client of the real binary, with a local server that speaks the model's wire.
package sdk_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"holdfast/conformance/fakemodel"
	"holdfast/conformance/harness"
)

func TestMain(m *testing.M) {
	code := m.Run()
	harness.Cleanup()
	os.Exit(code)
}

type update struct {
	Kind       string `json:"sessionUpdate"`
	ToolCallID string `json:"toolCallId"`
	Title      string `json:"title"`
	Status     string `json:"status"`
	MessageID  string `json:"messageId"`
	Content    json.RawMessage
}

type connection struct {
	SessionID   string
	Stop        []string
	Listed      []string
	Updates     []update
	Permissions []json.RawMessage
	Code        int
	Stderr      string
	Initialized struct{ ProtocolVersion int }
}

func TestSDK_PromptPermissionCancelAndLoadWithIdenticalHistory(t *testing.T) {
	for _, family := range fakemodel.Families {
		t.Run(family, func(t *testing.T) { story(t, family) })
	}
}

func story(t *testing.T, family string) {
	harness.Peers(t, "@agentclientprotocol/sdk")
	plain, _, err := harness.Binaries()
	if err != nil {
		t.Fatal(err)
	}
	hold := make(chan struct{})
	model := fakemodel.New(func(r fakemodel.Request) fakemodel.Reply {
		switch {
		case strings.Contains(r.LastUser(), "talk"):
			return fakemodel.Reply{Steps: []fakemodel.Step{{Text: "word "}, {Text: "after word "}, fakemodel.Gate(hold), {Text: "never"}}}
		case len(r.Results()) == 0:
			return fakemodel.Calls(fakemodel.Call{Name: "shell", Args: `{"command":"echo one >> counter; echo ran"}`, Pieces: 3})
		}
		return fakemodel.Text("It ", "ran ", "once.")
	}).Think()
	defer model.Close()
	defer close(hold)
	dir := t.TempDir()
	work := filepath.Join(dir, "work")
	if err := os.Mkdir(work, 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("node", "driver.mjs", plain, work)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOLDFAST_HOME=" + filepath.Join(dir, "home")}
	cmd.Env = append(cmd.Env, model.Env(family)...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("the driver failed: %v\n%s", err, stderr.String())
	}
	var r struct{ Live, Loaded connection }
	if err := json.Unmarshal(out, &r); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if got := strings.Join(r.Live.Stop, ","); got != "end_turn,cancelled" {
		t.Errorf("stop reasons %s", got)
	}
	if len(r.Live.Permissions) != 1 || !bytes.Contains(r.Live.Permissions[0], []byte("echo one")) {
		t.Errorf("permissions: %s", r.Live.Permissions)
	}
	if b, err := os.ReadFile(filepath.Join(work, "counter")); err != nil || string(b) != "one\n" {
		t.Errorf("the counter is %q, %v", b, err)
	}
	for name, c := range map[string]connection{"live": r.Live, "loaded": r.Loaded} {
		if c.Code != 0 || c.Stderr != "" || c.Initialized.ProtocolVersion != 1 {
			t.Errorf("%s: exit %d, stderr %q, version %d", name, c.Code, c.Stderr, c.Initialized.ProtocolVersion)
		}
	}
	if len(r.Loaded.Listed) != 1 || r.Loaded.Listed[0] != r.Live.SessionID {
		t.Errorf("listed %v", r.Loaded.Listed)
	}
	live, loaded := history(t, r.Live), history(t, r.Loaded)
	live = "user: run the command\n" + strings.Replace(live, "It ran once.\n", "It ran once.\nuser: talk for long\n", 1) // a client shows its own prompts itself
	if loaded != live {
		t.Errorf("the replay differs from what was seen live:\n%s\nlive:\n%s", loaded, live)
	}
	if err := fakemodel.ResultsPerCall(model.Requests()); err != nil {
		t.Error(err)
	}
	for _, r := range model.Requests() {
		if r.Family != family {
			t.Errorf("a request came by the wire of %s", r.Family)
		}
	}
}

// history is what a user sees in the end: each message joined, each tool call in its last state.
func history(t *testing.T, c connection) string {
	t.Helper()
	var order []string
	text := map[string]string{}
	for _, u := range c.Updates {
		key := ""
		switch u.Kind {
		case "user_message_chunk", "agent_message_chunk", "agent_thought_chunk":
			var block struct{ Text string }
			if err := json.Unmarshal(u.Content, &block); err != nil {
				t.Fatal(err)
			}
			key = u.MessageID
			if text[key] == "" && u.Kind == "user_message_chunk" {
				text[key] = "user: "
				order = append(order, key)
			}
			if _, seen := text[key]; !seen {
				order = append(order, key)
			}
			text[key] += block.Text
		case "tool_call", "tool_call_update":
			key = u.ToolCallID
			if _, seen := text[key]; !seen {
				order = append(order, key)
			}
			text[key] = "tool: " + u.Title + " " + u.Status + " " + string(u.Content)
		}
	}
	var b strings.Builder
	for _, key := range order {
		b.WriteString(text[key] + "\n")
	}
	return b.String()
}
