package provider

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/anthropics/anthropic-sdk-go/v2"

	"holdfast/session"
	"holdfast/usage"
)

// blocks gathers the events of one answer on the messages wire, whose content is a list of blocks.
type blocks struct {
	list    []*block
	open    map[int64]*block // by index, until their end
	text    strings.Builder
	thought strings.Builder
	size    int
	stop    string // the wire's stop reason; "" until it came
	over    bool   // message_stop came
	lost    bool   // a part of a call's arguments came that belongs to no open call
	counts  messageUsage
	usage   usage.Tokens
}

// block is one content block. Its text is what its deltas add to: words, reasoning, or the JSON of a call's arguments.
type block struct {
	first     map[string]json.RawMessage // as its start gave it
	kind      string
	text      strings.Builder
	signature strings.Builder
	call      *partCall
	whole     bool // its end came
	odd       bool // a delta came that cannot be repeated
}

func newBlocks() *blocks { return &blocks{open: map[int64]*block{}} }

// ended tells whether the end mark arrived: the wire ends an answer with one event, behind the reason.
func (a *blocks) ended() bool { return a.over && a.stop != "" }

// add takes one event and returns what the user may see of it.
func (a *blocks) add(ev anthropic.MessageStreamEventUnion) ([]session.Delta, error) {
	var deltas []session.Delta
	switch ev.Type {
	case "message_start":
		started := messageUsage{}
		started.raise(ev.Message.Usage.RawJSON())
		started.Output = nil // the output has only begun
		a.counts = started
	case "content_block_start":
		deltas = a.begin(ev.Index, []byte(ev.ContentBlock.RawJSON()))
	case "content_block_delta":
		if b := a.open[ev.Index]; b != nil {
			deltas = a.extend(b, ev.Delta)
		} else if ev.Delta.Type == "input_json_delta" {
			a.lost = true
		}
	case "content_block_stop":
		if b := a.open[ev.Index]; b != nil {
			b.whole = true
			delete(a.open, ev.Index)
		}
	case "message_delta":
		if r := string(ev.Delta.StopReason); r != "" {
			a.stop = r
		}
		a.addUsage(ev)
	case "message_stop":
		a.over = true
	}
	if a.size > maxAnswer {
		return nil, &session.ModelError{Kind: session.ModelCutOff, Message: "the answer is larger than any model's; it was given up"}
	}
	return deltas, nil
}

// begin opens a block. Its start is empty as a rule, but need not be.
func (a *blocks) begin(index int64, start []byte) []session.Delta {
	b := &block{}
	if json.Unmarshal(start, &b.first) != nil {
		b.odd = true
	}
	b.kind = scalar(b.first["type"])
	a.list = append(a.list, b)
	a.open[index] = b
	a.size += len(start)
	switch b.kind {
	case "text":
		return a.say(b, scalar(b.first["text"]))
	case "thinking":
		b.signature.WriteString(scalar(b.first["signature"]))
		var deltas []session.Delta
		if a.thought.Len() > 0 { // thoughts of one answer are shown apart
			a.thought.WriteString("\n\n")
			deltas = append(deltas, session.Delta{Thought: "\n\n"})
		}
		return append(deltas, a.think(b, scalar(b.first["thinking"]))...)
	case "tool_use":
		b.call = &partCall{id: scalar(b.first["id"]), name: scalar(b.first["name"])}
	}
	return nil
}

func (a *blocks) extend(b *block, d anthropic.MessageStreamEventUnionDelta) []session.Delta {
	a.size += len(d.Text) + len(d.Thinking) + len(d.Signature) + len(d.PartialJSON) + 64
	switch {
	case d.Type == "text_delta" && b.kind == "text":
		return a.say(b, d.Text)
	case d.Type == "thinking_delta" && b.kind == "thinking":
		return a.think(b, d.Thinking)
	case d.Type == "signature_delta" && b.kind == "thinking":
		b.signature.WriteString(d.Signature)
	case d.Type == "input_json_delta" && b.call != nil:
		b.call.args.WriteString(d.PartialJSON)
	default:
		b.odd = true
	}
	return nil
}

