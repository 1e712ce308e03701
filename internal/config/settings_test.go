package config

import (
	"encoding/json"
	"strings"
	"testing"
)

func parsed(t *testing.T, path, text string, project bool) File {
	t.Helper()
	f, err := Parse(path, []byte(text), project)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestSettings_SayWhereEachValueComesFrom(t *testing.T) {
	user := parsed(t, "/u", "[recovery]\nstall_seconds = 60\n[mcp]\nauthority = \"read\"\ntrusted = [\"/a\"]\n[instructions]\nmax_kib = 32\n"+
		"[mcp.servers.one]\ncommand = \"mine\"\nenv = { TOKEN = \"hunter2hunter2\" }\n", false)
	project := parsed(t, "/p", "[instructions]\nmax_kib = 16\n[mcp.servers.one]\ncommand = \"theirs\"\n[mcp.servers.two]\ncommand = \"more\"\n", true)
	env := map[string]string{"HOLDFAST_MCP_AUTHORITY": "full", "HOLDFAST_MODEL": "openai/x", "HOLDFAST_MCP_TRUST": "/b"}
	all := Settings(user, project, Given{Getenv: func(n string) (string, bool) { v, ok := env[n]; return v, ok }, Flags: map[string]string{"--model": "scripted/y"}})
	want := map[string]string{
		"recovery.stall_seconds":        `60 {"from":"user","file":"/u","line":2,"name":""} `,
		"mcp.authority":                 `"full" {"from":"environment","file":"","line":0,"name":"HOLDFAST_MCP_AUTHORITY"} `,
		"mcp.trusted":                   `["/a"] {"from":"user","file":"/u","line":5,"name":""} HOLDFAST_MCP_TRUST adds /b`,
		"model.name":                    `"scripted/y" {"from":"flag","file":"","line":0,"name":"--model"} `,
		"permissions.park_minutes":      `null {"from":"default","file":"","line":0,"name":""} `,
		"instructions.max_kib":          `16 {"from":"project","file":"/p","line":2,"name":""} `,
		"mcp.servers.one.env":           `{"TOKEN":"***"} {"from":"user","file":"/u","line":10,"name":""} `,
		"mcp.servers.two.command":       `"more" {"from":"project","file":"/p","line":6,"name":""} `,
		"mcp.servers.one.command":       `"mine" {"from":"user","file":"/u","line":9,"name":""} `,
		"mcp.servers.one.command again": `"theirs" {"from":"project","file":"/p","line":4,"name":""} your own mcp.servers.one counts instead`,
	}
	for _, s := range all {
		v, o := text(t, s.Value), text(t, s.Origin)
		name := s.Path
		if strings.Contains(v, "theirs") {
			name += " again"
		}
		got := v + " " + o + " " + s.Note
		if w, ok := want[name]; ok && w != got {
			t.Errorf("%s: %s\nwant %s", name, got, w)
		}
		delete(want, name)
	}
	if len(want) > 0 {
		t.Errorf("not listed: %v", want)
	}
	if s := text(t, all); strings.Contains(s, "hunter2") {
		t.Errorf("a secret is listed: %s", s)
	}
}

func text(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// A project makes things narrower, never wider, and its servers come on top without replacing one of the user's.
func TestMerge_ProjectOnlyNarrows(t *testing.T) {
	for _, tc := range []struct {
		user, project string
		max           int64
		disabled      bool
	}{
		{"", "", 0, false},
		{"", "instructions.max_kib = 8", 8, false},
		{"", "instructions.max_kib = 100", 64, false},
		{"instructions.max_kib = 8", "instructions.max_kib = 100", 8, false},
		{"instructions.max_kib = 100", "instructions.max_kib = 80", 80, false},
		{"instructions.max_kib = 100", "instructions.max_kib = 0", 64, false},
		{"", "instructions.disabled = true", 0, true},
		{"instructions.disabled = true", "instructions.disabled = false", 0, true},
	} {
		user, project := parsed(t, "/u", tc.user+"\n", false), parsed(t, "/p", tc.project+"\n", true)
		c := Merge(user, project)
		if c.Instructions.MaxKiB != tc.max || c.Instructions.Disabled != tc.disabled {
			t.Errorf("%q with %q is %+v", tc.user, tc.project, c.Instructions)
		}
	}
	user := parsed(t, "/u", "[mcp.servers.one]\ncommand = \"mine\"\ndisabled = true\n", false)
	project := parsed(t, "/p", "[mcp.servers.one]\ncommand = \"theirs\"\n[mcp.servers.two]\ncommand = \"more\"\n", true)
	c := Merge(user, project)
	if c.MCP.Servers["one"].Command != "mine" || !c.MCP.Servers["one"].Disabled || c.MCP.Servers["two"].Command != "more" || len(user.Config.MCP.Servers) != 1 {
		t.Errorf("%+v, the user's %+v", c.MCP.Servers, user.Config.MCP.Servers)
	}
	if got := Collisions(user, project); len(got) != 1 || got[0] != "one" {
		t.Errorf("collisions %v", got)
	}
}
