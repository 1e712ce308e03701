package provider

import (
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"
)

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
