package session

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Variable is one variable of an environment as it is stored. One that may hold a secret has a keyed hash in place of its value.
type Variable struct {
	Name  string `json:"name"`
	Value string `json:"value,omitempty"`
	Hash  string `json:"hash,omitempty"`
}

// Hide leaves a value out that holds a secret whose variable does not say so: no command of any process gets a mask for it.
func (v *Variable) Hide(text func(string) string) {
	if v.Value != "" && text(v.Value) != v.Value {
		v.Value, v.Hash = "", hiddenValue
	}
}

// hiddenValue is the hash of no value, so that the variable is given by the process alone that has it.
const hiddenValue = "hidden"

// Environment is what the commands of a client get, named by its digest.
type Environment struct {
	Digest string
	Vars   []Variable
}

// NewEnvironment names variables by their digest. Their order makes no difference.
func NewEnvironment(vars []Variable) Environment {
	slices.SortFunc(vars, func(a, b Variable) int { return cmp.Compare(a.Name, b.Name) })
	var parts []string
	for _, v := range vars {
		parts = append(parts, v.Name, v.Value, v.Hash)
	}
	return Environment{Digest: Digest(parts...), Vars: vars}
}

// list is the environment for a command. A secret comes from own, the environment of this process, and only when it is the same one.
func (env Environment) list(ours Environment, own []string) []string {
	var out []string
	for _, v := range env.Vars {
		if v.Hash == "" {
			out = append(out, v.Name+"="+v.Value)
			continue
		}
		if !slices.Contains(ours.Vars, v) {
			continue
		}
		for _, kv := range own {
			if strings.HasPrefix(kv, v.Name+"=") {
				out = append(out, kv)
			}
		}
	}
	return out
}

// CommandEnv is the environment for the commands and probes of a run: that of the client it came from, whichever process runs them.
func (e *Engine) CommandEnv(tx Tx, p Profile) ([]string, error) {
	if p.Env == "" || p.Env == e.Environment.Digest {
		return e.Env, nil
	}
	env, err := tx.Environment(p.Env)
	if err != nil {
		return nil, fmt.Errorf("load the environment of the work: %w", err)
	}
	return env.list(e.Environment, e.Env), nil
}
