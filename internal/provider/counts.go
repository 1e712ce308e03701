package provider

import (
	"encoding/json"

	"holdfast/usage"
)

// chatUsage is a report on the chat completions wire. Some servers tell the share of the cache in a member of their own.
type chatUsage struct {
	Input  int64 `json:"prompt_tokens"`
	Output int64 `json:"completion_tokens"`
	In     struct {
		Cached  *int64 `json:"cached_tokens"`
		Written *int64 `json:"cache_write_tokens"`
	} `json:"prompt_tokens_details"`
	Out struct {
		Reasoning *int64 `json:"reasoning_tokens"`
	} `json:"completion_tokens_details"`
	Hit    *int64 `json:"prompt_cache_hit_tokens"`
	Cached *int64 `json:"cached_tokens"`
}

// chatCounts reads a report; the cached tokens are among the prompt's, and reasoning among the completion's.
func chatCounts(raw string) usage.Tokens {
	var u chatUsage
	if json.Unmarshal([]byte(raw), &u) != nil {
		return usage.Tokens{}
	}
	read := u.In.Cached
	for _, other := range []*int64{u.Hit, u.Cached} {
		if read == nil {
			read = other
		}
	}
	return usage.Report(u.Input, u.Output, parts3(read, u.In.Written, u.Out.Reasoning))
}

// responseUsage is a report on the responses wire.
type responseUsage struct {
	Input  int64 `json:"input_tokens"`
	Output int64 `json:"output_tokens"`
	In     struct {
		Cached  *int64 `json:"cached_tokens"`
		Written *int64 `json:"cache_write_tokens"`
	} `json:"input_tokens_details"`
	Out struct {
		Reasoning *int64 `json:"reasoning_tokens"`
	} `json:"output_tokens_details"`
}

func (u responseUsage) counts() usage.Tokens {
	return usage.Report(u.Input, u.Output, parts3(u.In.Cached, u.In.Written, u.Out.Reasoning))
}

// messageUsage is a report on the messages wire, where what a cache held or was given is not among the input.
type messageUsage struct {
	Input   *int64 `json:"input_tokens"`
	Output  *int64 `json:"output_tokens"`
	Read    *int64 `json:"cache_read_input_tokens"`
	Written *int64 `json:"cache_creation_input_tokens"`
	Out     struct {
		Thinking *int64 `json:"thinking_tokens"`
	} `json:"output_tokens_details"`
}

// raise takes the later report of the same answer over an earlier one. What it leaves out stays as it was: older servers count the input
// at the start only.
func (u *messageUsage) raise(raw string) {
	var v messageUsage
	if json.Unmarshal([]byte(raw), &v) != nil {
		return
	}
	for _, f := range []struct{ to, from **int64 }{{&u.Input, &v.Input}, {&u.Output, &v.Output}, {&u.Read, &v.Read}, {&u.Written, &v.Written},
		{&u.Out.Thinking, &v.Out.Thinking}} {
		if *f.from != nil && (*f.to == nil || **f.from > **f.to) {
			*f.to = *f.from
		}
	}
}

// counts is unknown without a count of the output, and without input: no request is without it.
func (u messageUsage) counts() usage.Tokens {
	in, p := int64(0), parts3(u.Read, u.Written, u.Out.Thinking)
	for _, n := range []*int64{u.Input, u.Read, u.Written} {
		if n != nil {
			in += *n
		}
	}
	if in <= 0 || u.Output == nil {
		return usage.Tokens{}
	}
	return usage.Report(in, *u.Output, p)
}

func parts3(read, written, reasoning *int64) usage.Parts {
	return usage.Parts{CacheRead: usage.MaybeOf(read), CacheWrite: usage.MaybeOf(written), Reasoning: usage.MaybeOf(reasoning)}
}
