package provider

import (
	"encoding/json"
	"strings"

	"holdfast/session"
	"holdfast/usage"
)

// items gathers the events of one answer on the responses wire, whose output is a list of items.
type items struct {
	list    []*item
	open    map[int64]*item // by index, until their end
	text    strings.Builder
	thought strings.Builder
	size    int
	end     string // how the terminal event ended the answer: "completed", "incomplete" or "failed"; "" until it came
	reason  string // why it is incomplete
	failed  []byte // the error that ended it
	refusal bool
	odd     bool // the parts of a call did not come in their order
	stray   bool // words came that belong to no item
	calls   int  // that the terminal event counts; -1 when it does not
	usage   usage.Tokens
}

// item is one piece of the output: words, reasoning or a call.
type item struct {
	kind string
	text strings.Builder
	call *partCall
	over bool // all arguments came
	raw  json.RawMessage
}

// outputItem is what is read of an item, whichever kind it is.
type outputItem struct {
	Type      string `json:"type"`
	CallID    string `json:"call_id"`
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
	Phase     string `json:"phase"`
	Encrypted string `json:"encrypted_content"`
	Content   []struct{ Type, Text, Refusal string }
}

func (o outputItem) words() string {
	var b strings.Builder
	for _, c := range o.Content {
		b.WriteString(c.Text + c.Refusal)
	}
	return b.String()
}

func newItems() *items { return &items{open: map[int64]*item{}, calls: -1} }

// ended tells whether the terminal event arrived.
func (a *items) ended() bool { return a.end != "" }

// add takes one event and returns what the user may see of it.
func (a *items) add(ev responseEvent) ([]session.Delta, error) {
	if a.ended() { // nothing belongs to the answer any more
		return nil, nil
	}
	var deltas []session.Delta
	switch ev.Type {
	case "response.output_item.added":
		a.begin(ev.OutputIndex, ev.Item)
	case "response.output_text.delta", "response.refusal.delta":
		a.refusal = a.refusal || ev.Type == "response.refusal.delta"
		deltas = a.say(a.open[ev.OutputIndex], scalar(ev.Delta))
	case "response.reasoning_summary_part.added":
		if a.thought.Len() > 0 { // thoughts of one answer are shown apart
			deltas = a.think("\n\n")
		}
	case "response.reasoning_summary_text.delta", "response.reasoning_text.delta":
		deltas = a.think(scalar(ev.Delta))
	case "response.function_call_arguments.delta":
		a.extend(a.open[ev.OutputIndex], scalar(ev.Delta))
	case "response.function_call_arguments.done":
		a.settle(a.open[ev.OutputIndex], ev.Arguments)
	case "response.output_item.done":
		deltas = a.close(ev.OutputIndex, ev.Item)
	case "response.completed", "response.incomplete", "response.failed":
		a.finish(ev)
	case "error":
		a.end, a.failed = "failed", encodeJSON(map[string]json.RawMessage{"code": orNull(ev.Code), "message": orNull(ev.Message)})
	}
	if a.size > maxAnswer {
		return nil, &session.ModelError{Kind: session.ModelCutOff, Message: "the answer is larger than any model's; it was given up"}
	}
	return deltas, nil
}

func (a *items) begin(index int64, raw []byte) *item {
	var o outputItem
	_ = json.Unmarshal(raw, &o) // what cannot be read is of no kind
	it := &item{kind: o.Type}
	if o.Type == "function_call" {
		it.call = &partCall{id: o.CallID, name: o.Name}
	}
	a.list = append(a.list, it)
	a.open[index] = it
	a.size += len(raw)
	return it
}

// extend adds a fragment of a call's arguments. One that belongs to no open call makes all calls doubtful.
func (a *items) extend(it *item, fragment string) {
	if it == nil || it.call == nil || it.over {
		a.odd = true
		return
	}
	it.call.args.WriteString(fragment)
	a.size += len(fragment) + 64
}

// settle takes the whole arguments of a call, which must be what its fragments say.
func (a *items) settle(it *item, args string) {
	switch {
	case it == nil || it.call == nil:
		a.odd = true
		return
	case it.call.args.Len() == 0:
		it.call.args.WriteString(args)
		a.size += len(args)
	case it.call.args.String() != args:
		a.odd = true
	}
	it.over = true
}

// close takes an item's last form. Servers that do not stream send nothing else of it.
func (a *items) close(index int64, raw []byte) []session.Delta {
	it := a.open[index]
	if it == nil {
		it = a.begin(index, raw)
	}
	delete(a.open, index)
	var o outputItem
	if json.Unmarshal(raw, &o) != nil || o.Type != it.kind {
		a.odd = true
		return nil
	}
	it.raw = append(json.RawMessage(nil), raw...)
	a.size += len(raw)
	switch {
	case it.call != nil:
		a.odd = a.odd || it.call.id != "" && it.call.id != o.CallID || it.call.name != "" && it.call.name != o.Name
		it.call.id, it.call.name = o.CallID, o.Name
		a.settle(it, o.Arguments)
	case it.kind == "message" && it.text.Len() == 0:
		for _, c := range o.Content {
			a.refusal = a.refusal || c.Refusal != ""
		}
		return a.say(it, o.words())
	}
	return nil
}

// say shows words. What the answer says in several messages is shown apart.
func (a *items) say(it *item, text string) []session.Delta {
	if text == "" {
		return nil
	}
	var deltas []session.Delta
	a.stray = a.stray || it == nil
	if it != nil {
		if it.text.Len() == 0 && a.text.Len() > 0 {
			a.text.WriteString("\n\n")
			deltas = append(deltas, session.Delta{Text: "\n\n"})
		}
		it.text.WriteString(text)
	}
	a.text.WriteString(text)
	a.size += len(text)
	return append(deltas, session.Delta{Text: text})
}

func (a *items) think(text string) []session.Delta {
	if text == "" {
		return nil
	}
	a.thought.WriteString(text)
	a.size += len(text)
	return []session.Delta{{Thought: text}}
}

func (a *items) finish(ev responseEvent) {
	r := ev.Response
	a.end = strings.TrimPrefix(ev.Type, "response.")
	if s := r.Status; a.end == "completed" && (s == "incomplete" || s == "failed") { // some servers have one terminal event
		a.end = s
	}
	a.reason = r.Incomplete.Reason
	if a.end == "failed" {
		a.failed = encodeJSON(map[string]json.RawMessage{"error": orNull(r.Error)})
	}
	if len(r.Output) > 0 {
		a.calls = 0
		for _, o := range r.Output {
			if o.Type == "function_call" {
				a.calls++
			}
		}
	}
	a.usage = r.Usage.counts()
}

func orNull(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 {
		return json.RawMessage("null")
	}
	return raw
}
