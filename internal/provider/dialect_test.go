package provider

import (
	"encoding/json"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"holdfast/conformance/fakemodel"
	"holdfast/session"
	"holdfast/usage"
)

// dialectCases says of each answer in testdata/dialects, and of the request that is made of it, what is special. The answers are written after
// the servers' documentation and sources, not recorded.
var dialectCases = map[string]struct {
	ids     []string // of the two calls; nil: they are made up
	thinks  bool
	counts  bool
	request []string // members that the request has, and no others of their kind
	sentID  string   // what the ids in the request look like
}{
	"ollama":     {ids: []string{"call_9vx1k2ab", "call_4hq7s0zy"}, thinks: true, counts: true, request: []string{"max_tokens", "stream_options"}},
	"lmstudio":   {ids: []string{"365174485", "728117640"}, thinks: true, counts: true, request: []string{"max_tokens", "stream_options"}},
	"vllm":       {ids: []string{"chatcmpl-tool-0a1b2c3d4e5f60718293a4b5c6d7e8f9", "chatcmpl-tool-1f2e3d4c5b6a79880716253443526170"}, thinks: true, counts: true, request: []string{"max_tokens", "stream_options"}},
	"openrouter": {ids: []string{"toolu_01AbCdEf", "toolu_01GhIjKl"}, thinks: true, counts: true, request: []string{"max_tokens", "stream_options"}},
	"mistral":    {ids: []string{"D681PevKs", "Ft4kQ9z0a"}, counts: true, request: []string{"max_tokens"}, sentID: `^[a-zA-Z0-9]{9}$`},
	"plain":      {request: []string{"max_tokens", "stream_options"}},
}

// TestDialects_Fixtures: each server's answer is understood, and goes back as that server takes it.
func TestDialects_Fixtures(t *testing.T) {
	files, err := filepath.Glob("testdata/dialects/*.sse")
	if err != nil || len(files) != len(dialectCases) {
		t.Fatalf("%d files for %d cases, error %v", len(files), len(dialectCases), err)
	}
	for name, c := range dialectCases {
		t.Run(name, func(t *testing.T) {
			page, err := os.ReadFile("testdata/dialects/" + name + ".sse")
			if err != nil {
				t.Fatal(err)
			}
			reply := fakemodel.Reply{Status: 200, Type: "text/event-stream", Page: string(page)}
			s := fakemodel.New(func(fakemodel.Request) fakemodel.Reply { return reply })
			t.Cleanup(s.Close)
			m, err := NewOpenAI(OpenAIConfig{Model: "fake", BaseURL: s.URL(), Dialect: name, MaxTokens: 77, Limits: testLimits()})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(m.Close)
			req := answered(t, hello(), session.ModelResponse{Calls: []session.Call{{ID: "toolu_of_another_provider", Name: "read", Args: "{}"}}})
			h := ask(t.Context(), m, req)
			if h.err != nil {
				t.Fatal(h.err)
			}
			if c.ids == nil {
				c.ids = []string{"call_2", "call_3"}
			}
			if h.resp.Text != "Reading." || h.resp.Finish != session.FinishCalls || len(h.resp.Calls) != 2 || h.resp.Calls[0].ID != c.ids[0] || h.resp.Calls[1].ID != c.ids[1] {
				t.Errorf("got %s", mustJSON(t, h.resp))
			}
			for i, want := range []string{"a", "b"} {
				var args struct{ Path string }
				if err := json.Unmarshal([]byte(h.resp.Calls[i].Args), &args); err != nil || args.Path != want {
					t.Errorf("call %d has the arguments %s", i, h.resp.Calls[i].Args)
				}
			}
			if thought := "Two files. Read both."; c.thinks != (h.resp.Thought == thought) || !c.thinks && h.resp.Thought != "" {
				t.Errorf("the thought is %q", h.resp.Thought)
			}
			if want := (usage.Tokens{Input: 120, Output: 40, Known: true}); c.counts != (h.resp.Usage == want) || !c.counts && h.resp.Usage.Known {
				t.Errorf("the usage is %+v", h.resp.Usage)
			}
			reply = fakemodel.Text("ok")
			if h := ask(t.Context(), m, answered(t, req, h.resp)); h.err != nil {
				t.Fatal(h.err)
			}
			sent := s.Requests()[1]
			for _, member := range []string{"max_tokens", "max_completion_tokens", "stream_options", "parallel_tool_calls"} {
				if has := strings.Contains(string(sent.Body), `"`+member+`"`); has != slices.Contains(c.request, member) {
					t.Errorf("%s in the request: %v", member, has)
				}
			}
			for _, msg := range sent.Messages {
				for _, call := range msg.ToolCalls {
					if c.sentID != "" && !regexp.MustCompile(c.sentID).MatchString(call.ID) {
						t.Errorf("the id %q was sent", call.ID)
					}
				}
			}
		})
	}
}

