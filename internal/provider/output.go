package provider

import (
	"encoding/json"

	"holdfast/session"
)

// response is the whole answer. The terminal event must have arrived, and not with a failure.
func (a *items) response(ids *callIDs) (session.ModelResponse, error) {
	resp := session.ModelResponse{Text: a.text.String(), Thought: a.thought.String(), Usage: a.usage, Finish: session.FinishStop}
	switch {
	case a.end == "incomplete" && a.reason == "content_filter" || a.refusal:
		resp.Finish = session.FinishRefusal
		return resp, nil
	case a.end == "incomplete":
		resp.Finish = session.FinishLength // the last item may be half a thought or half a call
		return resp, nil
	}
	var parts []*partCall
	for _, it := range a.list {
		if it.call == nil {
			continue
		}
		if !it.over {
			return session.ModelResponse{}, &session.ModelError{Kind: session.ModelCutOff, Message: "the endpoint ended the answer in the middle of a tool call"}
		}
		parts = append(parts, it.call)
	}
	if a.calls >= 0 && a.calls != len(parts) || a.odd {
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

func wrongOrder() error {
	return &session.ModelError{Kind: session.ModelCutOff, Message: "the endpoint sent the parts of the answer in the wrong order"}
}

// native is the answer item by item when it holds what text and calls cannot say, and nil when one of the items cannot be repeated.
func (a *items) native() *session.Native {
	n, needed := &session.Native{}, false
	for _, it := range a.list {
		var o outputItem
		if it.raw == nil || json.Unmarshal(it.raw, &o) != nil {
			return nil
		}
		switch it.kind {
		case "reasoning":
			if o.Encrypted == "" { // nothing is stored at the service, so it would not find the item
				return nil
			}
			needed = true
		case "message":
			if o.words() != it.text.String() {
				return nil
			}
			needed = needed || o.Phase != ""
		case "function_call":
			if o.Arguments != it.call.args.String() || o.CallID == "" {
				return nil
			}
		default:
			return nil
		}
		n.Blocks = append(n.Blocks, withoutNulls(it.raw))
	}
	if !needed || a.stray {
		return nil
	}
	return n
}

// withoutNulls drops the members that hold nothing: the wire sends some that it refuses to take back.
func withoutNulls(raw json.RawMessage) json.RawMessage {
	var o map[string]json.RawMessage
	if json.Unmarshal(raw, &o) != nil {
		return raw
	}
	for name, v := range o {
		if string(v) == "null" {
			delete(o, name)
		}
	}
	return encodeJSON(o)
}
