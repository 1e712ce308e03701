package provider

import (
	"testing"

	"holdfast/conformance/fakemodel"
	"holdfast/session"
	"holdfast/usage"
)

// partsOf is what a reply reports of its parts: the share of the cache on every wire, what was written to it on the messages wire only, and
// reasoning on the others.
func partsOf(r fakemodel.Reply, wire string) usage.Parts {
	u := r.Usage
	if u == nil || u.Bare || u.Prompt+u.Completion+u.CacheRead+u.CacheWrite == 0 {
		return usage.Parts{}
	}
	if wire == "messages" {
		return usage.Parts{CacheRead: usage.Of(u.CacheRead), CacheWrite: usage.Of(u.CacheWrite)}
	}
	return usage.Parts{CacheRead: usage.Of(u.CacheRead), Reasoning: usage.Of(u.Reasoning)}
}

// The parts of a report on every wire: the input is the whole input everywhere, and what is not reported is unknown.
func TestUsage_Parts(t *testing.T) {
	counted := fakemodel.Reply{Steps: []fakemodel.Step{{Text: "x"}}, Usage: &fakemodel.Usage{Prompt: 100, Completion: 50, CacheRead: 800, Reasoning: 20}}
	written := fakemodel.Reply{Steps: []fakemodel.Step{{Text: "x"}}, Usage: &fakemodel.Usage{Prompt: 100, Completion: 50, CacheRead: 800, CacheWrite: 30}}
	bare := fakemodel.Reply{Steps: []fakemodel.Step{{Text: "x"}}, Usage: &fakemodel.Usage{Prompt: 900, Completion: 50, Bare: true}}
	for name, c := range map[string]struct {
		wire  string
		reply fakemodel.Reply
		want  usage.Tokens
	}{
		"chat":            {"chat", counted, usage.Report(900, 50, usage.Parts{CacheRead: usage.Of(800), Reasoning: usage.Of(20)})},
		"chat, bare":      {"chat", bare, usage.Report(900, 50, usage.Parts{})},
		"responses":       {"responses", counted, usage.Report(900, 50, usage.Parts{CacheRead: usage.Of(800), Reasoning: usage.Of(20)})},
		"responses, bare": {"responses", bare, usage.Report(900, 50, usage.Parts{})},
		"messages":        {"messages", written, usage.Report(930, 50, usage.Parts{CacheRead: usage.Of(800), CacheWrite: usage.Of(30)})},
		"messages, bare":  {"messages", bare, usage.Report(900, 50, usage.Parts{})},
	} {
		t.Run(name, func(t *testing.T) {
			var m session.Model
			switch c.wire {
			case "chat":
				m, _ = serve(t, testLimits(), always(c.reply))
			case "responses":
				m, _ = serveResponses(t, testLimits(), always(c.reply))
			default:
				m, _ = serveMessages(t, testLimits(), always(c.reply))
			}
			if h := ask(t.Context(), m, hello()); h.err != nil || h.resp.Usage != c.want {
				t.Errorf("the usage is %+v, %v; want %+v", h.resp.Usage, h.err, c.want)
			}
		})
	}
}

// Servers that call themselves compatible put the share of the cache in other places; the one of the wire itself counts first.
func TestUsage_PartsOfCompatibleServers(t *testing.T) {
	whole := `{"prompt_tokens":900,"completion_tokens":50`
	for name, c := range map[string]struct {
		rest string
		want usage.Parts
	}{
		"nothing":       {`}`, usage.Parts{}},
		"null":          {`,"prompt_tokens_details":null,"completion_tokens_details":null}`, usage.Parts{}},
		"hit and miss":  {`,"prompt_cache_hit_tokens":700,"prompt_cache_miss_tokens":200}`, usage.Parts{CacheRead: usage.Of(700)}},
		"at the top":    {`,"cached_tokens":600}`, usage.Parts{CacheRead: usage.Of(600)}},
		"both":          {`,"cached_tokens":600,"prompt_tokens_details":{"cached_tokens":500}}`, usage.Parts{CacheRead: usage.Of(500)}},
		"written":       {`,"prompt_tokens_details":{"cached_tokens":500,"cache_write_tokens":100}}`, usage.Parts{CacheRead: usage.Of(500), CacheWrite: usage.Of(100)}},
		"more than all": {`,"prompt_tokens_details":{"cached_tokens":901}}`, usage.Parts{}},
		"reasoning":     {`,"completion_tokens_details":{"reasoning_tokens":0}}`, usage.Parts{Reasoning: usage.Of(0)}},
	} {
		if got := chatCounts(whole + c.rest); got != usage.Report(900, 50, c.want) {
			t.Errorf("%s: %+v; want %+v", name, got, c.want)
		}
	}
}

// Reports of one answer are cumulative. On the messages wire the input may be told at the start only; it is counted once.
func TestUsage_ReportsOfOneAnswerAreNotAdded(t *testing.T) {
	var u messageUsage
	for _, raw := range []string{`{"input_tokens":100,"cache_read_input_tokens":800,"output_tokens":1}`, `{"output_tokens":20}`, `{"output_tokens":20}`,
		`{"input_tokens":100,"cache_read_input_tokens":800,"output_tokens":50}`} {
		u.raise(raw)
	}
	if want := usage.Report(900, 50, usage.Parts{CacheRead: usage.Of(800)}); u.counts() != want {
		t.Errorf("the counts are %+v; want %+v", u.counts(), want)
	}
	m, _ := serve(t, testLimits(), always(fakemodel.Reply{Steps: []fakemodel.Step{
		{Raw: `data: {"choices":[],"usage":{"prompt_tokens":900,"completion_tokens":10,"prompt_tokens_details":{"cached_tokens":800}}}` + "\n\n"},
		{Text: "x"},
		{Raw: `data: {"choices":[],"usage":{"prompt_tokens":900,"completion_tokens":30}}` + "\n\n"},
	}, Usage: &fakemodel.Usage{Prompt: 900, Completion: 50, Bare: true}}))
	if h := ask(t.Context(), m, hello()); h.err != nil || h.resp.Usage != usage.Report(900, 50, usage.Parts{CacheRead: usage.Of(800)}) {
		t.Errorf("the usage is %+v, %v", h.resp.Usage, h.err)
	}
}
