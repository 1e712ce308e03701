package provider

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"holdfast/session"
)

func env(pairs ...string) func(string) string {
	return func(name string) string {
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i] == name {
				return pairs[i+1]
			}
		}
		return ""
	}
}

func TestResolve(t *testing.T) {
	// The environment of the process must not matter.
	t.Setenv("OPENAI_API_KEY", "sk-from-the-process")
	t.Setenv("OPENAI_BASE_URL", "http://process.invalid/v1")
	t.Setenv("ANTHROPIC_API_KEY", "sk-ant-from-the-process")
	t.Setenv("ANTHROPIC_BASE_URL", "http://process.invalid")
	file := filepath.Join(t.TempDir(), "demo.json")
	if err := os.WriteFile(file, []byte(`{"rules":[]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	bad := filepath.Join(t.TempDir(), "bad.json")
	if err := os.WriteFile(bad, []byte("{\n\"x\":1}"), 0o600); err != nil {
		t.Fatal(err)
	}
	cred := credential([]byte("store"), testKey)
	cases := []struct {
		name, model string
		env         []string
		want        session.ModelIdentity
		setup       bool   // *NotConfiguredError
		fails       string // part of the error
	}{
		{name: "nothing", setup: true, fails: "OPENAI_API_KEY"},
		{name: "blank key", env: []string{"OPENAI_API_KEY", " "}, setup: true, fails: "OPENAI_API_KEY"},
		{name: "key alone", env: []string{"OPENAI_API_KEY", testKey},
			want: session.ModelIdentity{Provider: "openai", Name: strings.TrimPrefix(DefaultModel, "openai/"), Origin: "https://api.openai.com", Credential: cred}},
		{name: "named model", model: "openai/gpt-x", env: []string{"OPENAI_API_KEY", testKey + "\n"},
			want: session.ModelIdentity{Provider: "openai", Name: "gpt-x", Origin: "https://api.openai.com", Credential: cred}},
		{name: "name with slashes", model: "openai/org/model:7b", env: []string{"OPENAI_API_KEY", testKey, "OPENAI_BASE_URL", "https://Gateway.Example:443/api/v1"},
			want: session.ModelIdentity{Provider: "openai", Name: "org/model:7b", Origin: "https://gateway.example", Credential: cred}},
		{name: "no key", model: "openai/gpt-x", setup: true, fails: "OPENAI_API_KEY"},
		{name: "no key, other host", model: "openai/x", env: []string{"OPENAI_BASE_URL", "http://10.0.0.1:11434/v1"}, setup: true, fails: "OPENAI_API_KEY"},
		{name: "no key, host that only looks local", model: "openai/x", env: []string{"OPENAI_BASE_URL", "http://localhost.example/v1"}, setup: true, fails: "OPENAI_API_KEY"},
		{name: "no key, localhost", model: "openai/llama", env: []string{"OPENAI_BASE_URL", "http://localhost:11434/v1"},
			want: session.ModelIdentity{Provider: "openai", Name: "llama", Origin: "http://localhost:11434"}},
		{name: "no key, IPv4", model: "openai/llama", env: []string{"OPENAI_BASE_URL", "http://127.0.0.2:80/v1"},
			want: session.ModelIdentity{Provider: "openai", Name: "llama", Origin: "http://127.0.0.2"}},
		{name: "no key, IPv6", model: "openai/llama", env: []string{"OPENAI_BASE_URL", "http://[::1]:8080/v1"},
			want: session.ModelIdentity{Provider: "openai", Name: "llama", Origin: "http://[::1]:8080"}},
		{name: "base URL with password", model: "openai/x", env: []string{"OPENAI_API_KEY", testKey, "OPENAI_BASE_URL", "https://u:hunter2@h/v1"}, fails: "no user"},
		{name: "base URL that is a path", model: "openai/x", env: []string{"OPENAI_API_KEY", testKey, "OPENAI_BASE_URL", "/v1"}, fails: "not an http"},
		{name: "base URL that is nonsense", model: "openai/x", env: []string{"OPENAI_API_KEY", testKey, "OPENAI_BASE_URL", "http://u:hunter2@[/"}, fails: "parsed"},
		{name: "key with a line break", model: "openai/x", env: []string{"OPENAI_API_KEY", "sk-a\nb" + testKey}, fails: "white space"},
		{name: "no name", model: "openai/", env: []string{"OPENAI_API_KEY", testKey}, fails: "names no model"},
		{name: "no slash", model: "openai", fails: "names no model"},
		{name: "unknown provider", model: "acme/x", fails: `"acme": the known ones are openai/NAME, anthropic/NAME and scripted/FILE`},
		{name: "no provider", model: "gpt-x", fails: `--model is "gpt-x"; write PROVIDER/NAME, for example openai/gpt-x`},
		{name: "no provider in the environment", model: "claude-x", env: []string{"HOLDFAST_MODEL", "claude-x"},
			fails: `HOLDFAST_MODEL is "claude-x"; write PROVIDER/NAME, for example anthropic/claude-x`},
		{name: "a script without its provider", model: "demo.json", fails: "scripted/demo.json"},
		{name: "case of the provider", model: "OpenAI/GPT-x", env: []string{"OPENAI_API_KEY", testKey},
			want: session.ModelIdentity{Provider: "openai", Name: "GPT-x", Origin: "https://api.openai.com", Credential: cred}},
		{name: "both keys", env: []string{"OPENAI_API_KEY", testKey, "ANTHROPIC_API_KEY", "sk-ant-other"},
			want: session.ModelIdentity{Provider: "openai", Name: strings.TrimPrefix(DefaultModel, "openai/"), Origin: "https://api.openai.com", Credential: cred}},
		{name: "Anthropic key alone", env: []string{"ANTHROPIC_API_KEY", testKey},
			want: session.ModelIdentity{Provider: "anthropic", Name: strings.TrimPrefix(DefaultAnthropic, "anthropic/"), Origin: "https://api.anthropic.com", Credential: cred}},
		{name: "Anthropic model", model: "anthropic/claude-x", env: []string{"ANTHROPIC_API_KEY", testKey, "ANTHROPIC_BASE_URL", "https://Gateway.Example:443/anthropic"},
			want: session.ModelIdentity{Provider: "anthropic", Name: "claude-x", Origin: "https://gateway.example", Credential: cred}},
		{name: "Anthropic without key", model: "anthropic/claude-x", env: []string{"OPENAI_API_KEY", testKey}, setup: true, fails: "ANTHROPIC_API_KEY"},
		{name: "Anthropic without key, other host", model: "anthropic/x", env: []string{"ANTHROPIC_BASE_URL", "http://10.0.0.1"}, setup: true, fails: "ANTHROPIC_API_KEY"},
		{name: "Anthropic without key, loopback", model: "anthropic/x", env: []string{"ANTHROPIC_BASE_URL", "http://127.0.0.1:9"},
			want: session.ModelIdentity{Provider: "anthropic", Name: "x", Origin: "http://127.0.0.1:9"}},
		{name: "Anthropic base URL with password", model: "anthropic/x", env: []string{"ANTHROPIC_API_KEY", testKey, "ANTHROPIC_BASE_URL", "https://u:hunter2@h"}, fails: "read ANTHROPIC_BASE_URL: the base URL must have no user"},
		{name: "Anthropic key with a line break", model: "anthropic/x", env: []string{"ANTHROPIC_API_KEY", "sk-a\nb" + testKey}, fails: "ANTHROPIC_API_KEY holds white space"},
		{name: "Anthropic without name", model: "anthropic/", env: []string{"ANTHROPIC_API_KEY", testKey}, fails: "names no model"},
		{name: "limit", model: "anthropic/x", env: []string{"ANTHROPIC_BASE_URL", "http://127.0.0.1:9", "HOLDFAST_MAX_TOKENS", "8k"}, fails: "a whole number"},
		{name: "script", model: "scripted/" + file, want: session.ModelIdentity{Provider: "scripted", Name: file, Scripted: true}},
		{name: "script without file", model: "scripted/", fails: "names no file"},
		{name: "missing script", model: "scripted/" + file + ".none", fails: "there is no script"},
		{name: "folder", model: "scripted/" + filepath.Dir(file), fails: "not a regular file"},
		{name: "bad script", model: "scripted/" + bad, fails: `line 2: unknown member "x"`},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			m, err := Resolve(Config{Model: c.model, Getenv: env(c.env...), CredKey: []byte("store")})
			if c.fails != "" {
				var setup *NotConfiguredError
				if err == nil || m != nil || !strings.Contains(err.Error(), c.fails) || errors.As(err, &setup) != c.setup {
					t.Fatalf("got %v, error %v", m, err)
				}
				for _, secret := range []string{testKey, "hunter2"} {
					if strings.Contains(err.Error(), secret) {
						t.Errorf("a secret is in %q", err)
					}
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if c.want.Provider == "openai" {
				c.want.API = "chat"
			}
			if got := m.Identity(); got != c.want {
				t.Errorf("got  %+v\nwant %+v", got, c.want)
			}
		})
	}
}

// TestResolve_RelativeScript: the identity names the same file from any folder.
func TestResolve_RelativeScript(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.WriteFile("s.json", []byte(`{"rules":[]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	m, err := Resolve(Config{Model: "scripted/s.json"})
	if err != nil || !filepath.IsAbs(m.Identity().Name) {
		t.Errorf("got %v, error %v", m, err)
	}
}

func TestResolve_CredentialNeedsKey(t *testing.T) {
	if _, err := Resolve(Config{Model: "openai/x", Getenv: env("OPENAI_API_KEY", testKey)}); err == nil || strings.Contains(err.Error(), testKey) {
		t.Errorf("got %v", err)
	}
}

func TestResolve_MaxTokens(t *testing.T) {
	for text, want := range map[string]int64{"": anthropicMaxTokens, " 8192 ": 8192} {
		m, err := Resolve(Config{Model: "anthropic/x", Getenv: env("ANTHROPIC_BASE_URL", "http://127.0.0.1:9", "HOLDFAST_MAX_TOKENS", text)})
		if err != nil {
			t.Fatal(err)
		}
		if got := m.(*Anthropic).config.MaxTokens; got != want {
			t.Errorf("%q gives %d", text, got)
		}
	}
}

// TestResolve_OpenAIWire: the older wire is spoken unless somebody asks for the newer one.
func TestResolve_OpenAIWire(t *testing.T) {
	for _, c := range []struct{ base, wish, want string }{
		{"", "", "*provider.OpenAI"},
		{"", "responses", "*provider.Responses"},
		{"https://api.openai.com.example/v1", "", "*provider.OpenAI"},
		{"http://127.0.0.1:11434/v1", "", "*provider.OpenAI"},
		{"", "chat", "*provider.OpenAI"},
		{"http://127.0.0.1:11434/v1", " Responses ", "*provider.Responses"},
		{"", "assistants", `HOLDFAST_OPENAI_API is "assistants": chat or responses is expected`},
	} {
		m, err := Resolve(Config{Model: "openai/x", CredKey: []byte("k"), Getenv: env("OPENAI_API_KEY", testKey, "OPENAI_BASE_URL", c.base, "HOLDFAST_OPENAI_API", c.wish)})
		got := fmt.Sprintf("%T", m)
		if err != nil {
			got = err.Error()
		} else if api := m.Identity().API; api != cmp.Or(strings.ToLower(strings.TrimSpace(c.wish)), "chat") {
			t.Errorf("%q, %q: the identity has %q", c.base, c.wish, api)
		}
		if got != c.want {
			t.Errorf("%q, %q: %s, want %s", c.base, c.wish, got, c.want)
		}
	}
}

func TestCredential(t *testing.T) {
	a := credential([]byte("k1"), "secret")
	if len(a) != 16 || a == credential([]byte("k2"), "secret") || a == credential([]byte("k1"), "secret2") || a != credential([]byte("k1"), "secret") {
		t.Errorf("got %q", a)
	}
	if credential([]byte("k1"), "") != "" {
		t.Error("no credential has a hash")
	}
}

func TestSecretEnv(t *testing.T) {
	for name, want := range map[string]bool{
		"OPENAI_API_KEY": true, "OPENAI_API_KEY_2": true, "openai_api_key": true, "OPENAI_ADMIN_KEY": true, "ANTHROPIC_API_KEY": true,
		"ANTHROPIC_AUTH_TOKEN": true, "ANTHROPIC_BASE_URL": false, "CLAUDE_CODE_OAUTH_TOKEN": true, "GEMINI_API_KEY": true, "GOOGLE_API_KEY": true, "MISTRAL_API_KEY": true,
		"GROQ_API_KEY": true, "DEEPSEEK_API_KEY": true, "OPENROUTER_API_KEY": true, "XAI_API_KEY": true, "HF_TOKEN": true,
		"HUGGING_FACE_HUB_TOKEN": true, "REPLICATE_API_TOKEN": true, "AZURE_OPENAI_API_KEY": true, "TOGETHER_API_KEY": true, "AI21_API_KEY": true,
		"OPENAI_BASE_URL": false, "OPENAI_MODEL": false, "GITHUB_TOKEN": false, "AWS_SECRET_ACCESS_KEY": false, "NPM_TOKEN": false, "PATH": false,
		"GOOGLE_APPLICATION_CREDENTIALS": false, "OPENAIX_API_KEY": false, "MY_KEY": false, "": false, "HOLDFAST_HOME": false, "SSH_AUTH_SOCK": false,
	} {
		if got := SecretEnv(name); got != want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// FuzzComplaint: whatever an endpoint sends, the message is one short line without the key.
func FuzzComplaint(f *testing.F) {
	f.Add([]byte(`{"error":{"message":"bad key `+testKey+`","code":429}}`), 500)
	f.Add([]byte("<html>"), 502)
	f.Add([]byte(`{"error":null,"detail":[1]}`), 422)
	f.Add([]byte(`{"message":"`+strings.Repeat("é\\n", 400)+testKey+`"}`), 400)
	m, err := NewOpenAI(OpenAIConfig{Model: "x", Key: testKey, CredKey: []byte("k")})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, body []byte, status int) {
		for _, me := range []*session.ModelError{m.event(body), m.page(body), {Message: m.safe(string(body)) + "."}} {
			if me.Kind == "" && me.Status != 0 || me.Status >= 400 {
				t.Errorf("kind %q, status %d", me.Kind, me.Status)
			}
			if strings.Contains(me.Message, testKey) || strings.ContainsAny(me.Message, "\n\r") || len([]rune(me.Message)) > maxMessage+1 || me.Message == "" {
				t.Errorf("message %q", me.Message)
			}
			if _, err := json.Marshal(me.Message); err != nil {
				t.Error(err)
			}
		}
		if c, ok := readComplaint(body); ok {
			_ = c.lasting(status) // must not panic
		}
	})
}
