package config

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
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

// verdicts are what a rule may say.
var verdicts = []string{"allow", "ask", "deny"}

// wrong says what is wrong with a rule as a whole, and what to write.
func (r PermissionRule) wrong() (wrong, write string) {
	var given []string
	for name, v := range map[string]string{"command": r.Command, "prefix": r.Prefix, "path": r.Path, "host": r.Host, "server": r.Server, "tool": r.Tool} {
		if strings.TrimSpace(v) != "" {
			given = append(given, name)
		}
	}
	slices.Sort(given)
	switch {
	case r.Verdict == "":
		return "has no verdict", "write verdict = \"allow\", \"ask\" or \"deny\" in it"
	case len(given) == 2 && given[0] == "server" && given[1] == "tool":
	case len(given) != 1:
		return "does not say what it covers", "write one of command, prefix, path, host, server and tool in it, or server and tool"
	case given[0] == "tool" && r.Verdict == "allow":
		return "allows a built-in tool whatever it does", "write command, prefix, path or host instead, or name the server of an external tool"
	}
	return "", ""
}

// describe is a rule in words, for a person who has to decide about it.
func (r PermissionRule) describe() string {
	what := map[string]string{"allow": "allows without a question", "ask": "asks about", "deny": "refuses"}[r.Verdict]
	switch {
	case r.Command != "":
		what += " the command " + strconv.QuoteToASCII(r.Command)
	case r.Prefix != "":
		what += " commands that begin with " + strconv.QuoteToASCII(r.Prefix)
	case r.Path != "":
		what += " edits of " + strconv.QuoteToASCII(r.Path)
	case r.Host != "":
		what += " fetching from " + strconv.QuoteToASCII(r.Host)
	case r.Server != "" && r.Tool != "":
		what += fmt.Sprintf(" the tool %s of the MCP server %s", quoted(r.Tool), quoted(r.Server))
	case r.Server != "":
		what += " the MCP server " + quoted(r.Server)
	default:
		what += " the tool " + quoted(r.Tool)
	}
	return what
}

// rules looks at each rule as a whole.
func (c *checker) rules(entries []entry) {
	const list = "permissions.rules["
	var order []string
	at, rules := map[string]int{}, map[string]*PermissionRule{}
	for _, e := range entries {
		if len(e.path) < 2 || !strings.HasPrefix(dotted(e.path[:2]), list) {
			continue
		}
		name := dotted(e.path[:2])
		if rules[name] == nil {
			order, at[name], rules[name] = append(order, name), e.line, &PermissionRule{}
		}
	}
	for _, v := range c.values {
		if r := rules[dotted(v.seg[:min(2, len(v.seg))])]; r != nil {
			*map[string]*string{"verdict": &r.Verdict, "command": &r.Command, "prefix": &r.Prefix, "path": &r.Path, "host": &r.Host, "server": &r.Server, "tool": &r.Tool,
				"in": &r.In}[v.Key.last()] = v.V.(string)
		}
	}
	for _, name := range order {
		if p := rules[name].Path; c.project && p != "" && !filepath.IsLocal(p) && !c.reported(name) {
			c.fault(at[name], name, "reaches out of the project", "write the path as it is below the project's directory")
			continue
		}
		if wrong, write := rules[name].wrong(); wrong != "" && !c.reported(name) {
			c.fault(at[name], name, wrong, write)
		}
	}
}

// folder checks a directory that may be written from the home directory on.
func folder(v any) (wrong, write string) {
	if dir := v.(string); !filepath.IsAbs(dir) && !strings.HasPrefix(dir, "~/") {
		return "is " + strconv.Quote(clip(dir)), "write the directory from / on, or from ~/ on"
	}
	return "", ""
}

// folders checks a list of them.
func folders(v any) (wrong, write string) {
	for _, dir := range v.([]any) {
		if wrong, _ := folder(dir); wrong != "" {
			return fmt.Sprintf("names %q", clip(dir.(string))), "write each directory from / on, or from ~/ on"
		}
	}
	return "", ""
}
