package editors_test

import (
	"encoding/json"
	"strings"
	"time"

	"holdfast/conformance/fakemodel"
)

// objective of the Goal.
const objective = "Produce step.txt."

// ticks is how long the Goal's model streams without a pause once the agent was launched again.
const ticks = 300

// answer plays the model. Ordinary prompts name what they want; the Goal is worked on as far as the story has come.
func (s *story) answer(r fakemodel.Request) fakemodel.Reply {
	last := r.Messages[len(r.Messages)-1]
	called := map[string]string{}
	for _, m := range r.Messages {
		for _, c := range m.ToolCalls {
			called[c.Name+strings.ReplaceAll(c.Args, " ", "")] = c.ID
		}
	}
	has := func(prefix string) string {
		for k, id := range called {
			if strings.HasPrefix(k, prefix) {
				return id
			}
		}
		return ""
	}
	for _, tool := range r.Tools {
		if tool.Name == "submit_review" {
			if has("read") == "" {
				return fakemodel.Calls(fakemodel.Call{Name: "read", Args: `{"path":"step.txt"}`})
			}
			return fakemodel.Calls(fakemodel.Call{Name: "submit_review", Args: encode(object{"requirements": array{
				object{"id": "objective", "result": "met", "evidence": array{has("read")}, "reason": "it was read"}}})})
		}
	}
	switch {
	case strings.Contains(r.LastUser(), "please run"):
		if last.Role != "tool" {
			return shell(`echo "home:${HOME:+yes}" >> tool.txt`)
		}
		return fakemodel.Text("It ", "ran.")
	case strings.Contains(r.LastUser(), "please ask"):
		return shell("echo never >> never.txt")
	case strings.Contains(r.LastUser(), "please talk"):
		return fakemodel.Reply{Steps: []fakemodel.Step{{Text: "thinking "}, fakemodel.Gate(s.never), {Text: "LATE"}}}
	case strings.Contains(r.LastUser(), "please tell"):
		return fakemodel.Text("Here ", "I am.")
	}
	s.goalSteps <- r.N
	switch {
	case !s.streams.Load():
		return fakemodel.Reply{Steps: []fakemodel.Step{{Text: "planning "}, fakemodel.Gate(s.never), {Text: "LATE"}}}
	case has("shell"+`{"command":"echostep`) == "":
		reply := shell("echo step >> step.txt")
		if s.p.patience > 0 {
			reply.Steps = append(reply.Steps, fakemodel.Step{Text: "tick ", Delay: 5 * time.Millisecond, Count: ticks})
		}
		reply.Steps = append(reply.Steps, fakemodel.Step{Text: "now "}, fakemodel.Gate(s.opened))
		return reply
	case has("update_goal") == "":
		return fakemodel.Calls(fakemodel.Call{Name: "update_goal", Args: `{"action":"candidate","text":"step.txt is there"}`})
	}
	return fakemodel.Text("offered")
}

func shell(line string) fakemodel.Reply {
	return fakemodel.Calls(fakemodel.Call{Name: "shell", Args: encode(object{"command": line})})
}

func encode(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b)
}
