package tools

import (
	"os/user"
	"slices"
	"strings"

	"holdfast/internal/fault"
)

// CommandEnv is the environment for commands: what this process has, without secrets and without our own settings, and with the
// defaults that commands expect when an editor passed next to nothing. drop names the variables that hold secrets.
func CommandEnv(environ []string, drop func(name string) bool) []string {
	var env []string
	has := map[string]bool{}
	for _, kv := range environ {
		name, _, _ := strings.Cut(kv, "=")
		if drop != nil && drop(name) || strings.HasPrefix(name, "HOLDFAST_") {
			continue
		}
		env = append(env, kv)
		has[name] = has[name] || kv != name+"="
	}
	add := func(name, value string) {
		if !has[name] && value != "" {
			env = append(slices.DeleteFunc(env, func(have string) bool { return have == name+"=" }), name+"="+value)
		}
	}
	if u, err := user.Current(); err == nil && !fault.Without("bare_env") {
		add("HOME", u.HomeDir)
		add("USER", u.Username)
		add("LOGNAME", u.Username)
	}
	add("TERM", "dumb")
	add("LANG", "C.UTF-8")
	for _, kv := range []string{"PAGER=cat", "GIT_PAGER=cat", "GIT_TERMINAL_PROMPT=0"} { // nothing may wait for a key
		name, _, _ := strings.Cut(kv, "=")
		env = slices.DeleteFunc(env, func(have string) bool { return strings.HasPrefix(have, name+"=") })
		env = append(env, kv)
	}
	return env
}
