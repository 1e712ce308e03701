package acp_test

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"holdfast/conformance/fakemodel"
)

func answering(option string) func(json.RawMessage) string {
	return func(json.RawMessage) string { return option }
}

// The client learns of the call, is asked, and sees it run only after it has said yes.
func TestPermission_OrderAroundAllow(t *testing.T) {
	w := newWorld(t, once("echo ran > out", "done"))
	a := w.asking(unanswered)
	session := a.NewSession(w.work)
	id := a.Prompt(session, "run")
	ask := message(t, a, "session/request_permission")
	p := decode[struct {
		SessionID string
		ToolCall  struct {
			ToolCallID, Title, Status string
			RawInput                  struct{ Command string }
		}
		Options []struct{ OptionID, Kind string }
	}](t, ask.Params)
	if p.SessionID != session || p.ToolCall.ToolCallID == "" || p.ToolCall.Title == "" || p.ToolCall.RawInput.Command != "echo ran > out" {
		t.Errorf("asked %s", ask.Params)
	}
	if got := fmt.Sprint(p.Options); got != "[{allow_once allow_once} {allow_always allow_always} {reject_once reject_once} {reject_always reject_always}]" {
		t.Errorf("the options are %s", got)
	}
	call := p.ToolCall.ToolCallID
	pending := position(a, `"sessionUpdate":"tool_call"`, call, `"pending"`)
	if asked := position(a, "session/request_permission"); pending < 0 || pending > asked {
		t.Errorf("the pending call is message %d, the question %d", pending, asked)
	}
	a.Must("session/list", map[string]any{}, nil)
	if position(a, call, `"in_progress"`) >= 0 || w.file("out") != "" || len(w.model.Requests()) != 1 {
		t.Errorf("something happened before the answer: %s", sent(a))
	}
	before := len(a.Log())
	a.Answer(ask.ID, map[string]any{"outcome": map[string]any{"outcome": "selected", "optionId": "allow_once"}})
	if got := stop(t, a, id); got != "end_turn" {
		t.Errorf("stopped with %s", got)
	}
	running, completed := position(a, call, `"in_progress"`), position(a, call, `"completed"`)
	if running < before || completed < running {
		t.Errorf("in progress at %d, completed at %d, answered at %d", running, completed, before)
	}
	if w.file("out") != "ran\n" {
		t.Errorf("it wrote %q", w.file("out"))
	}
}

// Only the offered option approves. Everything else means no: nothing runs, the model is told, and the turn goes on.
func TestPermission_OnlyAllowApproves(t *testing.T) {
	for _, option := range []string{"reject_once", "reject_always", "allow always", "Allow once", "it_happened"} {
		t.Run(option, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, once("echo ran > out", "as you like"))
			a := w.asking(answering(option))
			session := a.NewSession(w.work)
			if got := stop(t, a, a.Prompt(session, "run")); got != "end_turn" {
				t.Errorf("stopped with %s", got)
			}
			if w.file("out") != "" {
				t.Error("it ran")
			}
			reqs := w.requests(2)
			if results := reqs[1].Results(); len(results) != 1 || !strings.Contains(results[0].Content, "refused") {
				t.Errorf("the model is told %v", results)
			}
			message(t, a, `"tool_call_update"`, `"failed"`)
			if position(a, `"in_progress"`) >= 0 {
				t.Errorf("a refused call is shown as running: %s", sent(a))
			}
		})
	}
}

