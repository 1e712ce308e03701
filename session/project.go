package session

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
)

// ErrAmbiguousCall: one response holds two calls with the same id, so a result cannot be assigned.
var ErrAmbiguousCall = errors.New("one response holds two calls with the same id")

// Texts that stand in for what is not there. They are constants, and of an unknown outcome the stored reason: the same history always
// projects to the same bytes.
const (
	textInterrupted = "\n[The answer was interrupted here; what followed is lost.]"
	textNotStarted  = "[Not started. The call never began and changed nothing.]"
	textUnknown     = " It may have happened wholly, in part or not at all. Do not repeat it; look at the real state first."
	textRunning     = "[Still running outside. Its result will replace this line.]"
	textWaiting     = "[Not started. The call waits for the user's permission.]"
)

// Project turns stored history into the messages of a request to a model. It is pure; stored items are never changed. What holds of
// the result, whatever the history:
//
//   - each call has exactly one result, and it follows the calls of its response directly;
//   - a real result wins over a placeholder, and placeholders come from what is stored, nothing else;
//   - user input keeps its order and content;
//   - no id is used by two calls;
//   - an answer's native form goes only to the model that gave it, whole, only when its calls keep their ids, and not once it was refused;
//   - it begins with the newest compaction, if there is one, and nothing that it covers is sent besides.
func Project(items []Item, to ModelIdentity) ([]Message, error) {
	head, items := opening(items)
	p := projection{to: to, items: items, out: make([]Message, 0, len(items)+1), used: make(map[string]int, len(items)), calls: make(map[string][]int, len(items))}
	if head != nil {
		p.out = append(p.out, *head)
	}
	for i := range items {
		switch it := &items[i]; {
		case it.Kind == ItemTool && it.Body.Tool != nil:
			p.calls[it.Body.Response] = append(p.calls[it.Body.Response], i)
		case it.Body.Refused.by(to) && p.refused > 0:
			p.refused = math.MaxInt64 // for the second time: it takes none back, and each answer would be asked for twice
		case it.Body.Refused.by(to):
			p.refused = it.Seq
		}
	}
	for i := range items {
		if err := p.add(&items[i]); err != nil {
			return nil, err
		}
	}
	if len(p.out) == 0 {
		return nil, nil
	}
	return p.out, nil
}

type projection struct {
	to    ModelIdentity
	items []Item
	out   []Message
	calls map[string][]int // by response, places of items; emptied once they are placed
	used  map[string]int   // how often an id was seen

	refused int64 // answers before this are not sent in their native form: the model refused them
}

func (p *projection) add(it *Item) error {
	switch it.Kind {
	case ItemUser, ItemNote:
		if it.Body.Aside {
			return nil
		}
		text, images := forMessage(it.Body.Text, it.Body.Images)
		p.out = append(p.out, Message{Role: RoleUser, Text: text, Images: images})
	case ItemAgent:
		text := it.Body.Text
		if it.State != ItemComplete && text != "" {
			text += textInterrupted
		}
		return p.answer(text, it.Body.Response, p.native(it))
	case ItemTool:
		// Calls go out with their answer. An answer that was lost leaves calls of its own.
		return p.answer("", it.Body.Response, nil)
	}
	return nil
}

// native is the form in which the model gave an answer, if that model is asked again and the answer is whole.
func (p *projection) native(it *Item) *Native {
	n := it.Body.Native
	if n == nil || it.State != ItemComplete || n.Provider != p.to.Provider || n.Model != p.to.Name || it.Seq < p.refused {
		return nil
	}
	return n
}

// answer places one assistant message with the calls of its response, and their results right behind it.
func (p *projection) answer(text, response string, native *Native) error {
	tools := p.calls[response]
	delete(p.calls, response)
	if text == "" && len(tools) == 0 {
		return nil
	}
	msg := Message{Role: RoleAssistant, Text: text, Native: native}
	if len(tools) > 0 {
		msg.Calls = make([]Call, 0, len(tools))
	}
	at := len(p.out)
	p.out = append(p.out, msg)
	for k, i := range tools {
		it := &p.items[i]
		t := it.Body.Tool
		if slices.ContainsFunc(tools[:k], func(j int) bool { return p.items[j].Body.Tool.CallID == t.CallID }) {
			return fmt.Errorf("call %q of response %s: %w", t.CallID, response, ErrAmbiguousCall)
		}
		id := p.unique(t.CallID)
		if id != t.CallID {
			msg.Native = nil // it names the call as another one is named by now
		}
		msg.Calls = append(msg.Calls, Call{ID: id, Name: t.Name, Args: validArgs(t.Args)})
		text, images := forMessage(resultText(t), it.Body.images())
		p.out = append(p.out, Message{Role: RoleTool, CallID: id, Text: text, IsError: t.Output != nil && t.Output.IsError, Images: images})
	}
	p.out[at] = msg
	return nil
}

// unique keeps an id that is new and numbers one that an earlier response already used.
func (p *projection) unique(id string) string {
	for name := id; ; name = fmt.Sprintf("%s-%d", id, p.used[id]) {
		p.used[id]++
		if name != id {
			if p.used[name] > 0 {
				continue
			}
			p.used[name]++
			return name
		}
		if p.used[id] == 1 {
			return name
		}
	}
}

// validArgs wraps arguments that are not a JSON object, because providers refuse them in a history.
func validArgs(args string) string {
	if strings.HasPrefix(strings.TrimLeft(args, " \t\r\n"), "{") && json.Valid([]byte(args)) {
		return args
	}
	b, err := json.Marshal(map[string]string{"invalid_arguments": args})
	if err != nil {
		panic(fmt.Sprintf("session: encode a string: %v", err))
	}
	return string(b)
}

func resultText(t *ToolCall) string {
	switch {
	case t.Output != nil && t.Output.Text == "":
		return "[No output.]"
	case t.Output != nil:
		return t.Output.Text
	case t.Fact == FactUnknown:
		return "[" + t.Unsure() + textUnknown + "]"
	case t.Fact == FactRunning || t.Status == ToolInProgress:
		return textRunning
	case t.Fact == FactNotStarted:
		return textNotStarted
	}
	return textWaiting
}
