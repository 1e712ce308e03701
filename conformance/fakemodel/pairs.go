package fakemodel

import "fmt"

// CheckPairs is the service's rule for a history: the roles are known, each call has exactly one result, which follows the calls
// of its message directly, each result has its call, and no id is used by two calls. Arguments may be anything.
func CheckPairs(messages []Message) error {
	used := map[string]bool{}
	open := map[string]bool{} // calls of the last assistant message that wait for their result
	for i, m := range messages {
		if m.Role != "tool" && len(open) > 0 {
			return unanswered(i, open)
		}
		switch m.Role {
		case "tool":
			if !open[m.ToolCallID] {
				return refuse("", "Invalid parameter: messages[%d] with role 'tool' must be a response to a preceding message with 'tool_calls'; "+
					"the id %q has no open call.", i, m.ToolCallID)
			}
			delete(open, m.ToolCallID)
		case "assistant":
			for _, c := range m.ToolCalls {
				if used[c.ID] {
					return refuse("", "Invalid parameter: messages[%d] uses the id %q again.", i, c.ID)
				}
				used[c.ID], open[c.ID] = true, true
			}
		case "system", "developer", "user":
			if len(m.ToolCalls) > 0 {
				return refuse("", "Invalid parameter: messages[%d] with role '%s' has 'tool_calls'.", i, m.Role)
			}
		default:
			return refuse("invalid_value", "Invalid value: '%s'. Supported values are: 'system', 'assistant', 'user', 'tool' and 'developer'.", m.Role)
		}
	}
	if len(open) > 0 {
		return unanswered(len(messages), open)
	}
	return nil
}

func unanswered(at int, open map[string]bool) error {
	first := ""
	for id := range open {
		if first == "" || id < first {
			first = id
		}
	}
	return refuse("", "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. "+
		"Before messages[%d] these did not have response messages: %s (%d open).", at, first, len(open))
}

// ResultsPerCall checks every request: each call id has exactly one result, directly behind its call, and no request was refused.
func ResultsPerCall(requests []Request) error {
	for _, r := range requests {
		if r.Refused != "" {
			return fmt.Errorf("request %d was refused: %s", r.N, r.Refused)
		}
		if err := CheckPairs(r.Messages); err != nil {
			return fmt.Errorf("request %d: %w", r.N, err)
		}
	}
	return nil
}
