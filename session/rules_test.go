package session

import (
	"fmt"
	"slices"
	"sort"
	"strings"
	"testing"
	"time"
)

// heldLines are commands that a rule may be held against.
var heldLines = []string{"git push", "git push origin", "git pull", "git  push", "git pushx", "/usr/bin/git push", "sudo git push", "A=b git push", "git push > log",
	"true; git push", "true && git push", "true | git push", "true & git push", "true\ngit push", "$(git push)", "`git push`", "(git push)", "cd / && git push",
	"if true; then git push; fi", "sh -c 'git push'", "xargs git push", "echo git push", "echo 'do not git push'", "g''it push", "git 'push'", "$GIT push", ""}

// The whole table of rules for a command: what covers what, how surely.
func TestRule_CoversCommands(t *testing.T) {
	prefix, ok := PrefixRule("git push")
	if !ok {
		t.Fatal("no prefix")
	}
	rules := []Rule{{Kind: RuleCommand, Value: "git push"}, {Kind: RulePrefix, Value: prefix.Value}}
	words := []string{"-", "maybe", "surely"}
	var out strings.Builder
	facts := 0
	for _, line := range heldLines {
		fmt.Fprintf(&out, "%-32q", line)
		for _, r := range rules {
			for _, v := range []RuleVerdict{VerdictAllow, VerdictDeny} {
				r.Verdict, r.Tool, r.Session = v, "shell", "s"
				facts++
				fmt.Fprintf(&out, " %s/%s %-7s", r.Kind, v, words[r.covers(Subject{Session: "s", Tool: "shell", Command: line})])
			}
		}
		out.WriteString("\n")
	}
	golden(t, "covers.golden", fmt.Sprintf("%d facts\n%s", facts, out.String()))
}

