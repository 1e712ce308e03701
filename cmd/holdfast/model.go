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
	f, err := userFile(home)
	if err != nil {
		if config.Mentions(path, "model") {
			return provider.Config{}, &provider.NotConfiguredError{Message: fmt.Sprintf("The configuration may say which model to ask, and cannot be used: %v.", err)}
		}
	}
	c := f.Config // empty after an error
	set := map[string]string{"OPENAI_BASE_URL": c.Model.OpenAIBaseURL, "HOLDFAST_OPENAI_API": c.Model.OpenAIAPI,
		"HOLDFAST_OPENAI_DIALECT": c.Model.OpenAIDialect, "HOLDFAST_REASONING_EFFORT": c.Model.ReasoningEffort, "ANTHROPIC_BASE_URL": c.Model.AnthropicBaseURL}
	if c.Model.MaxTokens > 0 {
		set["HOLDFAST_MAX_TOKENS"] = strconv.FormatInt(c.Model.MaxTokens, 10)
	}
	getenv := func(name string) string { return cmp.Or(secretsOf(home).getenv(name), set[name]) }
	return provider.Config{Model: cmp.Or(name, c.Model.Name), Getenv: getenv, CredKey: key, Catalogue: knownModels(f)}, nil
}

// modelLimits says what is known of a model's limits: by the catalogue and the user's figures of models. An answer takes what it was limited
// to, or else far less than a model may answer at most.
func modelLimits(home string) func(session.ModelIdentity) (window, output int64, known bool) {
	f, _ := userFile(home) // of one that cannot be used nothing counts
	models, most := knownModels(f), answerMost(home)
	return func(id session.ModelIdentity) (window, output int64, known bool) {
		e, _ := models.Find(id.Provider, id.Name)
		return e.Context.Value, most, e.Context.Known()
	}
}

// answerMost is how many tokens an answer is limited to, by the environment or the configuration; 0 when it is not.
func answerMost(home string) int64 {
	conf, err := modelConfig(home, "", nil)
	if err != nil {
		return 0
	}
	n, _ := strconv.ParseInt(conf.Getenv("HOLDFAST_MAX_TOKENS"), 10, 64) // what is no number is refused where a model is made
	return max(n, 0)
}

// scripted tells whether the model will play a script, which every surface says.
func scripted(home, name string) bool {
	if home == "" { // there is no state directory, and no configuration of the user
		return provider.IsScripted(name)
	}
	c, err := modelConfig(home, name, nil)
	return err == nil && provider.IsScripted(c.Model)
}
