package config

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Describe says in lines what a file sets, for a person who has to decide about it. What the file says is quoted where it could pass for
// something else; values of secrets are left out, and args hides what may be one in arguments.
func (f File) Describe(args func([]string) []string) (lines []string) {
	for _, name := range slices.Sorted(maps.Keys(f.Config.MCP.Servers)) {
		lines = append(lines, f.Config.MCP.Servers[name].describe(name, args))
	}
	for _, r := range f.Config.Permissions.Rules {
		lines = append(lines, "in this project it "+r.describe())
	}
	for _, v := range f.Values {
		if strings.HasPrefix(v.Key.Path, "mcp.servers.") || strings.HasPrefix(v.Key.Path, "permissions.rules[]") {
			continue
		}
		lines = append(lines, v.Path+" = "+literal(hide(v, Given{Args: args})))
	}
	return lines
}

func (s Server) describe(name string, args func([]string) []string) string {
	if s.Disabled {
		return fmt.Sprintf("the MCP server %q is switched off", name)
	}
	words := []string{quoted(s.Command)}
	for _, a := range args(s.Args) {
		words = append(words, quoted(a))
	}
	line := fmt.Sprintf("starts the MCP server %q: %s", name, strings.Join(words, " "))
	if len(s.Env) > 0 {
		line += "; with variables " + names(slices.Sorted(maps.Keys(s.Env)))
	}
	if len(s.EnvFrom) > 0 {
		line += "; it asks for your " + names(s.EnvFrom) + ", of which it gets no key of a model's provider"
	}
	return line
}

func names(list []string) string {
	out := make([]string, len(list))
	for i, n := range list {
		out[i] = quoted(n)
	}
	return strings.Join(out, ", ")
}

// quoted leaves a plain word as it is; everything else is quoted with what does not print escaped.
func quoted(word string) string {
	if word != "" && strings.IndexFunc(word, func(r rune) bool {
		return r > '~' || r <= ' ' || strings.ContainsRune("\"'`\\$;&|<>()*?[]{}!#", r)
	}) < 0 {
		return word
	}
	return strconv.QuoteToASCII(word)
}

func literal(v any) string {
	switch x := v.(type) {
	case string:
		return strconv.QuoteToASCII(x)
	case []string:
		out := make([]string, len(x))
		for i, s := range x {
			out[i] = strconv.QuoteToASCII(s)
		}
		return "[" + strings.Join(out, ", ") + "]"
	case map[string]string:
		var out []string
		for _, name := range slices.Sorted(maps.Keys(x)) {
			out = append(out, quoted(name)+" = "+strconv.QuoteToASCII(x[name]))
		}
		return "{ " + strings.Join(out, ", ") + " }"
	}
	return fmt.Sprint(v)
}
