package fakemodel

import "strings"

// checkItems is this wire's rule for a history: ids are unique, each output follows its call and each call has one, and what reasoning led to
// follows it at once. stored tells that the service keeps answers, so that reasoning can be found by its id alone.
func checkItems(items []inputItem, model string, stored bool) error {
	ids, calls, outputs := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for i, it := range items {
		if it.ID != "" && ids[it.ID] {
			return refuse("", "Duplicate item found with id %s. Remove duplicate items from your input and try again.", it.ID)
		}
		if _, reasoning, ok := strings.Cut(it.ID, afterMark); ok && !ids[reasoning] {
			return refuse("", "Item '%s' of type '%s' was provided without its required 'reasoning' item: '%s'.", it.ID, it.Type, reasoning)
		}
		ids[it.ID] = true
		switch it.Type {
		case "message":
			if it.Role != "user" && it.Role != "assistant" && it.Role != "system" && it.Role != "developer" {
				return refuse("invalid_value", "Invalid value: '%s'. Supported values are: 'assistant', 'system', 'developer', and 'user'.", it.Role)
			}
		case "reasoning":
			if err := checkReasoning(items, i, model, stored); err != nil {
				return err
			}
		case "function_call":
			switch {
			case it.CallID == "" || len(it.CallID) > 64:
				return refuse("", "Invalid 'input[%d].call_id': a length of 1 to 64 is expected.", i)
			case calls[it.CallID]:
				return refuse("", "Duplicate function call with call_id %s.", it.CallID)
			case !validName.MatchString(it.Name):
				return refuse("invalid_value", "Invalid 'input[%d].name': string does not match pattern.", i)
			case it.Arguments == nil:
				return refuse("missing_required_parameter", "Missing required parameter: 'input[%d].arguments'.", i)
			}
			calls[it.CallID] = true
		case "function_call_output":
			switch {
			case !calls[it.CallID]:
				return refuse("", "No tool call found for function call output with call_id %s.", it.CallID)
			case outputs[it.CallID]:
				return refuse("", "Duplicate function call output with call_id %s.", it.CallID)
			case len(it.Output) == 0:
				return refuse("missing_required_parameter", "Missing required parameter: 'input[%d].output'.", i)
			}
			outputs[it.CallID] = true
		default:
			return refuse("invalid_value", "Invalid value: '%s' in 'input[%d].type'.", it.Type, i)
		}
	}
	for _, it := range items {
		if it.Type == "function_call" && !outputs[it.CallID] {
			return refuse("", "No tool output found for function call %s.", it.CallID)
		}
	}
	return nil
}

// checkReasoning: it is the one that was given out to this model, and what it led to comes next.
func checkReasoning(items []inputItem, i int, model string, stored bool) error {
	it := items[i]
	switch {
	case it.ID == "" || len(it.Summary) == 0:
		return refuse("missing_required_parameter", "Missing required parameter in 'input[%d]'.", i)
	case it.Encrypted == "" && !stored:
		return refuse("", "Item with id '%s' not found. Items are not persisted when `store` is set to false.", it.ID)
	case it.Encrypted != "" && !sealed(it.Encrypted, model, it.ID, 0):
		return refuse("invalid_encrypted_content", "The encrypted content for item %s could not be verified.", it.ID)
	}
	if i+1 < len(items) {
		next := items[i+1]
		_, reasoning, _ := strings.Cut(next.ID, afterMark)
		if next.Type == "reasoning" || reasoning == it.ID && (next.Type == "message" || next.Type == "function_call") {
			return nil
		}
	}
	return refuse("", "Item '%s' of type 'reasoning' was provided without its required following item.", it.ID)
}
