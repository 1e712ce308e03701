package usage

import "encoding/json"

// Tokens is what one provider request consumed, as the provider reported it.
type Tokens struct {
	Input  int64 `json:"inputTokens"`  // the whole input, whatever of it a cache held
	Output int64 `json:"outputTokens"` // the whole output, reasoning included
	Parts
	// Known is false when the provider reported nothing; the counts are then meaningless.
	Known bool `json:"known"`
}

// Parts are shares of the input and the output. A provider that does not tell them apart says nothing of them.
type Parts struct {
	CacheRead  Count `json:"cacheReadTokens"`  // of the input: read from a cache
	CacheWrite Count `json:"cacheWriteTokens"` // of the input: written to a cache
	Reasoning  Count `json:"reasoningTokens"`  // of the output: reasoning
}

// Count is a number that may be unknown, which is not zero.
type Count struct {
	N     int64
	Known bool
}

// Of is a count that is known.
func Of(n int64) Count { return Count{N: n, Known: true} }

// MaybeOf is the count that n points at; without one it is unknown.
func MaybeOf(n *int64) Count {
	if n == nil {
		return Count{}
	}
	return Of(*n)
}

// Pointer is nil when the count is unknown.
func (c Count) Pointer() *int64 {
	if !c.Known {
		return nil
	}
	return &c.N
}

// MarshalJSON writes null for what is unknown.
func (c Count) MarshalJSON() ([]byte, error) { return json.Marshal(c.Pointer()) }

// UnmarshalJSON reads null as unknown.
func (c *Count) UnmarshalJSON(b []byte) error {
	var n *int64
	if err := json.Unmarshal(b, &n); err != nil {
		return err
	}
	*c = MaybeOf(n)
	return nil
}

// Report is a provider's report of one request. A request that consumed nothing does not exist, so zeros, and numbers that cannot be, mean
// that nothing was counted; parts that are more than their whole are not believed.
func Report(input, output int64, p Parts) Tokens {
	if input < 0 || output < 0 || input == 0 && output == 0 {
		return Tokens{}
	}
	t := Tokens{Input: input, Output: output, Parts: p, Known: true}
	if !within(input, p.CacheRead, p.CacheWrite) {
		t.CacheRead, t.CacheWrite = Count{}, Count{}
	}
	if !within(output, p.Reasoning) {
		t.Reasoning = Count{}
	}
	return t
}

func within(whole int64, parts ...Count) bool {
	for _, c := range parts {
		if c.N < 0 || c.N > whole { // an unknown one is 0
			return false
		}
		whole -= c.N
	}
	return true
}

// Raise moves the watermark of a request to a later snapshot of it. Snapshots are cumulative: none is ever added to another, and a late one
// takes nothing back.
func (t Tokens) Raise(s Tokens) Tokens {
	if !s.Known || !t.Known {
		if s.Known {
			return s
		}
		return t
	}
	return Report(max(t.Input, s.Input), max(t.Output, s.Output),
		Parts{t.CacheRead.raise(s.CacheRead), t.CacheWrite.raise(s.CacheWrite), t.Reasoning.raise(s.Reasoning)})
}

func (c Count) raise(s Count) Count {
	if !c.Known || s.Known && s.N > c.N {
		return s
	}
	return c
}

// Total adds up settled requests: known ones by their counts, the others only by number.
type Total struct {
	Input           int64 `json:"inputTokens"`
	Output          int64 `json:"outputTokens"`
	CacheRead       Sum   `json:"cacheReadTokens"`
	CacheWrite      Sum   `json:"cacheWriteTokens"`
	Reasoning       Sum   `json:"reasoningTokens"`
	UnknownRequests int   `json:"unknownRequests"`
}

// Sum adds up a part. It is null when no request reported the part; what those consumed that did not is not in it.
type Sum struct {
	Count
	Unreported int // requests with known counts that said nothing of this part
}

func (s *Sum) add(c Count) {
	if !c.Known {
		s.Unreported++
		return
	}
	s.Count = Of(plus(s.N, c.N))
}

// Add counts one settled request.
func (t *Total) Add(r Tokens) {
	if !r.Known {
		t.UnknownRequests++
		return
	}
	t.Input, t.Output = plus(t.Input, r.Input), plus(t.Output, r.Output)
	t.CacheRead.add(r.CacheRead)
	t.CacheWrite.add(r.CacheWrite)
	t.Reasoning.add(r.Reasoning)
}
