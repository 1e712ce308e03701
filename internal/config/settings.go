package config

import (
	"maps"
	"slices"
	"strings"
)

// Where a value comes from.
const (
	FromDefault = "default"
	FromUser    = "user"
	FromProject = "project"
	FromEnv     = "environment"
	FromFlag    = "flag"
)

// Origin says where a value comes from.
type Origin struct {
	From string `json:"from"`
	File string `json:"file"` // of user and project
	Line int    `json:"line"`
	Name string `json:"name"` // of a variable or flag
}

// Setting is one value that counts.
type Setting struct {
	Path   string `json:"key"`
	Value  any    `json:"value"` // null when the default is no value
	Unit   string `json:"unit"`
	Origin Origin `json:"origin"`
	Note   string `json:"note"` // what else was set and does not count
	// Default describes the default; it is the value when nothing was set.
	Default string `json:"default"`
}

// masked stands for a value that may be a secret.
const masked = "***"

// Merge is the configuration that counts in a directory: the user's, and of a trusted project's what its keys allow.
func Merge(user, project File) Config {
	c := user.Config
	if !project.Exists {
		return c
	}
	c.MCP.Servers = maps.Clone(user.Config.MCP.Servers)
	for name, s := range project.Config.MCP.Servers {
		if _, taken := c.MCP.Servers[name]; taken {
			continue
		}
		if c.MCP.Servers == nil {
			c.MCP.Servers = map[string]Server{}
		}
		c.MCP.Servers[name] = s
	}
	c.Instructions.Disabled = narrowed("instructions.disabled", user, project, c.Instructions.Disabled)
	c.Instructions.MaxKiB = narrowed("instructions.max_kib", user, project, c.Instructions.MaxKiB)
	return c
}

// narrowed is the narrower of two values of a key, or what the user has when the project sets none.
func narrowed[T any](path string, user, project File, now T) T {
	p, ok := project.value(path)
	if !ok {
		return now
	}
	u, set := user.value(path)
	if !set {
		return p.Key.Narrow(nil, p.V).(T)
	}
	return p.Key.Narrow(u.V, p.V).(T)
}

func (f File) value(path string) (Value, bool) {
	i := slices.IndexFunc(f.Values, func(v Value) bool { return v.Path == path })
	if i < 0 {
		return Value{}, false
	}
	return f.Values[i], true
}

// Collisions names the servers that a project defines and the user has already.
func Collisions(user, project File) (names []string) {
	for name := range project.Config.MCP.Servers {
		if _, taken := user.Config.MCP.Servers[name]; taken {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// Given is what overrules files.
type Given struct {
	Getenv func(string) (string, bool)
	Flags  map[string]string // by name, with the dashes; only those that were given
	// Args hides what may be a secret in the arguments of a server.
	Args func([]string) []string
}

// Settings lists every value that counts, with where it comes from. Values that may be secrets are hidden.
func Settings(user, project File, g Given) (out []Setting) {
	for i := range keys {
		k := &keys[i]
		if strings.ContainsAny(k.Path, "*[") {
			out = append(out, named(k, user, project, g)...)
			continue
		}
		s := Setting{Path: k.Path, Unit: k.Unit, Default: k.Default, Origin: Origin{From: FromDefault}}
		u, set := user.value(k.Path)
		if set {
			s.Value, s.Origin = u.V, origin(FromUser, user, u)
		}
		if p, ok := project.value(k.Path); ok && k.Project == Narrower {
			var before any
			if set {
				before = u.V
			}
			if n := k.Narrow(before, p.V); n == p.V && (!set || n != u.V) {
				s.Value, s.Origin = n, origin(FromProject, project, p)
			} else {
				s.Note = "the project's value is not narrower and does not count"
			}
		}
		overrule(&s, k, g)
		out = append(out, s)
	}
	return out
}

func origin(from string, f File, v Value) Origin {
	return Origin{From: from, File: f.Path, Line: v.Line}
}

// overrule takes a variable, then a flag.
func overrule(s *Setting, k *Key, g Given) {
	if v, ok := g.Getenv(k.Env); ok && k.Env != "" && strings.TrimSpace(v) != "" {
		if k.AddsTo && s.Value != nil {
			s.Note = k.Env + " adds " + v
		} else {
			s.Value, s.Origin = v, Origin{From: FromEnv, Name: k.Env}
		}
	}
	if v, ok := g.Flags[k.Flag]; ok && k.Flag != "" {
		s.Value, s.Origin = v, Origin{From: FromFlag, Name: k.Flag}
	}
	if k.Secret && s.Value != nil {
		s.Value = masked
	}
}

// named lists the values of a key whose path holds a name, each under its own.
func named(k *Key, user, project File, g Given) (out []Setting) {
	for _, v := range user.Values {
		if v.Key == k {
			out = append(out, Setting{Path: v.Path, Unit: k.Unit, Value: hide(v, g), Default: k.Default, Origin: origin(FromUser, user, v)})
		}
	}
	for _, v := range project.Values {
		if v.Key != k {
			continue
		}
		s := Setting{Path: v.Path, Unit: k.Unit, Value: hide(v, g), Default: k.Default, Origin: origin(FromProject, project, v)}
		if k.Project == Adds && strings.Contains(k.Path, "*") && user.holds(v.seg) {
			s.Note = "your own " + dotted(v.seg[:len(v.seg)-1]) + " counts instead"
		}
		out = append(out, s)
	}
	return out
}

// holds tells whether a file defines the table that a value lies in.
func (f File) holds(seg []string) bool {
	table := seg[:len(seg)-1]
	return slices.ContainsFunc(f.Values, func(v Value) bool { return len(v.seg) == len(seg) && slices.Equal(v.seg[:len(v.seg)-1], table) })
}

// hide is a value as it may be shown.
func hide(v Value, g Given) any {
	switch x := v.V.(type) {
	case map[string]string:
		out := map[string]string{}
		for name, text := range x {
			if out[name] = text; v.Key.Secret {
				out[name] = masked
			}
		}
		return out
	case []any:
		list := make([]string, len(x))
		for i, e := range x {
			list[i] = e.(string)
		}
		if v.Key.last() == "args" && g.Args != nil {
			list = g.Args(list)
		}
		return list
	}
	if v.Key.Secret {
		return masked
	}
	return v.V
}
