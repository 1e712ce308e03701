package fakemodel

import (
	"encoding/json"
	"strings"
)

// checkUses is this wire's rule for calls: the next message answers each, with results before anything else, and answers nothing else.
func checkUses(turns []joined) error {
	used := map[string]bool{}
	open := map[string]bool{}
	for _, t := range turns {
		answered := map[string]bool{}
		spoke := false
		for _, b := range t.blocks {
			switch b.Type {
			case "tool_use":
				if used[b.ID] {
					return refuse("", "messages.%d: `tool_use` ids must be unique: %s", t.at, b.ID)
				}
				used[b.ID] = true
			case "tool_result":
				if !open[b.ToolUseID] {
					return refuse("", "messages.%d: unexpected `tool_use_id` found in `tool_result` blocks: %s. Each `tool_result` block must have "+
						"a corresponding `tool_use` block in the previous message.", t.at, b.ToolUseID)
				}
				if answered[b.ToolUseID] {
					return refuse("", "messages.%d: each tool_use must have a single result: %s", t.at, b.ToolUseID)
				}
				answered[b.ToolUseID] = true
				if spoke {
					return refuse("", "messages.%d: `tool_result` blocks must come first", t.at)
				}
			default:
				spoke = true
			}
		}
		for id := range open {
			if !answered[id] {
				return lacking(t.at-1, id)
			}
		}
		open = map[string]bool{}
		for _, b := range t.blocks {
			if b.Type == "tool_use" {
				open[b.ID] = true
			}
		}
	}
	for id := range open {
		return lacking(turns[len(turns)-1].at, id)
	}
	return nil
}

func lacking(at int, id string) error {
	return refuse("", "messages.%d: `tool_use` ids were found without `tool_result` blocks immediately after: %s. Each `tool_use` block must have "+
		"a corresponding `tool_result` block in the next message.", at, id)
}

// readTurn checks the blocks of a message and keeps what handlers look at. prefix is the digest of all that came before.
func (r *Request) readTurn(t joined, prefix string) error {
	if t.role == "user" {
		for _, b := range t.blocks {
			if err := r.readUser(t, b); err != nil {
				return err
			}
		}
		return nil
	}
	out := Message{Role: "assistant"}
	for i, b := range t.blocks {
		switch b.Type {
		case "text":
			if strings.TrimSpace(b.Text) == "" {
				return emptyText(t)
			}
			out.Content += b.Text
		case "thinking", "redacted_thinking":
			thought, err := r.thought(t, i, len(out.Thoughts), prefix)
			if err != nil {
				return err
			}
			out.Thoughts = append(out.Thoughts, thought)
		case "tool_use":
			var input map[string]any
			switch {
			case !validID.MatchString(b.ID):
				return refuse("", "messages.%d.content.%d.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'", t.at, i)
			case !longName.MatchString(b.Name):
				return refuse("", "messages.%d.content.%d.tool_use.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'", t.at, i)
			case json.Unmarshal(b.Input, &input) != nil || input == nil:
				return refuse("", "messages.%d.content.%d.tool_use.input: Input should be an object", t.at, i)
			}
			out.ToolCalls = append(out.ToolCalls, ToolCall{b.ID, b.Name, string(b.Input)})
		default:
			return refuse("", "messages.%d.content.%d: Input tag %q is not expected in an assistant message", t.at, i, b.Type)
		}
	}
	r.Messages = append(r.Messages, out)
	return nil
}

// thought checks that a thought is the one that was given out, to this model and behind this history.
func (r *Request) thought(t joined, i, n int, prefix string) (string, error) {
	b := t.blocks[i]
	if i == len(t.blocks)-1 {
		return "", refuse("", "messages.%d: The final block in an assistant message cannot be `%s`.", t.at, b.Type)
	}
	if b.Type == "redacted_thinking" {
		if !sealed(b.Data, r.Model, prefix, n) {
			return "", refuse("", "messages.%d.content.%d: Invalid `data` in `redacted_thinking` block", t.at, i)
		}
		return b.Data, nil
	}
	if b.Thinking == nil || b.Signature != sign(r.Model, prefix, n, *b.Thinking) {
		return "", refuse("", "messages.%d.content.%d: Invalid `signature` in `thinking` block", t.at, i)
	}
	return b.Signature, nil
}

func (r *Request) readUser(t joined, b contentBlock) error {
	switch b.Type {
	case "text":
		if strings.TrimSpace(b.Text) == "" {
			return emptyText(t)
		}
		r.Messages = append(r.Messages, Message{Role: "user", Content: b.Text})
	case "image":
		data, err := blockImage(b)
		if err != nil {
			return err
		}
		r.Messages = append(r.Messages, Message{Role: "user", Images: []string{data}})
	case "tool_result":
		m := Message{Role: "tool", ToolCallID: b.ToolUseID, IsError: b.IsError}
		if len(b.Content) > 0 {
			blocks, _, err := contentOf(b.Content)
			if err != nil {
				return refuse("", "messages.%d: tool_result content: %v", t.at, err)
			}
			for _, part := range blocks {
				if part.Type == "image" {
					data, err := blockImage(part)
					if err != nil {
						return err
					}
					m.Images = append(m.Images, data)
					continue
				}
				if part.Type != "text" || strings.TrimSpace(part.Text) == "" {
					return emptyText(t)
				}
				m.Content += part.Text
			}
		}
		r.Messages = append(r.Messages, m)
	default:
		return refuse("", "messages.%d: Input tag %q is not expected in a user message", t.at, b.Type)
	}
	return nil
}

func emptyText(t joined) error {
	return refuse("", "messages.%d: text content blocks must be non-empty and contain non-whitespace text", t.at)
}
