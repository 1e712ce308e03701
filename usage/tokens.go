package usage

// Tokens is what one provider request consumed, as the provider reported it.
type Tokens struct {
	Input  int64 `json:"inputTokens"`
	Output int64 `json:"outputTokens"`
	// Known is false when the provider reported nothing; the counts are then meaningless.
	Known bool `json:"known"`
}

// Total adds up settled requests: known ones by their counts, the others only by number.
type Total struct {
	Input           int64 `json:"inputTokens"`
	Output          int64 `json:"outputTokens"`
	UnknownRequests int   `json:"unknownRequests"`
}

// Add counts one settled request.
func (t *Total) Add(r Tokens) {
	if !r.Known {
		t.UnknownRequests++
		return
	}
	t.Input += r.Input
	t.Output += r.Output
}
