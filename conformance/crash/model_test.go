package crash_test

import (
	"encoding/json"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"holdfast/conformance/fakemodel"
)

// written is the file that the write call makes.
const written = "out.txt"

// exitCode is how the command ends: a code that nobody would make up.
const exitCode = 7

// command leaves a line each time it runs, and ends when nothing holds it.
const command = "echo $PPID > ../supervisor; echo run >> ../counter; while [ -e ../hold ]; do sleep 0.02; done; exit 7"

// evidence is the command of the Goal's requirement. It leaves a line as well.
const evidence = "echo check >> ../checks; while [ -e ../hold-check ]; do sleep 0.02; done; test -s out.txt"

// answer is the scripted model. It looks at the real state before it acts, as a careful model would.
func (w *world) answer(r fakemodel.Request) fakemodel.Reply {
	switch {
	case len(r.Tools) == 0 && strings.Contains(r.LastUser(), "<conversation>"):
		w.hit("summary")
		return fakemodel.Text("SUMMARY of ", "the talk.")
	case offers(r, "submit_review"):
		w.hit("review")
		return w.review(r)
	case strings.Contains(system(r), "The user has set a goal"):
		w.hit("goal")
		return w.goal(r)
	}
	topic := topicOf(r)
	n := w.hit(topic)
	switch topic {
	case "story": // text that is stored on its way, then a command
		if !w.has("counter") {
			reply := shell(command)
			reply.Steps = []fakemodel.Step{{Text: "Once upon a time "}, {Text: "there was a command. ", Delay: 450 * time.Millisecond}}
			return reply
		}
		return fakemodel.Text("They lived happily ", "ever after.")
	case "tale": // text that stops in the middle until the test opens the gate
		if n == 1 {
			return fakemodel.Reply{Steps: []fakemodel.Step{{Text: "It was a dark "}, {Text: "and stormy night "}, fakemodel.Gate(w.gate("tale")), {Text: "never sent"}}}
		}
		return fakemodel.Text("and then it ", "was over.")
	case "hang":
		return fakemodel.Reply{Steps: []fakemodel.Step{{Text: "thinking "}, fakemodel.Gate(w.gate("hang")), {Text: "never sent"}}}
	case "server":
		return serve(r)
	case "nothing": // a tool that does not exist
		if len(r.Results()) == 0 {
			return fakemodel.Calls(fakemodel.Call{Name: "no_such_tool", Args: `{}`})
		}
		return fakemodel.Text("It is not there.")
	case "shell", "write": // one call, then a word
		if len(r.Results()) > 0 {
			return fakemodel.Text("That is all.")
		}
		if topic == "shell" {
			return shell(command)
		}
		return write()
	case "fault": // the connection breaks in the middle of the first answer
		if n == 1 {
			return fakemodel.Reply{Steps: []fakemodel.Step{{Text: "It bre"}}, End: fakemodel.EndAbort}
		}
		return fakemodel.Text("It works at last.")
	case "deny":
		if n == 1 {
			return fakemodel.Error(401, "Incorrect API key provided.", "invalid_api_key")
		}
		return fakemodel.Text("It is allowed now.")
	}
	return fakemodel.Text("So it goes.")
}

// goal works on the objective: a command, a file, and the offer of a result.
func (w *world) goal(r fakemodel.Request) fakemodel.Reply {
	called := map[string]bool{}
	for _, m := range r.Messages {
		for _, c := range m.ToolCalls {
			called[c.Name] = true
		}
	}
	switch {
	case !called["shell"]:
		return shell(command)
	case !w.has(filepath.Join("work", written)):
		return write()
	case !w.has("counter"): // the command never began
		return shell(command)
	case !strings.Contains(lastCall(r), "candidate"):
		return fakemodel.Calls(fakemodel.Call{Name: "update_goal", Args: `{"action":"candidate","text":"done"}`})
	}
	return fakemodel.Text("All done.")
}

// review reads the file and cites that.
func (w *world) review(r fakemodel.Request) fakemodel.Reply {
	for _, m := range r.Messages {
		for _, c := range m.ToolCalls {
			if c.Name == "read" {
				return w.held("verdict", fakemodel.Calls(fakemodel.Call{Name: "submit_review", Args: encode(map[string]any{"requirements": []any{
					map[string]any{"id": "objective", "result": "met", "evidence": []string{c.ID}, "reason": "read it"}}})}))
			}
		}
	}
	return w.held("reading", fakemodel.Calls(fakemodel.Call{Name: "read", Args: `{"path":"out.txt"}`}))
}

// held keeps an answer back while a test wants that.
func (w *world) held(name string, r fakemodel.Reply) fakemodel.Reply {
	if w.has("hold-" + name) {
		w.hit(name)
		r.Steps = append([]fakemodel.Step{fakemodel.Gate(w.gate(name))}, r.Steps...)
	}
	return r
}

func shell(cmd string) fakemodel.Reply {
	return fakemodel.Calls(fakemodel.Call{Name: "shell", Args: encode(map[string]string{"command": cmd})})
}

func write() fakemodel.Reply {
	return fakemodel.Calls(fakemodel.Call{Name: "write", Args: encode(map[string]string{"path": written, "content": "result\n"}), Pieces: 3})
}

func offers(r fakemodel.Request, tool string) bool {
	for _, t := range r.Tools {
		if t.Name == tool {
			return true
		}
	}
	return false
}

func system(r fakemodel.Request) string {
	var b strings.Builder
	for _, m := range r.Messages {
		if m.Role == "system" || m.Role == "developer" {
			b.WriteString(m.Content + "\n")
		}
	}
	return b.String()
}

var please = regexp.MustCompile(`please (\w+)`)

// topicOf is the word behind the last "please" of the user.
func topicOf(r fakemodel.Request) string {
	for i := len(r.Messages) - 1; i >= 0; i-- {
		if m := r.Messages[i]; m.Role == "user" {
			if found := please.FindStringSubmatch(m.Content); found != nil {
				return found[1]
			}
		}
	}
	return ""
}

// lastCall is the last call since anybody but a tool spoke.
func lastCall(r fakemodel.Request) string {
	for i := len(r.Messages) - 1; i >= 0; i-- {
		if n := len(r.Messages[i].ToolCalls); n > 0 {
			return r.Messages[i].ToolCalls[n-1].Args
		}
		if r.Messages[i].Role == "user" {
			return ""
		}
	}
	return ""
}

func encode(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b)
}
