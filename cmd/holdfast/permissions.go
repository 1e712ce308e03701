package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"holdfast/goals"
	"holdfast/internal/config"
	"holdfast/internal/nearest"
	"holdfast/internal/provider"
	"holdfast/internal/tools"
	"holdfast/session"
)

// confiner is what confines commands, as the user's configuration has it. One that cannot be used and may say more confines every command.
func confiner(home string) *tools.Sandbox {
	c, err := settings(home) // what is wrong with it is told elsewhere
	if err != nil && config.Mentions(config.Path(home, userHome()), "sandbox") {
		c.Sandbox.Commands = string(session.ConfineAlways)
	}
	return &tools.Sandbox{Which: session.ConfineWhen(c.Sandbox.Commands), Network: c.Sandbox.Network, Writable: c.Sandbox.Writable, StateDir: home,
		Home: userHome(), Env: tools.CommandEnv(os.Environ(), provider.SecretEnv)}
}

// configuredRules are the standing answers of a configuration. dir is the directory that they count in where they name none; "" is everywhere.
func configuredRules(c config.Config, path, dir string) (out []session.Rule, err error) {
	for i, r := range c.Permissions.Rules {
		rule, _, err := configuredRule(r)
		if err != nil {
			return nil, fmt.Errorf("rule %d of %s: %w", i+1, path, err)
		}
		rule.ID, rule.Verdict = session.RuleID(fmt.Sprintf("%s#%d", filepath.Base(path), i+1)), session.RuleVerdict(r.Verdict)
		rule.Cwd, rule.Origin, rule.CreatedAt = dir, fmt.Sprintf("rule %d of %s", i+1, path), time.Unix(0, 0)
		if r.In != "" && dir == "" {
			rule.Cwd = r.In
			if rest, ok := strings.CutPrefix(r.In, "~/"); ok {
				rule.Cwd = filepath.Join(userHome(), rest)
			}
		}
		out = append(out, rule)
	}
	return out, nil
}

// configuredRule reads what a rule covers. member is the one that is wrong.
func configuredRule(r config.PermissionRule) (rule session.Rule, member string, err error) {
	switch {
	case r.Command != "":
		rule.Kind, rule.Tool, rule.Value = session.RuleCommand, "shell", strings.TrimSpace(r.Command)
	case r.Prefix != "":
		p, ok := session.PrefixRule(r.Prefix)
		if !ok {
			return rule, "prefix", fmt.Errorf("%q is no plain beginning of one command; use command for a whole line", r.Prefix)
		}
		rule.Kind, rule.Tool, rule.Value = p.Kind, "shell", p.Value
	case r.Path != "":
		if !session.ValidPattern(r.Path) {
			return rule, "path", fmt.Errorf("%q is no pattern", r.Path)
		}
		rule.Kind, rule.Value = session.RuleGlob, r.Path
	case r.Host != "":
		p, ok := session.HostRule(r.Host)
		if !ok {
			return rule, "host", fmt.Errorf("%q is no host; want its name in ASCII, or *. and a domain", r.Host)
		}
		rule.Kind, rule.Tool, rule.Value = p.Kind, p.Tool, p.Value
	case r.Server != "" && r.Tool != "":
		rule.Kind, rule.Value = session.RuleServer, r.Server+"/"+r.Tool
	case r.Server != "":
		rule.Kind, rule.Value = session.RuleServer, r.Server
	default:
		rule.Kind, rule.Tool = session.RuleTool, r.Tool
		if err := knownTool(r.Tool, false); err != nil {
			return rule, "tool", err
		}
	}
	return rule, "", nil
}

// knownTool refuses the name of a tool that there is not: a rule about it would protect nothing. A built-in tool is never allowed as a whole.
func knownTool(name string, allow bool) error {
	if strings.HasPrefix(name, "mcp__") {
		return nil // which of them there are is known in a session alone
	}
	names := builtinNames()
	switch {
	case !slices.Contains(names, name):
		if near := nearest.Of(name, names); near != "" {
			return fmt.Errorf("there is no tool %q; did you mean %s?", name, near)
		}
		return fmt.Errorf("there is no tool %q; there are %s, and those of MCP servers as mcp__SERVER__TOOL", name, strings.Join(names, ", "))
	case allow:
		return fmt.Errorf("%s is allowed by what it does and not as a whole: allow a command, the beginning of one, edits, or a host", name)
	}
	return nil
}