// Where a rule counts, and for which tool. One thing differs at a time.
func TestRule_Scope(t *testing.T) {
	r := Rule{Verdict: VerdictAllow, Kind: RuleCommand, Value: "make", Tool: "shell", Version: "1", Cwd: "/p"}
	b := Subject{Session: "s", Cwd: "/p", Tool: "shell", Version: "1", Command: "make"}
	server := Rule{Verdict: VerdictAllow, Kind: RuleTool, Tool: "files__move", Version: "mcp:1", Cwd: "/p"}
	call := Subject{Session: "s", Cwd: "/p", Tool: "files__move", Version: "mcp:1", External: true}
	edit := Rule{Verdict: VerdictAllow, Kind: RuleEdit, Value: "/p/src", Tool: "write", Version: "1", Cwd: "/p"}
	write := Subject{Session: "s", Cwd: "/p", Tool: "write", Version: "1", Edit: true, Paths: []string{"/p/src/a"}}
	cases := map[string]struct {
		r      Rule
		b      Subject
		change func(*Rule, *Subject)
		allow  covered // for a rule that allows
		deny   covered // for the same one that refuses
	}{
		"the same":                   {r, b, func(*Rule, *Subject) {}, coversSurely, coversSurely},
		"another directory":          {r, b, func(_ *Rule, b *Subject) { b.Cwd = "/q" }, coversNot, coversNot},
		"a directory below":          {r, b, func(_ *Rule, b *Subject) { b.Cwd = "/p/q" }, coversNot, coversSurely},
		"a directory with a prefix":  {r, b, func(_ *Rule, b *Subject) { b.Cwd = "/pq" }, coversNot, coversNot},
		"this session":               {r, b, func(r *Rule, _ *Subject) { r.Cwd, r.Session = "", "s" }, coversSurely, coversSurely},
		"another session":            {r, b, func(r *Rule, _ *Subject) { r.Cwd, r.Session = "", "t" }, coversNot, coversNot},
		"everywhere":                 {r, b, func(r *Rule, _ *Subject) { r.Cwd = "" }, coversNot, coversSurely},
		"another tool":               {r, b, func(_ *Rule, b *Subject) { b.Tool = "run" }, coversNot, coversNot},
		"another version":            {r, b, func(_ *Rule, b *Subject) { b.Version = "2" }, coversNot, coversSurely},
		"files as they were":         {r, b, func(r *Rule, b *Subject) { r.Programs, b.Programs = "d", "d" }, coversSurely, coversSurely},
		"files changed":              {r, b, func(r *Rule, b *Subject) { r.Programs, b.Programs = "d", "e" }, coversNot, coversSurely},
		"the server's tool":          {server, call, func(*Rule, *Subject) {}, coversSurely, coversSurely},
		"redefined":                  {server, call, func(_ *Rule, b *Subject) { b.Version = "mcp:2" }, coversNot, coversSurely},
		"a tool without a version":   {server, call, func(r *Rule, _ *Subject) { r.Version = "" }, coversNot, coversSurely},
		"a built-in tool as a whole": {server, call, func(_ *Rule, b *Subject) { b.External = false }, coversNot, coversSurely},
		"a server's tool for edits":  {edit, write, func(r *Rule, b *Subject) { r.Tool, r.Version, b.External = "", "", true }, coversNot, coversNot},
		"an edit":                    {edit, write, func(*Rule, *Subject) {}, coversSurely, coversSurely},
		"any built-in edit":          {edit, write, func(r *Rule, _ *Subject) { r.Tool, r.Version = "", "" }, coversSurely, coversSurely},
		"an edit below":              {edit, write, func(_ *Rule, b *Subject) { b.Paths = []string{"/p/src/x/y"} }, coversSurely, coversSurely},
		"an edit beside":             {edit, write, func(_ *Rule, b *Subject) { b.Paths = []string{"/p/srcs/a"} }, coversNot, coversNot},
		"an edit above":              {edit, write, func(_ *Rule, b *Subject) { b.Paths = []string{"/p/a"} }, coversNot, coversNot},
		"one edit of two":            {edit, write, func(_ *Rule, b *Subject) { b.Paths = []string{"/p/src/a", "/p/b"} }, coversNot, coversSurely},
		"an edit nobody can prove":   {edit, write, func(_ *Rule, b *Subject) { b.Edit = false }, coversNot, coversSurely},
		"a kind from a newer store":  {r, b, func(r *Rule, _ *Subject) { r.Kind = "glob" }, coversNot, coversNot},
		"words that cannot be read":  {r, b, func(r *Rule, _ *Subject) { r.Kind = RulePrefix }, coversNot, coversNot},
		"a call without any command": {r, b, func(_ *Rule, b *Subject) { b.Command = "" }, coversNot, coversNot},
	}
	for name, c := range cases {
		c.change(&c.r, &c.b)
		allow := c.r.covers(c.b)
		c.r.Verdict = VerdictDeny
		if deny := c.r.covers(c.b); allow != c.allow || deny != c.deny {
			t.Errorf("%s: allows %d, refuses %d, want %d and %d", name, allow, deny, c.allow, c.deny)
		}
	}
	t.Logf("%d cases", len(cases))
}

// voices are rules that may speak about one call, and how surely they are about it.
var voices = map[string]Rule{
	"allow":       {Verdict: VerdictAllow, Kind: RuleCommand, Value: "sh -c 'a b'"},
	"granted":     {Verdict: VerdictAllow, Kind: RuleCommand, Value: "sh -c 'a b'", Goal: "g"},
	"ask":         {Verdict: VerdictAsk, Kind: RulePrefix, Value: `["sh"]`},
	"maybe ask":   {Verdict: VerdictAsk, Kind: RulePrefix, Value: `["a","b"]`},
	"deny":        {Verdict: VerdictDeny, Kind: RulePrefix, Value: `["sh"]`},
	"maybe deny":  {Verdict: VerdictDeny, Kind: RulePrefix, Value: `["a","b"]`},
	"not covered": {Verdict: VerdictDeny, Kind: RulePrefix, Value: `["z"]`},
}