func (a *blocks) say(b *block, text string) []session.Delta {
	if text == "" {
		return nil
	}
	b.text.WriteString(text)
	a.text.WriteString(text)
	return []session.Delta{{Text: text}}
}

func (a *blocks) think(b *block, text string) []session.Delta {
	if text == "" {
		return nil
	}
	b.text.WriteString(text)
	a.thought.WriteString(text)
	return []session.Delta{{Thought: text}}
}

// addUsage moves the counts on, which are cumulative. What was read from the cache or written to it is input as well. Without a count of
// the output nothing is known.
func (a *blocks) addUsage(ev anthropic.MessageStreamEventUnion) {
	if ev.JSON.Usage.Valid() && ev.Usage.JSON.OutputTokens.Valid() {
		a.counts.raise(ev.Usage.RawJSON())
		a.usage = a.counts.counts()
	}
}

// response is the whole answer. The end mark must have arrived.
func (a *blocks) response(ids *callIDs) (session.ModelResponse, error) {
	resp := session.ModelResponse{Text: a.text.String(), Thought: a.thought.String(), Usage: a.usage, Finish: session.FinishStop}
	switch a.stop {
	case "refusal":
		resp.Finish = session.FinishRefusal
		return resp, nil
	case "max_tokens", "model_context_window_exceeded":
		resp.Finish = session.FinishLength // the last block may be half a thought or half a call
		return resp, nil
	}
	var parts []*partCall
	for _, b := range a.list {
		if b.call == nil {
			continue
		}
		if !b.whole {
			return session.ModelResponse{}, &session.ModelError{Kind: session.ModelCutOff, Message: "the endpoint ended the answer in the middle of a tool call"}
		}
		if b.call.args.Len() == 0 {
			b.call.args.Write(b.input())
		}
		parts = append(parts, b.call)
	}
	if a.lost {
		return session.ModelResponse{}, wrongOrder()
	}
	if len(parts) > 0 {
		resp.Finish = session.FinishCalls
		var err error
		if resp.Calls, err = finished(parts, ids); err != nil {
			return session.ModelResponse{}, err
		}
	}
	resp.Native = a.native()
	return resp, nil
}

// native is the answer block by block, or nil when one of them cannot be repeated as it was.
func (a *blocks) native() *session.Native {
	n := &session.Native{}
	for _, b := range a.list {
		raw, ok := b.raw()
		if !ok {
			return nil
		}
		n.Blocks = append(n.Blocks, raw)
	}
	return n
}

// raw is the block as one JSON object, with the members of its start that no delta touched.
func (b *block) raw() (json.RawMessage, bool) {
	if !b.whole || b.odd {
		return nil, false
	}
	switch b.kind {
	case "text":
		b.first["text"] = encodeJSON(b.text.String())
	case "thinking":
		if b.signature.Len() == 0 { // who checks signatures refuses it without one, and who does not can do without it
			return nil, false
		}
		b.first["thinking"], b.first["signature"] = encodeJSON(b.text.String()), encodeJSON(b.signature.String())
	case "tool_use":
		args := []byte(b.call.args.String())
		if !isObject(args) {
			return nil, false
		}
		b.first["input"] = args
	}
	return encodeJSON(b.first), true
}

// input is the arguments that came with the block's start.
func (b *block) input() []byte {
	if in := b.first["input"]; len(in) > 0 && string(in) != "null" {
		return in
	}
	return []byte("{}")
}

func isObject(raw []byte) bool {
	var o map[string]json.RawMessage
	return json.Unmarshal(raw, &o) == nil && o != nil
}

// encodeJSON keeps the characters that the standard encoder writes as escapes for the sake of web pages.
func encodeJSON(v any) json.RawMessage {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic(fmt.Sprintf("provider: encode a value made of JSON: %v", err))
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n"))
}
