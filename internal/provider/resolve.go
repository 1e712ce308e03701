package provider

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"
	"unicode"

	"holdfast/session"
)

// DefaultModel answers when a key for OpenAI is set and no model is named.
const DefaultModel = "openai/gpt-6-astra"

// maxScript bounds a script file.
const maxScript = 16 << 20

// Config says which model is wanted and where its settings are found.
type Config struct {
	Model     string                   // "openai/NAME", "scripted/FILE", or "" for DefaultModel if its key is there
	Getenv    func(name string) string // OPENAI_API_KEY and OPENAI_BASE_URL; nil means that none is set
	CredKey   []byte                   // key of the credential's hash in the identity; the same for the whole store
	MaxTokens int64                    // output limit of one answer; 0 leaves it to the endpoint
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
	name := strings.TrimSpace(c.Model)
	if name == "" {
		if strings.TrimSpace(c.Getenv("OPENAI_API_KEY")) == "" {
			return nil, &NotConfiguredError{"No model is configured: set OPENAI_API_KEY, or name a model with HOLDFAST_MODEL or --model " +
				"(openai/NAME or scripted/FILE)."}
		}
		name = DefaultModel
	}
	kind, rest, _ := strings.Cut(name, "/")
	switch {
	case kind != "openai" && kind != "scripted":
		return nil, fmt.Errorf("unknown model provider %q: the known ones are openai/NAME and scripted/FILE", clip(oneLine(kind), 60))
	case rest == "":
		return nil, fmt.Errorf("the model %q names no %s", name, map[string]string{"openai": "model", "scripted": "file"}[kind])
	case kind == "scripted":
		return readScript(rest)
	}
	return resolveOpenAI(c, rest)
}

// resolveOpenAI asks for a key unless the endpoint is on this machine.
func resolveOpenAI(c Config, name string) (session.Model, error) {
	base := strings.TrimSpace(c.Getenv("OPENAI_BASE_URL"))
	key := strings.TrimSpace(c.Getenv("OPENAI_API_KEY"))
	u, err := parseBase(base)
	if err != nil {
		return nil, fmt.Errorf("read OPENAI_BASE_URL: %w", err)
	}
	if strings.ContainsFunc(key, func(r rune) bool { return unicode.IsControl(r) || unicode.IsSpace(r) }) {
		return nil, errors.New("OPENAI_API_KEY holds white space or control characters")
	}
	if key == "" && !isLoopback(u) {
		return nil, &NotConfiguredError{fmt.Sprintf("The model openai/%s needs a key: set OPENAI_API_KEY, or OPENAI_BASE_URL to a server on this machine.", name)}
	}
	m, err := NewOpenAI(OpenAIConfig{Model: name, BaseURL: base, Key: key, CredKey: c.CredKey, MaxTokens: c.MaxTokens, Limits: c.Limits, Now: c.Now})
	if err != nil {
		return nil, fmt.Errorf("set up the model openai/%s: %w", name, err)
	}
	return m, nil
}

// readScript names the script by its absolute path, so that another process compares the same thing.
func readScript(path string) (session.Model, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("find the script: %w", err)
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("read the script: %w", err)
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
