package main

import (
	"cmp"
	"fmt"
	"strconv"

	"holdfast/internal/config"
	"holdfast/internal/provider"
	"holdfast/session"
)

// modelConfig says which model is wanted and where: by the flag or the variable (name holds either), else by the user's configuration.
// A configuration that cannot be read and may say where the model is asked is an error: a key must not go anywhere else.
func modelConfig(home, name string, key []byte) (provider.Config, error) {
	path := config.Path(home, userHome())
	c, err := config.Load(path)
	if err != nil {
		if config.Mentions(path, "model") {
			return provider.Config{}, &provider.NotConfiguredError{Message: fmt.Sprintf("The configuration may say which model to ask, and cannot be used: %v.", err)}
		}
		c = config.Config{}
	}
	set := map[string]string{"OPENAI_BASE_URL": c.Model.OpenAIBaseURL, "ANTHROPIC_BASE_URL": c.Model.AnthropicBaseURL}
	if c.Model.MaxTokens > 0 {
		set["HOLDFAST_MAX_TOKENS"] = strconv.FormatInt(c.Model.MaxTokens, 10)
	}
	getenv := func(name string) string { return cmp.Or(secretsOf(home).getenv(name), set[name]) }
	return provider.Config{Model: cmp.Or(name, c.Model.Name), Getenv: getenv, CredKey: key}, nil
}

// modelLimits says what is known of a model's limits.
func modelLimits(c config.Config) func(session.ModelIdentity) (window, output int64, known bool) {
	return func(session.ModelIdentity) (int64, int64, bool) {
		return c.Model.ContextTokens, c.Model.OutputTokens, c.Model.ContextTokens > 0
	}
}

// scripted tells whether the model will play a script, which every surface says.
func scripted(home, name string) bool {
	if home == "" { // there is no state directory, and no configuration of the user
		return provider.IsScripted(name)
	}
	c, err := modelConfig(home, name, nil)
	return err == nil && provider.IsScripted(c.Model)
}
