package config

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

// Permissions is what goes on without asking, and how long a question stays open.
type Permissions struct {
	// ParkMinutes is how long a prompt stays open for a question that nobody answers; 0 means the default, 30.
	ParkMinutes float64 `toml:"park_minutes"`
	// Rules are standing answers, beside those that are given with "always".
	Rules []PermissionRule `toml:"rules"`
}

// PermissionRule is one standing answer. Exactly one of Command, Prefix, Path, Host, Server and Tool says what it covers, except that a tool may be
// named beside its server.
type PermissionRule struct {
	Verdict string `toml:"verdict"` // allow, ask or deny
	Command string `toml:"command"` // exactly this command line
	Prefix  string `toml:"prefix"`  // commands that begin with these words
	Path    string `toml:"path"`    // file edits of files that the pattern names
	Host    string `toml:"host"`    // fetches from the hosts that the pattern names
	Server  string `toml:"server"`  // an external MCP server
	Tool    string `toml:"tool"`    // of the server, or a built-in one
	In      string `toml:"in"`      // the directory whose sessions it counts in; everywhere without
}

// Sandbox is how commands are confined.
type Sandbox struct {
	// Commands says which are: "always", "unasked" (the default) or "off".
	Commands string `toml:"commands"`
	// Network lets confined commands use it.
	Network bool `toml:"network"`
	// Writable are further folders that they may write, absolute or below ~/.
	Writable []string `toml:"writable"`
}

// check says what is wrong with the rules.
func (p Permissions) check() error {
	if m := p.ParkMinutes; m < 0 || m > 7*24*60 || m != m {
		return fmt.Errorf("permissions.park_minutes is a number of minutes, at most a week")
	}
	for i, r := range p.Rules {
		at := fmt.Sprintf("permissions.rules, the %s one", ordinal(i+1))
		if !slices.Contains([]string{"allow", "ask", "deny"}, r.Verdict) {
			return fmt.Errorf("%s: verdict is %q; want allow, ask or deny", at, r.Verdict)
		}
		var given []string
		for name, v := range map[string]string{"command": r.Command, "prefix": r.Prefix, "path": r.Path, "host": r.Host, "server": r.Server, "tool": r.Tool} {
			if strings.TrimSpace(v) != "" {
				given = append(given, name)
			}
		}
		slices.Sort(given)
		switch {
		case len(given) == 2 && given[0] == "server" && given[1] == "tool":
		case len(given) != 1:
			return fmt.Errorf("%s: say what it covers with one of command, prefix, path, host, server and tool, or with server and tool", at)
		case given[0] == "tool" && r.Verdict == "allow":
			return fmt.Errorf("%s: a built-in tool is allowed by what it does, with command, prefix, path or host; name the server of an external one", at)
		}
		if r.In != "" && !filepath.IsAbs(r.In) && !strings.HasPrefix(r.In, "~/") {
			return fmt.Errorf("%s: in is %q; want an absolute directory", at, r.In)
		}
	}
	return nil
}

func (s Sandbox) check() error {
	if !slices.Contains([]string{"", "always", "unasked", "off"}, s.Commands) {
		return fmt.Errorf("sandbox.commands is %q; want always, unasked or off", s.Commands)
	}
	for _, dir := range s.Writable {
		if !filepath.IsAbs(dir) && !strings.HasPrefix(dir, "~/") {
			return fmt.Errorf("sandbox.writable has %q; want absolute folders, or ones below ~/", dir)
		}
	}
	return nil
}

func ordinal(n int) string {
	switch n {
	case 1:
		return "first"
	case 2:
		return "second"
	case 3:
		return "third"
	}
	return fmt.Sprintf("%dth", n)
}
