// Package config reads the user's configuration file. A file that cannot be used is reported with its line and changes nothing.
package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
)

// Config is what the user has set.
type Config struct {
	MCP struct {
		// Servers are external MCP servers by name, offered to every session.
		Servers map[string]Server `toml:"servers"`
		// Trusted are directories in which MCP clients may start work.
		Trusted []string `toml:"trusted"`
		// Limits bound every external server. Zero means the default.
		Limits Limits `toml:"limits"`
		// Authority is what MCP clients may do: "read", "goals" or "full".
		Authority string `toml:"authority"`
	} `toml:"mcp"`
	Permissions Permissions `toml:"permissions"`
	Sandbox     Sandbox     `toml:"sandbox"`
	Limits      struct {
		// Working is how many runs work unattended at once, over all processes; nothing means the default, 4.
		Working *int `toml:"working"`
	} `toml:"limits"`
	Fetch struct {
		// PrivateHosts are hosts that the fetch tool may reach although their addresses are not public: names as in the address, without a port.
		PrivateHosts []string `toml:"private_hosts"`
	} `toml:"fetch"`
	Sessions struct {
		// KeepDays is after how many days a session that lies still and holds nothing open is deleted; 0, the default, is never.
		KeepDays float64 `toml:"keep_days"`
	} `toml:"sessions"`
	Recovery struct {
		// Auto is what is done by itself with work whose process is gone: "always" (the default), "attached" or "off".
		Auto string `toml:"auto"`
		// Stall is after how many seconds without activity an attempt is ended; 0 means the default, 900.
		Stall int64 `toml:"stall_seconds"`
	} `toml:"recovery"`
}

// Server is one stdio MCP server.
type Server struct {
	Command string            `toml:"command"`
	Args    []string          `toml:"args"`
	Env     map[string]string `toml:"env"`
	// EnvFrom names variables of Holdfast's own environment that are passed on.
	EnvFrom  []string `toml:"env_from"`
	Disabled bool     `toml:"disabled"`
}

// Limits are whole seconds.
type Limits struct {
	Start int64 `toml:"start_seconds"` // from the launch of a server to its tool list; default 60
	Idle  int64 `toml:"idle_seconds"`  // a call without an answer and without progress; default 120
	Call  int64 `toml:"call_seconds"`  // a call, whatever progress it reports; default 1800
}

// Environ is the server's configured environment, sorted.
func (s Server) Environ(getenv func(string) (string, bool)) []string {
	var out []string
	for k, v := range s.Env {
		out = append(out, k+"="+v)
	}
	for _, k := range s.EnvFrom {
		if v, ok := getenv(k); ok {
			out = append(out, k+"="+v)
		}
	}
	slices.Sort(out)
	return out
}

// Error says where a configuration is wrong and what to do.
type Error struct {
	Path    string
	Line    int // 0 when it is about the whole file
	Message string
}

func (e *Error) Error() string {
	if e.Line == 0 {
		return fmt.Sprintf("%s: %s; correct it, until then the file is not used", e.Path, e.Message)
	}
	return fmt.Sprintf("%s, line %d: %s; correct it, until then the file is not used", e.Path, e.Line, e.Message)
}

// Path is where the configuration is: in the state directory when there is one, else in the user's own place.
func Path(stateDir, userHome string) string {
	p := filepath.Join(stateDir, "config.toml")
	if _, err := os.Stat(p); err == nil || userHome == "" {
		return p
	}
	return filepath.Join(userHome, ".config", "holdfast", "config.toml")
}

// Load reads a configuration. No file is an empty one. The error is an *Error.
func Load(path string) (Config, error) {
	var c Config
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return c, nil
	}
	if err != nil {
		return c, &Error{Path: path, Message: "it cannot be read; check its permissions"}
	}
	d := toml.NewDecoder(strings.NewReader(string(b))).DisallowUnknownFields()
	if err := d.Decode(&c); err != nil {
		return Config{}, explain(path, err)
	}
	for name, s := range c.MCP.Servers {
		if strings.TrimSpace(s.Command) == "" && !s.Disabled {
			return Config{}, &Error{Path: path, Message: fmt.Sprintf("mcp.servers.%s has no command", name)}
		}
	}
	if l := c.MCP.Limits; l.Start < 0 || l.Idle < 0 || l.Call < 0 {
		return Config{}, &Error{Path: path, Message: "mcp.limits are seconds and cannot be negative"}
	}
	for _, err := range []error{c.Permissions.check(), c.Sandbox.check()} {
		if err != nil {
			return Config{}, &Error{Path: path, Message: err.Error()}
		}
	}
	if d := c.Sessions.KeepDays; d < 0 || d != d || d > 36500 || d > 0 && d < 1 {
		return Config{}, &Error{Path: path, Message: "sessions.keep_days is a number of days, at least 1, or 0 for ever"}
	}
	if c.Recovery.Stall < 0 {
		return Config{}, &Error{Path: path, Message: "recovery.stall_seconds cannot be negative"}
	}
	if w := c.Limits.Working; w != nil && *w < 1 {
		return Config{}, &Error{Path: path, Message: "limits.working is a number of runs, at least 1"}
	}
	if a := c.Recovery.Auto; a != "" && !slices.Contains([]string{"always", "attached", "off"}, a) {
		return Config{}, &Error{Path: path, Message: fmt.Sprintf("recovery.auto is %q; want always, attached or off", a)}
	}
	if a := c.MCP.Authority; a != "" && !slices.Contains([]string{"read", "goals", "full"}, a) {
		return Config{}, &Error{Path: path, Message: fmt.Sprintf("mcp.authority is %q; want read, goals or full", a)}
	}
	return c, nil
}

func explain(path string, err error) error {
	var unknown *toml.StrictMissingError
	if errors.As(err, &unknown) && len(unknown.Errors) > 0 {
		line, _ := unknown.Errors[0].Position()
		return &Error{path, line, fmt.Sprintf("%s is not a setting", strings.Join(unknown.Errors[0].Key(), "."))}
	}
	var bad *toml.DecodeError
	if errors.As(err, &bad) {
		line, _ := bad.Position()
		return &Error{path, line, strings.TrimPrefix(bad.Error(), "toml: ")}
	}
	return &Error{Path: path, Message: "it cannot be read as TOML"}
}
