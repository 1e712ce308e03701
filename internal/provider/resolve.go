package provider

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/anthropics/anthropic-sdk-go/v2"

	"holdfast/internal/catalogue"
	"holdfast/session"
)

// DefaultModel answers when a key for OpenAI is set and no model is named, and DefaultAnthropic when only a key for Anthropic is.
const (
	DefaultModel     = "openai/gpt-6-astra"
	DefaultAnthropic = "anthropic/" + anthropic.ModelClaudeOpus5_5
)

// maxScript bounds a script file.
const maxScript = 16 << 20

// Config says which model is wanted and where its settings are found.
type Config struct {
	Model     string                   // "openai/NAME", "anthropic/NAME", "scripted/FILE", or "" for the default of the key that is set
	Getenv    func(name string) string // OPENAI_ and ANTHROPIC_, API_KEY and BASE_URL, ANTHROPIC_AUTH_TOKEN, HOLDFAST_OPENAI_API, HOLDFAST_OPENAI_DIALECT, HOLDFAST_MAX_TOKENS, HOLDFAST_REASONING_EFFORT, HOLDFAST_IMAGES; nil means that none is set
	CredKey   []byte                   // key of the credential's hash in the identity; the same for the whole store
	Chosen    bool                     // the model is a session's own: what was set for another one does not keep it from being asked
	MaxTokens int64                    // output limit of one answer; 0 means the provider's default
	Catalogue *catalogue.Catalogue     // what is known of models; nil means what is built in
	Limits    Limits
	Now       func() time.Time // nil means time.Now
}

// NotConfiguredError: there is no model to ask, or no key for it. The one sentence says what to set.
type NotConfiguredError struct{ Message string }

func (e *NotConfiguredError) Error() string { return e.Message }

// Resolve makes the model that a configuration names. It reads a script's file, and makes no network request.
func Resolve(c Config) (session.Model, error) {
	if c.Getenv == nil {
		c.Getenv = func(string) string { return "" }
	}
	if text := strings.TrimSpace(c.Getenv("HOLDFAST_MAX_TOKENS")); text != "" && c.MaxTokens == 0 {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n < 1 {
			return nil, fmt.Errorf("HOLDFAST_MAX_TOKENS is %q: a whole number above 0 is expected", clip(oneLine(text), 60))
		}
		c.MaxTokens = n
	}
	name := strings.TrimSpace(c.Model)
	if name == "" {
		switch {
		case isSet(c, "OPENAI_API_KEY"):
			name = DefaultModel
		case isSet(c, "ANTHROPIC_API_KEY"), isSet(c, "ANTHROPIC_AUTH_TOKEN"):
			name = DefaultAnthropic
		default:
			return nil, &NotConfiguredError{"No model is configured: run 'holdfast setup' in a terminal, set OPENAI_API_KEY or ANTHROPIC_API_KEY, or name a model with HOLDFAST_MODEL " +
				"or --model (openai/NAME, anthropic/NAME or scripted/FILE)."}
		}
	}
	kind, rest, slash := strings.Cut(name, "/")
	kind = strings.ToLower(kind)
	if names[kind] == "" && !slash {
		return nil, fmt.Errorf("%s is %q; write PROVIDER/NAME, for example %s", c.source(), clip(oneLine(name), 60), example(oneLine(name)))
	}
	if names[kind] == "" {
		return nil, fmt.Errorf("unknown model provider %q: the known ones are openai/NAME, anthropic/NAME and scripted/FILE", clip(oneLine(kind), 60))
	}
	if rest == "" {
		return nil, fmt.Errorf("the model %q names no %s", name, names[kind])
	}
	switch kind {
	case "scripted":
		return readScript(rest)
	case "anthropic":
		return resolveEndpoint(c, kind, rest, "ANTHROPIC", anthropicBase, func(c EndpointConfig) (session.Model, error) { return NewAnthropic(c) })
	}
	wire, err := openAIWire(c.Getenv("HOLDFAST_OPENAI_API"), c.Getenv("HOLDFAST_OPENAI_DIALECT"))
	if err != nil {
		return nil, err
	}
	return resolveEndpoint(c, kind, rest, "OPENAI", openAIBase, wire)
}

// APIs are the wires of OpenAI. The older one is spoken by everything that calls itself compatible, and is asked unless the newer one is wanted.
var APIs = []string{"chat", "responses"}

// openAIWire chooses between the two wires of OpenAI.
func openAIWire(wish, dialect string) (func(EndpointConfig) (session.Model, error), error) {
	if _, err := dialectOf(dialect, &url.URL{}); err != nil { // also when the wire chosen has no dialects: a wrong name is never silent
		return nil, err
	}
	switch strings.ToLower(strings.TrimSpace(wish)) {
	case "", "chat":
		return func(c EndpointConfig) (session.Model, error) {
			c.Dialect = dialect
			return NewOpenAI(c)
		}, nil
	case "responses":
		return func(c EndpointConfig) (session.Model, error) {
			c.Dialect = dialect
			return NewResponses(c)
		}, nil
	}
	return nil, fmt.Errorf("HOLDFAST_OPENAI_API is %q: %s is expected", clip(oneLine(wish), 60), strings.Join(APIs, " or "))
}

