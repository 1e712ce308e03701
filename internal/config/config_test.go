package config

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config.toml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestLoad_Servers(t *testing.T) {
	c, err := Load(write(t, `
[permissions]
park_minutes = 0.5
[mcp]
authority = "read"
trusted = ["/src"]
[mcp.servers.files]
command = "node"
args = ["server.js", "/src"]
env = { B = "2" }
env_from = ["A", "MISSING"]
`))
	if err != nil {
		t.Fatal(err)
	}
	s := c.MCP.Servers["files"]
	env := s.Environ(func(k string) (string, bool) { return "one", k == "A" })
	if s.Command != "node" || !slices.Equal(env, []string{"A=one", "B=2"}) || c.MCP.Authority != "read" || c.Permissions.ParkMinutes != 0.5 || len(c.MCP.Trusted) != 1 {
		t.Errorf("%+v, env %q", c, env)
	}
}

func TestLoad_NoFileIsEmpty(t *testing.T) {
	if c, err := Load(filepath.Join(t.TempDir(), "none.toml")); err != nil || len(c.MCP.Servers) != 0 {
		t.Error(c, err)
	}
}

func TestLoad_SaysWhereItIsWrong(t *testing.T) {
	for name, tc := range map[string]struct{ text, want string }{
		"syntax":     {"[mcp\n", "line 1"},
		"unknown":    {"[mcp]\n\nauthorty = \"full\"\n", "line 3: mcp.authorty is not a setting"},
		"type":       {"[mcp.servers.x]\ncommand = 5\n", "line 2"},
		"no command": {"[mcp.servers.x]\nargs = []\n", "mcp.servers.x has no command"},
		"park":       {"[permissions]\npark_minutes = -1\n", "park_minutes"},
		"authority":  {"[mcp]\nauthority = \"all\"\n", `want read, goals or full`},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := Load(write(t, tc.text))
			if err == nil || !strings.Contains(err.Error(), tc.want) || !strings.Contains(err.Error(), "not used") {
				t.Errorf("error %v, want %q", err, tc.want)
			}
			if len(c.MCP.Servers) != 0 {
				t.Error("half a configuration is used")
			}
		})
	}
}
