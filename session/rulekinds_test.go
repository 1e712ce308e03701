package session

import "testing"

// Rules for patterns and servers, and those that a configuration holds. One thing differs at a time.
func TestRule_PatternsAndServers(t *testing.T) {
	glob := Rule{Verdict: VerdictAllow, Kind: RuleGlob, Value: "src/**/*.go", Cwd: "/p"}
	edit := Subject{Session: "s", Cwd: "/p", Tool: "write", Version: "1", Edit: true, Paths: []string{"/p/src/x/a.go"}}
	server := Rule{Verdict: VerdictAllow, Kind: RuleServer, Value: "files", Cwd: "/p"}
	call := Subject{Session: "s", Cwd: "/p", Tool: "mcp__files__move", Version: "mcp:1", External: true, Server: "files", Outer: "files/move"}
	cases := map[string]struct {
		r           Rule
		b           Subject
		change      func(*Rule, *Subject)
		allow, deny covered
	}{
		"a file that it names":       {glob, edit, func(*Rule, *Subject) {}, coversSurely, coversSurely},
		"a file right below":         {glob, edit, func(_ *Rule, b *Subject) { b.Paths = []string{"/p/src/a.go"} }, coversSurely, coversSurely},
		"another ending":             {glob, edit, func(_ *Rule, b *Subject) { b.Paths = []string{"/p/src/a.c"} }, coversNot, coversNot},
		"another directory":          {glob, edit, func(_ *Rule, b *Subject) { b.Paths = []string{"/p/lib/a.go"} }, coversNot, coversNot},
		"a way out":                  {glob, edit, func(_ *Rule, b *Subject) { b.Paths = []string{"/etc/a.go"} }, coversNot, coversNot},
		"one of two":                 {glob, edit, func(_ *Rule, b *Subject) { b.Paths = append(b.Paths, "/p/b") }, coversNot, coversSurely},
		"a redirection to it":        {glob, edit, func(_ *Rule, b *Subject) { b.Edit, b.Writes, b.Paths = false, b.Paths, nil }, coversNot, coversSurely},
		"an absolute pattern":        {glob, edit, func(r *Rule, _ *Subject) { r.Value = "/p/src/**" }, coversSurely, coversSurely},
		"a pattern nobody can read":  {glob, edit, func(r *Rule, _ *Subject) { r.Value = "src/[" }, coversNot, coversNot},
		"odd names of directories":   {glob, edit, func(r *Rule, b *Subject) { r.Cwd, b.Cwd, b.Paths = "/p[1]*", "/p[1]*", []string{"/p[1]*/src/a.go"} }, coversSurely, coversSurely},
		"the server":                 {server, call, func(*Rule, *Subject) {}, coversSurely, coversSurely},
		"a tool of it":               {server, call, func(r *Rule, _ *Subject) { r.Value = "files/move" }, coversSurely, coversSurely},
		"another tool of it":         {server, call, func(r *Rule, _ *Subject) { r.Value = "files/list" }, coversNot, coversNot},
		"another server":             {server, call, func(_ *Rule, b *Subject) { b.Server, b.Outer = "other", "other/move" }, coversNot, coversNot},
		"a built-in tool":            {server, call, func(_ *Rule, b *Subject) { b.External, b.Server, b.Outer = false, "", "" }, coversNot, coversNot},
		"everywhere, by hand":        {server, call, func(r *Rule, _ *Subject) { r.Cwd = "" }, coversNot, coversSurely},
		"everywhere, by a file":      {server, call, func(r *Rule, _ *Subject) { r.Cwd, r.Origin = "", "rule 1 of f" }, coversSurely, coversSurely},
		"below, by a file":           {server, call, func(r *Rule, b *Subject) { b.Cwd, r.Origin = "/p/q", "rule 1 of f" }, coversSurely, coversSurely},
		"below, by hand":             {server, call, func(_ *Rule, b *Subject) { b.Cwd = "/p/q" }, coversNot, coversSurely},
		"anything":                   {Rule{Verdict: VerdictAllow, Kind: RuleAny, Origin: "f"}, call, func(*Rule, *Subject) {}, coversNot, coversSurely},
		"anything, a file edit":      {Rule{Verdict: VerdictAllow, Kind: RuleAny, Origin: "f"}, edit, func(*Rule, *Subject) {}, coversNot, coversNot},
		"anything, a command":        {Rule{Verdict: VerdictAllow, Kind: RuleAny, Origin: "f"}, Subject{Tool: "shell", Command: "ls"}, func(*Rule, *Subject) {}, coversNot, coversSurely},
		"anything that a store says": {Rule{Verdict: VerdictAllow, Kind: "everything", Cwd: "/p"}, call, func(*Rule, *Subject) {}, coversNot, coversNot},
	}
	for name, c := range cases {
		c.change(&c.r, &c.b)
		allow := c.r.covers(c.b)
		c.r.Verdict = VerdictDeny
		if deny := c.r.covers(c.b); allow != c.allow || deny != c.deny {
			t.Errorf("%s: allows %d, refuses %d, want %d and %d", name, allow, deny, c.allow, c.deny)
		}
		if c.r.Text() == "" || c.r.From() == "" {
			t.Errorf("%s: the rule says nothing of itself", name)
		}
	}
}

// The order of modes is by what goes on without asking, not by how they are listed.
func TestMode_Above(t *testing.T) {
	order := []Mode{"unknown", ModePlan, ModeAsk, ModeEdit, ModeAuto}
	for i, m := range order {
		for j, o := range order {
			if m.Above(o) != (i > j) {
				t.Errorf("%s above %s: %v", m, o, m.Above(o))
			}
		}
	}
}