// Check is Resolve for those who only want to know whether a model is configured, without a store. The identity's credential means nothing.
func Check(c Config) (session.ModelIdentity, error) {
	c.CredKey = []byte("check")
	m, err := Resolve(c)
	if err != nil {
		return session.ModelIdentity{}, err
	}
	id := m.Identity()
	id.Credential = ""
	return id, nil
}

// source is where the model's name comes from.
func (c Config) source() string {
	if c.Model == c.Getenv("HOLDFAST_MODEL") {
		return "HOLDFAST_MODEL"
	}
	return "--model"
}

// example is the likely whole name of a model that was named without its provider.
func example(name string) string {
	switch {
	case strings.HasPrefix(strings.ToLower(name), "claude"):
		return "anthropic/" + clip(name, 60)
	case strings.HasSuffix(strings.ToLower(name), ".json"):
		return "scripted/" + clip(name, 60)
	}
	return "openai/" + clip(name, 60)
}

// IsScripted tells whether a name means a script.
func IsScripted(name string) bool {
	kind, _, _ := strings.Cut(strings.TrimSpace(name), "/")
	return strings.EqualFold(kind, "scripted")
}

// names says what follows the slash behind each known provider.
var names = map[string]string{"openai": "model", "anthropic": "model", "scripted": "file"}

func isSet(c Config, name string) bool { return strings.TrimSpace(c.Getenv(name)) != "" }

// resolveEndpoint asks for a key unless the endpoint is on this machine. owner begins the names of the provider's variables.
func resolveEndpoint(c Config, kind, name, owner, base string, open func(EndpointConfig) (session.Model, error)) (session.Model, error) {
	at, err := reach(c, owner, base, "model "+kind+"/"+name)
	if err != nil {
		return nil, err
	}
	known, _ := c.known().Find(kind, name)
	blind, err := textOnly(known, c.Getenv("HOLDFAST_IMAGES"))
	if err != nil {
		return nil, err
	}
	thinks := effortOf(kind, name, known)
	if err := thinks.take("HOLDFAST_REASONING_EFFORT", c.Getenv("HOLDFAST_REASONING_EFFORT")); err != nil && !c.Chosen {
		return nil, err
	}
	m, err := open(EndpointConfig{Model: name, effort: thinks, BaseURL: at.base, Key: at.key, Token: at.token, CredKey: c.CredKey, MaxTokens: c.MaxTokens, TextOnly: blind, Limits: c.Limits, Now: c.Now})
	if err != nil {
		return nil, fmt.Errorf("set up the model %s/%s: %w", kind, name, err)
	}
	return m, nil
}

// access is where a provider is asked, and with what.
type access struct {
	base, key string
	token     bool // the key is a token, for who wants one
}

// reach finds the access to a provider. what needs it is for the error. A token goes before a key: who set one has a gateway that wants it, and
// the key that is kept is for the provider itself.
func reach(c Config, owner, base, what string) (access, error) {
	a := access{base: base}
	variable := owner + "_API_KEY"
	if owner == "ANTHROPIC" && isSet(c, "ANTHROPIC_AUTH_TOKEN") {
		variable, a.token = "ANTHROPIC_AUTH_TOKEN", true
	}
	a.key = strings.TrimSpace(c.Getenv(variable))
	if own := strings.TrimSpace(c.Getenv(owner + "_BASE_URL")); own != "" {
		a.base = own
	}
	u, err := parseBase(a.base)
	if err != nil {
		return access{}, fmt.Errorf("read %s_BASE_URL: %w", owner, err)
	}
	if strings.ContainsFunc(a.key, func(r rune) bool { return unicode.IsControl(r) || unicode.IsSpace(r) }) {
		return access{}, fmt.Errorf("%s holds white space or control characters", variable)
	}
	if a.key == "" && !isLoopback(u) {
		return access{}, &NotConfiguredError{fmt.Sprintf("The %s needs a key: run 'holdfast setup' in a terminal, set %s_API_KEY, or %s_BASE_URL to a server on this machine.",
			what, owner, owner)}
	}
	return a, nil
}

// known is the catalogue that counts.
func (c Config) known() *catalogue.Catalogue {
	if c.Catalogue == nil {
		return catalogue.Embedded()
	}
	return c.Catalogue
}

// readScript names the script by its absolute path, so that another process compares the same thing.
func readScript(path string) (session.Model, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("find the script: %w", err)
	}
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("there is no script %s", path)
	} else if err != nil {
		return nil, fmt.Errorf("the script %s cannot be read", path)
	}
	if !info.Mode().IsRegular() { // opening a pipe would wait for its writer
		return nil, fmt.Errorf("read the script: %s is not a regular file", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read the script: %w", err)
	}
	defer func() { _ = f.Close() }()
	data, err := io.ReadAll(io.LimitReader(f, maxScript+1))
	if err != nil {
		return nil, fmt.Errorf("read the script: %w", err)
	}
	if len(data) > maxScript {
		return nil, fmt.Errorf("read the script: %s is larger than %d bytes", path, maxScript)
	}
	m, err := NewScripted(path, data)
	if err != nil {
		return nil, err
	}
	return m, nil
}
