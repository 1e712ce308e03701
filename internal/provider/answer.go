package provider

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/openai/openai-go/v3"

	"holdfast/session"
	"holdfast/usage"
)

// maxAnswer bounds one answer in memory. No model writes that much; a broken endpoint may.
const maxAnswer = 64 << 20

// answer gathers the chunks of one stream.
type answer struct {
	text    strings.Builder
	thought strings.Builder
	calls   []*partCall
	open    map[int64]*partCall // the call that fragments with this index belong to
	size    int
	finish  string // the wire's finish reason; "" until it came
	refusal bool
	usage   usage.Tokens
	settled bool // usage came with the finish reason or after it
}

type partCall struct {
	id, name string
	args     strings.Builder
}

func newAnswer() *answer { return &answer{open: map[int64]*partCall{}} }

// ended tells whether the end mark arrived as far as chunks show it; the line [DONE] is seen by wireBody.
func (a *answer) ended() bool { return a.finish != "" && a.settled }

// add takes one chunk and returns what the user may see of it.
func (a *answer) add(c openai.ChatCompletionChunk) ([]session.Delta, error) {
	var deltas []session.Delta
	for _, choice := range c.Choices {
		if choice.Index != 0 { // one answer was asked for
			continue
		}
		if t := reasoning(choice.Delta); t != "" {
			a.thought.WriteString(t)
			deltas = append(deltas, session.Delta{Thought: t})
		}
		for _, t := range []string{choice.Delta.Content, choice.Delta.Refusal} {
			if t != "" {
				a.text.WriteString(t)
				deltas = append(deltas, session.Delta{Text: t})
			}
		}
		a.refusal = a.refusal || choice.Delta.Refusal != ""
		for _, call := range choice.Delta.ToolCalls {
			a.addCall(call)
		}
		if choice.FinishReason != "" {
			a.finish = choice.FinishReason
		}
	}
	a.addUsage(c)
	for _, d := range deltas {
		a.size += len(d.Text) + len(d.Thought)
	}
	if a.size > maxAnswer {
		return nil, &session.ModelError{Kind: session.ModelCutOff, Message: "the answer is larger than any model's; it was given up"}
	}
	return deltas, nil
}

// addCall appends a fragment. Fragments belong together by index. Some servers number all calls 0 and send each whole: there a new
// id, or without ids a new name, begins the next call.
func (a *answer) addCall(f openai.ChatCompletionChunkChoiceDeltaToolCall) {
	call := a.open[f.Index]
	if call == nil || f.ID != "" && call.id != "" && f.ID != call.id || f.ID == "" && f.Function.Name != "" && call.name != "" && f.Function.Name != call.name {
		call = &partCall{}
		a.open[f.Index] = call
		a.calls = append(a.calls, call)
	}
	if call.id == "" {
		call.id = f.ID
	}
	if call.name == "" {
		call.name = f.Function.Name
	}
	call.args.WriteString(f.Function.Arguments)
	a.size += len(f.Function.Arguments) + len(f.ID) + len(f.Function.Name) + 64
}

// addUsage moves the counts on: servers that report while they stream send growing ones.
func (a *answer) addUsage(c openai.ChatCompletionChunk) {
	if !c.JSON.Usage.Valid() {
		return
	}
	counted := chatCounts(c.Usage.RawJSON())
	if !counted.Known {
		return
	}
	a.usage = a.usage.Raise(counted)
	a.settled = a.finish != ""
}

// response is the whole answer. The end mark must have arrived.
func (a *answer) response(ids *callIDs) (session.ModelResponse, error) {
	resp := session.ModelResponse{Text: a.text.String(), Thought: a.thought.String(), Usage: a.usage, Finish: session.FinishStop}
	switch {
	case a.finish == "error":
		return session.ModelResponse{}, &session.ModelError{Kind: session.ModelOverloaded, Message: "the endpoint ended the answer with an error"}
	case a.finish == "content_filter" || a.refusal:
		resp.Finish = session.FinishRefusal
	case a.finish == "length":
		resp.Finish = session.FinishLength
	case len(a.calls) > 0: // some servers say "stop" behind calls
		resp.Finish = session.FinishCalls
		calls, err := finished(a.calls, ids)
		if err != nil {
			return session.ModelResponse{}, err
		}
		resp.Calls = calls
	}
	return resp, nil
}

// finished names the calls: an id that came is kept, an empty one is made up (I4).
func finished(parts []*partCall, ids *callIDs) ([]session.Call, error) {
	seen := map[string]bool{}
	for _, c := range parts {
		if c.name == "" {
			return nil, &session.ModelError{Kind: session.ModelCutOff, Message: "the answer holds a tool call without a name"}
		}
		if c.id != "" && seen[c.id] {
			return nil, &session.ModelError{Kind: session.ModelBadRequest,
				Message: fmt.Sprintf("the answer is ambiguous: two of its calls have the id %q", clip(c.id, 80))}
		}
		seen[c.id] = true
		ids.used[c.id] = true
	}
	calls := make([]session.Call, len(parts))
	for i, c := range parts {
		id := ids.next()
		if c.id != "" {
			id = c.id
		}
		calls[i] = session.Call{ID: id, Name: c.name, Args: c.args.String()}
	}
	return calls, nil
}

// reasoning finds the thought in a delta. The wire does not define it; servers use one of two members, some of them both.
func reasoning(d openai.ChatCompletionChunkChoiceDelta) string {
	for _, name := range []string{"reasoning_content", "reasoning"} {
		var text string
		if f, ok := d.JSON.ExtraFields[name]; ok && json.Unmarshal([]byte(f.Raw()), &text) == nil && text != "" {
			return text
		}
	}
	return ""
}
