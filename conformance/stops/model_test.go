package stops_test

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"holdfast/conformance/fakemodel"
)

// obedient is a model that makes the calls which the newest order dictates, a line each, and then says that it is done. The order is a part
// of what the user says, in a prompt or in the objective of a goal.
func obedient(r fakemodel.Request) fakemodel.Reply {
	lines, made := order(r)
	if made >= len(lines) {
		return fakemodel.Text(fmt.Sprintf("done %d", len(lines)))
	}
	name, args, _ := strings.Cut(lines[made], " ")
	switch name {
	case "hang": // begins an answer and never ends it
		return fakemodel.Reply{Steps: []fakemodel.Step{{Text: "early "}}, End: fakemodel.EndStall}
	case "busy": // for now
		return fakemodel.Error(503, "overloaded", "").With("Retry-After", "3")
	}
	return fakemodel.Calls(fakemodel.Call{Name: name, Args: args})
}

// order is the newest order, and how many of its calls have been made.
func order(r fakemodel.Request) (lines []string, made int) {
	for i := len(r.Messages) - 1; i >= 0; i-- {
		m := r.Messages[i]
		if m.Role == "tool" {
			made++
		}
		if m.Role != "user" {
			continue
		}
		if _, rest, found := strings.Cut(m.Content, "<<"); found {
			calls, _, _ := strings.Cut(rest, ">>")
			if calls == "" {
				return nil, made
			}
			return strings.Split(calls, "|then|"), made
		}
	}
	return nil, made
}

// do is an order; without calls, one to do nothing.
func do(calls ...string) string { return "please <<" + strings.Join(calls, "|then|") + ">>" }

func foreground(command string) string { return "shell " + encode(map[string]any{"command": command}) }

func background(command string) string {
	return "shell " + encode(map[string]any{"command": command, "background": true})
}

func encode(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b)
}

func itoa(n int) string { return strconv.Itoa(n) }

// stays writes a line and runs until a file is there that no test makes.
func stays(name string) string {
	return "echo run >> " + name + "; while [ ! -e never ]; do sleep 0.05; done"
}