// TestDialects_ByAddress: the first that fits, and what most servers take where none does.
func TestDialects_ByAddress(t *testing.T) {
	for _, c := range []struct{ base, name, want string }{
		{"https://api.openai.com/v1", "", "openai"},
		{"https://me.openai.azure.com/openai/v1", "", "azure"},
		{"https://openai.azure.com.example/v1", "", "plain"},
		{"https://API.mistral.ai/v1", "", "mistral"},
		{"https://openrouter.ai/api/v1", "", "openrouter"},
		{"http://127.0.0.1:11434/v1", "", "ollama"},
		{"http://localhost:1234/v1", "", "lmstudio"},
		{"http://gpu:8000/v1", "", "vllm"},
		{"http://127.0.0.1:4000/v1", "", "plain"},
		{"http://127.0.0.1:4000/v1", " Mistral ", "mistral"},
		{"http://127.0.0.1:4000/v1", "klingon", `HOLDFAST_OPENAI_DIALECT is "klingon": the known ones are openai, azure, mistral, openrouter, ollama, lmstudio, vllm, plain`},
	} {
		u, err := url.Parse(c.base)
		if err != nil {
			t.Fatal(err)
		}
		d, err := dialectOf(c.name, u)
		got := d.name
		if err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%s, %q: %s, want %s", c.base, c.name, got, c.want)
		}
	}
	if _, err := Resolve(Config{Model: "openai/x", Getenv: env("OPENAI_BASE_URL", "http://127.0.0.1:9/v1", "HOLDFAST_OPENAI_DIALECT", "klingon")}); err == nil {
		t.Error("an unknown dialect is taken")
	}
	if _, err := Resolve(Config{Model: "openai/x", Getenv: env("OPENAI_BASE_URL", "http://127.0.0.1:9/v1", "HOLDFAST_OPENAI_API", "responses", "HOLDFAST_OPENAI_DIALECT", "klingon")}); err == nil {
		t.Error("an unknown dialect is taken where none is needed")
	}
}

// TestDialects_TableIsThatOfTheDocument: each dialect has a row that says what the request has.
func TestDialects_TableIsThatOfTheDocument(t *testing.T) {
	doc, err := os.ReadFile("../../docs/models.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, ok := strings.Cut(string(doc), "## Compatible servers\n")
	if !ok {
		t.Fatal("the document has no such section")
	}
	section, _, _ = strings.Cut(section, "\n## ")
	var got []string
	for line := range strings.Lines(section) {
		if strings.HasPrefix(line, "| `") {
			got = append(got, strings.TrimRight(line, "\n"))
		}
	}
	var want []string
	for _, d := range dialects {
		hosts, limit, usage, ids := "any other", "`max_tokens`", "asked for", "up to 40 characters"
		if len(d.hosts) > 0 {
			hosts = "`" + strings.Join(d.hosts, "`, `") + "`"
		}
		if d.newLimit {
			limit = "`max_completion_tokens`"
		}
		if d.noUsage {
			usage = "not asked for"
		}
		if d.shortIDs {
			ids = "nine letters and digits"
		}
		want = append(want, "| `"+d.name+"` | "+hosts+" | "+limit+" | "+usage+" | "+ids+" |")
	}
	if !slices.Equal(got, want) {
		t.Errorf("the document says\n%s\nthe program\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