// Every order in which up to three rules about one call can be made.
func TestStand_EveryOrder(t *testing.T) {
	names := []string{"allow", "ask", "deny", "granted", "maybe ask", "maybe deny", "not covered"}
	var orders [][]string
	for n, level := 0, [][]string{nil}; n < 3; n++ {
		var next [][]string
		for _, o := range level {
			for _, name := range names {
				next = append(next, append(append([]string{}, o...), name))
			}
		}
		orders, level = append(orders, next...), next
	}
	counts, first := map[Standing]int{}, map[Standing]string{}
	for _, o := range append([][]string{nil}, orders...) {
		var rules []Rule
		for i, name := range o {
			r := voices[name]
			r.ID, r.Session, r.Tool, r.CreatedAt = RuleID(name), "s", "shell", time.Unix(int64(i+1), 0)
			rules = append(rules, r)
		}
		got, _ := Stand(rules, Subject{Session: "s", Tool: "shell", Command: "sh -c 'a b'"})
		if counts[got]++; counts[got] == 1 {
			first[got] = strings.Join(o, ", ")
		}
		if want := stands(o); got != want {
			t.Errorf("%v: %q, want %q", o, got, want)
		}
		backwards := append([]Rule{}, rules...)
		sort.SliceStable(backwards, func(i, j int) bool { return backwards[i].CreatedAt.After(backwards[j].CreatedAt) })
		if again, _ := Stand(backwards, Subject{Session: "s", Tool: "shell", Command: "sh -c 'a b'"}); again != got {
			t.Errorf("%v: %q, and %q when listed backwards", o, got, again)
		}
	}
	var out []string
	for s, n := range counts {
		out = append(out, fmt.Sprintf("%-8q %4d  first: %s", s, n, first[s]))
	}
	sort.Strings(out)
	golden(t, "standing.golden", fmt.Sprintf("%d orders\n%s\n", len(orders)+1, strings.Join(out, "\n")))
}

// stands says it once more, by the words: a refusal wins, then whoever spoke last.
func stands(order []string) Standing {
	if slices.Contains(order, "deny") {
		return StandingDeny
	}
	if slices.Contains(order, "maybe deny") {
		return StandingDoubt
	}
	s := StandingNone
	for _, name := range order {
		switch name {
		case "allow", "granted":
			s = Standing(name)
		case "ask", "maybe ask":
			s = StandingAsk
		}
	}
	return s
}

// A standing answer says in the question what it will cover, and covers the call that was asked about.
func TestAlways_CoversItsOwnCall(t *testing.T) {
	for name, b := range map[string]Subject{
		"a command": {Cwd: "/p", Tool: "shell", Version: "1", Command: " make all\n", Programs: "d"},
		"an edit":   {Cwd: "/p", Tool: "write", Version: "1", Edit: true, Paths: []string{"/p/a/b/c", "/p/a/d"}},
		"a server":  {Cwd: "/p", Tool: "files__move", Version: "mcp:1", External: true},
	} {
		r, ok := Always(b)
		r.Verdict = VerdictAllow
		if !ok || r.covers(b) != coversSurely || r.Text() == "" {
			t.Errorf("%s: %+v, %v", name, r, ok)
		}
		if r.Verdict, r.Version, r.Programs = VerdictDeny, "", ""; r.covers(b) != coversSurely {
			t.Errorf("%s: a refusal does not cover it", name)
		}
	}
	if r, ok := Always(Subject{Cwd: "/p", Tool: "create_goal", Version: "1"}); ok {
		t.Errorf("a goal has a standing answer: %+v", r)
	}
	if r, _ := Always(Subject{Cwd: "/p", Tool: "write", Edit: true, Paths: []string{"/p/a/b/c", "/p/a/d"}}); r.Value != "/p/a" {
		t.Errorf("two files have the directory %q", r.Value)
	}
}