// A client that gives no answer decides nothing: the prompt ends, the question stands, and the next launch asks it again.
func TestPermission_NoAnswerDecidesNothing(t *testing.T) {
	for name, answer := range map[string]map[string]any{
		"cancelled":      {"result": map[string]any{"outcome": map[string]any{"outcome": "cancelled"}}},
		"an error":       {"error": map[string]any{"code": -32601, "message": "no such method"}},
		"nonsense":       {"result": map[string]any{"outcome": 7}},
		"an empty reply": {"result": map[string]any{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, once("echo ran >> out", "done"))
			a := w.asking(unanswered)
			session := a.NewSession(w.work)
			id := a.Prompt(session, "run")
			ask := message(t, a, "session/request_permission")
			answer["jsonrpc"], answer["id"] = "2.0", ask.ID
			a.Send(answer)
			if got := stop(t, a, id); got != "end_turn" {
				t.Errorf("stopped with %s", got)
			}
			if !strings.Contains(a.Text(session), "permission") {
				t.Errorf("it does not say why: %q", a.Text(session))
			}
			if err := a.CloseInput(); err != nil {
				t.Fatal(err)
			}
			if w.file("out") != "" {
				t.Fatal("it ran without a yes")
			}
			b := w.asking(answering("allow_once"))
			w.load(b, session)
			message(t, b, "session/request_permission")
			message(t, b, "agent_message_chunk", "done")
			if w.file("out") != "ran\n" {
				t.Errorf("it wrote %q", w.file("out"))
			}
		})
	}
}

// The modes: what each kind of call needs in each of them.
func TestPermission_Modes(t *testing.T) {
	const free, asks, never = "free", "asks", "never"
	calls := map[string]string{
		"read":  `{"path":"given.txt"}`,
		"write": `{"path":"out","content":"ran\n"}`,
		"shell": `{"command":"echo ran > out"}`,
	}
	for mode, want := range map[string]map[string]string{
		"ask":  {"read": free, "write": asks, "shell": asks},
		"edit": {"read": free, "write": free, "shell": asks},
		"plan": {"read": free, "write": never, "shell": never},
	} {
		for tool, ruling := range want {
			t.Run(mode+"/"+tool, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, func(r fakemodel.Request) fakemodel.Reply {
					if len(r.Results()) == 0 {
						return fakemodel.Calls(fakemodel.Call{Name: tool, Args: calls[tool]})
					}
					return fakemodel.Text("done")
				})
				if err := os.WriteFile(w.path("given.txt"), []byte("the content\n"), 0o600); err != nil {
					t.Fatal(err)
				}
				a := w.start()
				session := a.NewSession(w.work)
				a.Must("session/set_mode", map[string]any{"sessionId": session, "modeId": mode}, nil)
				if got := stop(t, a, a.Prompt(session, "go")); got != "end_turn" {
					t.Errorf("stopped with %s", got)
				}
				if asked := position(a, "session/request_permission") >= 0; asked != (ruling == asks) {
					t.Errorf("asked: %v", asked)
				}
				result := w.requests(2)[1].Results()[0].Content
				switch {
				case tool == "read" && !strings.Contains(result, "the content"):
					t.Errorf("the model reads %q", result)
				case tool != "read" && (w.file("out") == "ran\n") != (ruling != never):
					t.Errorf("it wrote %q; the model is told %q", w.file("out"), result)
				case ruling == never && !strings.Contains(result, "plan"):
					t.Errorf("the model is told %q", result)
				}
			})
		}
	}
}

// Each call is asked about by itself, and each answer counts for its own call.
func TestPermission_TwoCallsTwoQuestions(t *testing.T) { families(t, twoCallsTwoQuestions) }

func twoCallsTwoQuestions(t *testing.T, family string) {
	w := newWorldOf(t, family, func(r fakemodel.Request) fakemodel.Reply {
		if len(r.Results()) == 0 {
			return fakemodel.Calls(fakemodel.Call{Name: "shell", Args: `{"command":"echo ran > one"}`}, fakemodel.Call{Name: "shell", Args: `{"command":"echo ran > two"}`})
		}
		return fakemodel.Text("done")
	})
	a := w.asking(func(params json.RawMessage) string {
		if strings.Contains(string(params), " one") {
			return "reject_once"
		}
		return "allow_once"
	})
	if got := stop(t, a, a.Prompt(a.NewSession(w.work), "run")); got != "end_turn" {
		t.Errorf("stopped with %s", got)
	}
	if w.file("one") != "" || w.file("two") != "ran\n" {
		t.Errorf("wrote %q and %q", w.file("one"), w.file("two"))
	}
	asked := 0
	for _, m := range a.Log() {
		if m.Method == "session/request_permission" {
			asked++
		}
	}
	if asked != 2 {
		t.Errorf("asked %d times", asked)
	}
}
