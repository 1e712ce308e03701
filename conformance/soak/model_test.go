package soak_test

import (
	"encoding/json"
	"hash/fnv"
	"regexp"
	"strings"
	"time"

	"holdfast/conformance/fakemodel"
)

// Files of a session's work tree.
const (
	appended = "appended.txt" // the shell adds lines to it
	ledger   = "ledger.txt"   // edits add lines to it, above the last
	pursued  = "goal.txt"     // the shell adds the token of a goal to it
)

// A prompt says "please KIND TOKEN"; an objective holds its token.
var (
	please    = regexp.MustCompile(`please (\w+) (tok-\d+-x)`)
	objective = regexp.MustCompile(`tok-\d+-goal`)
	anyToken  = regexp.MustCompile(`tok-\d+-\w+`)
)

// answer is the model. What it says depends on the request alone. It makes the call that was asked for unless its history has that call
// already; it makes it again only when it is told that it was never started.
func (w *world) answer(r fakemodel.Request) fakemodel.Reply {
	if token := goalOf(r); token != "" {
		w.arrived(token)
		return slowly(token, pursue(r, token))
	}
	kind, token := topic(r)
	w.arrived(token)
	if kind == "wait" {
		return fakemodel.Reply{Steps: []fakemodel.Step{{Text: "Wait"}, fakemodel.Gate(w.gate)}}
	}
	if kind == "say" {
		return slowly(token, fakemodel.Text("I say ", "what ", token, " wants."))
	}
	made, result := callWith(r, token)
	if made && !strings.Contains(result, "never began") {
		return slowly(token, fakemodel.Text("That was ", token, "."))
	}
	return slowly(token, act(kind, token))
}

func act(kind, token string) fakemodel.Reply {
	switch kind {
	case "append":
		return call("shell", map[string]any{"command": "sleep 0.0" + token[4:5] + "; echo " + token + " >> " + appended})
	case "edit":
		return call("edit", map[string]any{"path": ledger, "edits": []any{map[string]any{"old": "END\n", "new": token + "\nEND\n"}}})
	case "write":
		return call("write", map[string]any{"path": token + ".txt", "content": token + "\n"})
	}
	return fakemodel.Text("I do not know that.")
}

// pursue adds the token to a file, offers that, and judges it.
func pursue(r fakemodel.Request, token string) fakemodel.Reply {
	var read string
	offered := false // since the call; the session may have had a goal before
	for _, m := range r.Messages {
		for _, c := range m.ToolCalls {
			if c.Name == "read" {
				read = c.ID
			}
			offered = c.Name == "update_goal" || offered && !strings.Contains(c.Args, token)
		}
	}
	if offers(r, "submit_review") {
		if read == "" {
			return call("read", map[string]any{"path": pursued})
		}
		return call("submit_review", map[string]any{"requirements": []any{
			map[string]any{"id": "objective", "result": "met", "evidence": []string{read}, "reason": "it is there"}}})
	}
	made, result := callWith(r, token)
	switch {
	case !made, strings.Contains(result, "never began"):
		return call("shell", map[string]any{"command": "echo " + token + " >> " + pursued})
	case !offered:
		return call("update_goal", map[string]any{"action": "candidate", "text": "done"})
	}
	return fakemodel.Text("All done.")
}

func (w *world) arrived(token string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.arrivals = append(w.arrivals, arrival{token, now()})
}

// slowly spreads an answer over a time that its token decides, so that deaths and stops meet it at every place.
func slowly(token string, r fakemodel.Reply) fakemodel.Reply {
	h := fnv.New32a()
	_, _ = h.Write([]byte(token))
	wait := time.Duration(h.Sum32()%5) * 25 * time.Millisecond
	if len(r.Steps) == 0 {
		r.Steps = []fakemodel.Step{{Text: "So: "}}
	}
	for i := range r.Steps {
		r.Steps[i].Delay = wait
	}
	return r
}

// topic is the last thing that the user asked for.
func topic(r fakemodel.Request) (kind, token string) {
	for i := len(r.Messages) - 1; i >= 0; i-- {
		if m := r.Messages[i]; m.Role == "user" {
			if found := please.FindStringSubmatch(m.Content); found != nil {
				return found[1], found[2]
			}
		}
	}
	return "", ""
}

// goalOf is the token of the goal that a request works on or judges; "" for a prompt.
func goalOf(r fakemodel.Request) string {
	for _, m := range r.Messages {
		system := m.Role == "system" || m.Role == "developer"
		if system && strings.Contains(m.Content, "The user has set a goal") || offers(r, "submit_review") {
			if found := objective.FindString(m.Content); found != "" {
				return found
			}
		}
	}
	return ""
}

// callWith tells whether the history has a call with the token, and the result of the last one.
func callWith(r fakemodel.Request, token string) (made bool, result string) {
	id := ""
	for _, m := range r.Messages {
		for _, c := range m.ToolCalls {
			if strings.Contains(c.Args, token) {
				made, id, result = true, c.ID, ""
			}
		}
		if m.Role == "tool" && m.ToolCallID == id {
			result = m.Content
		}
	}
	return made, result
}

func offers(r fakemodel.Request, tool string) bool {
	for _, t := range r.Tools {
		if t.Name == tool {
			return true
		}
	}
	return false
}

func call(tool string, args map[string]any) fakemodel.Reply {
	b, err := json.Marshal(args)
	if err != nil {
		panic(err)
	}
	return fakemodel.Calls(fakemodel.Call{Name: tool, Args: string(b)})
}