// builtinNames are the tools that a model may be offered without an external server, sorted.
var builtinNames = sync.OnceValue(func() (names []string) {
	for _, list := range [][]session.Tool{tools.Builtin(tools.Options{}), goals.ChatTools(), goals.WorkTools()} {
		for _, t := range list {
			names = append(names, t.Spec().Name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
})

// ruleMistakes are the rules of a file that cannot be used, each with its place.
func ruleMistakes(f config.File) (out config.Errors) {
	for i, r := range f.Config.Permissions.Rules {
		_, member, err := configuredRule(r)
		if err == nil {
			continue
		}
		at := fmt.Sprintf("permissions.rules[%d].%s", i, member)
		e := &config.Error{Path: f.Path, Key: at, Message: "cannot be used: " + err.Error()}
		if v := slices.IndexFunc(f.Values, func(v config.Value) bool { return v.Path == at }); v >= 0 {
			e.Line = f.Values[v].Line
		}
		out = append(out, e)
	}
	return out
}

// rulebook reads the rules of the user's configuration once. project adds those of a trusted project, which count in it alone.
func rulebook(home string, project func(session.Session) session.Rulebook) (func(session.Session) session.Rulebook, error) {
	path := config.Path(home, userHome())
	c, err := settings(home)
	if err != nil {
		return nil, err
	}
	own, err := configuredRules(c, path, "")
	if err != nil {
		return nil, err
	}
	return func(s session.Session) session.Rulebook {
		b := project(s)
		b.User = slices.Concat(own, b.User)
		return b
	}, nil
}

// askAll is the rulebook of a configuration that cannot be used: what it refuses is not known, so nothing goes on without a question.
func askAll(why error) session.Rulebook {
	return session.Rulebook{User: []session.Rule{{ID: "config", Verdict: session.VerdictAsk, Kind: session.RuleAny,
		CreatedAt: time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC), // no answer with "always" is later: it may be about what would be refused
		Origin:    "a configuration that cannot be used: " + line(why.Error(), 200)}}}
}

// rules are what a session's project says of its calls. A project that nobody trusts says nothing; where that cannot be found out, or what a
// trusted one says cannot be used, every call asks.
func (p *projects) rules(sess session.Session) session.Rulebook {
	s, err := look(context.Background(), p.st, sess.Cwd)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return session.Rulebook{}
	case err != nil:
		return askAll(err)
	case !s.trusted():
		return session.Rulebook{}
	}
	dir := s.Dir
	if rel, err := filepath.Rel(dir, sess.Cwd); err != nil || !filepath.IsLocal(rel) {
		dir = sess.Cwd // the session calls it by another name
	}
	rules, err := configuredRules(s.File.Config, s.File.Path, dir)
	if err != nil {
		return askAll(err)
	}
	for i := range rules {
		rules[i].CreatedAt = time.Unix(-1, 0) // whatever the user says is later, and wins
	}
	return session.Rulebook{Project: rules, Trust: s.trust}
}

// sandbox says what confines commands here.
func (d *diagnosis) sandbox(ctx context.Context) {
	s := confiner(d.Home)
	if s.When() == session.ConfineOff {
		d.add("sandbox", levelNote, "Confining commands is switched off ([sandbox] commands); in auto mode only known readers run without a question.", "")
		return
	}
	w := s.Wall(ctx)
	switch {
	case w.Name == "":
		d.add("sandbox", levelNote, "Commands cannot be confined here: "+w.Reason+". In auto mode only known readers run without a question.",
			"On Linux, use a kernel with Landlock (5.13 or newer) or install bubblewrap.")
		return
	case w.Limits() != "":
		d.add("sandbox", levelOK, fmt.Sprintf("Commands can be confined by %s; its limit: %s.", w.Name, w.Limits()), "")
	default:
		d.add("sandbox", levelOK, fmt.Sprintf("Commands can be confined by %s.", w.Name), "")
	}
	cwd, err := os.Getwd()
	if _, missing := os.Stat(d.Home); err != nil || missing != nil {
		return
	}
	if _, err := s.Confine(ctx, session.Session{Cwd: cwd, Roots: []string{cwd}}); err != nil {
		d.add("sandbox", levelNote, "In this directory they cannot: "+err.Error()+".", "")
	}
}
