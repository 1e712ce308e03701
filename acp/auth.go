package acp

import v1 "holdfast/acp/v1"

// Ways to sign in.
const (
	authEnvironment = "environment"
	authSetup       = "setup"
)

// authMethods lists the ways to sign in. The first one always works once there is a key: some clients sign in with it unasked. The terminal
// one is for clients that can run this program in a terminal; they append its arguments to the launch line.
func authMethods(terminal bool) []v1.AuthMethod {
	methods := []v1.AuthMethod{{Agent: &v1.AuthMethodAgent{ID: authEnvironment, Name: "Environment",
		Description: new("Run 'holdfast setup' once in a terminal, or set OPENAI_API_KEY or ANTHROPIC_API_KEY (and OPENAI_BASE_URL or ANTHROPIC_BASE_URL " +
			"for a compatible endpoint) in the agent's environment")}}}
	if terminal {
		methods = append(methods, v1.AuthMethod{Terminal: &v1.AuthMethodTerminal{ID: authSetup, Name: "Set up a key",
			Description: new("Asks for the key of a model provider and keeps it in the system's keyring or a private file"), Args: []string{"--setup"}}})
	}
	return methods
}
