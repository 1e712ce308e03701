package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"holdfast/internal/config"
	"holdfast/internal/provider"
	"holdfast/internal/tools"
	"holdfast/session"
)

// confiner is what confines commands, as the user's configuration has it. One that cannot be used confines as if it were empty.
func confiner(home string) *tools.Sandbox {
	c, _ := settings(home) // what is wrong with it is told elsewhere
	return &tools.Sandbox{Which: session.ConfineWhen(c.Sandbox.Commands), Network: c.Sandbox.Network, Writable: c.Sandbox.Writable, StateDir: home,
		Home: userHome(), Env: tools.CommandEnv(os.Environ(), provider.SecretEnv)}
}

// configuredRules are the standing answers of a configuration. dir is the directory that they count in where they name none; "" is everywhere.
func configuredRules(c config.Config, path, dir string) (out []session.Rule, err error) {
	for i, r := range c.Permissions.Rules {
		rule := session.Rule{ID: session.RuleID(fmt.Sprintf("%s#%d", filepath.Base(path), i+1)), Verdict: session.RuleVerdict(r.Verdict), Cwd: dir,
			Origin: fmt.Sprintf("rule %d of %s", i+1, path), CreatedAt: time.Unix(0, 0)}
		if r.In != "" && dir == "" {
			rule.Cwd = r.In
			if rest, ok := strings.CutPrefix(r.In, "~/"); ok {
				rule.Cwd = filepath.Join(userHome(), rest)
			}
		}
		switch {
		case r.Command != "":
			rule.Kind, rule.Tool, rule.Value = session.RuleCommand, "shell", strings.TrimSpace(r.Command)
		case r.Prefix != "":
			p, ok := session.PrefixRule(r.Prefix)
			if !ok {
				return nil, fmt.Errorf("%s: %q is no plain beginning of one command; use command for a whole line", rule.Origin, r.Prefix)
			}
			rule.Kind, rule.Tool, rule.Value = p.Kind, "shell", p.Value
		case r.Path != "":
			if !session.ValidPattern(r.Path) {
				return nil, fmt.Errorf("%s: %q is no pattern", rule.Origin, r.Path)
			}
			rule.Kind, rule.Value = session.RuleGlob, r.Path
		case r.Host != "":
			p, ok := session.HostRule(r.Host)
			if !ok {
				return nil, fmt.Errorf("%s: %q is no host; want its name in ASCII, or *. and a domain", rule.Origin, r.Host)
			}
			rule.Kind, rule.Tool, rule.Value = p.Kind, p.Tool, p.Value
		case r.Server != "" && r.Tool != "":
			rule.Kind, rule.Value = session.RuleServer, r.Server+"/"+r.Tool
		case r.Server != "":
			rule.Kind, rule.Value = session.RuleServer, r.Server
		default:
			rule.Kind, rule.Tool = session.RuleTool, r.Tool
		}
		out = append(out, rule)
	}
	return out, nil
}

// rulebook reads the rules of the user's configuration once. What a trusted project adds counts in that project alone.
func rulebook(home string) (func(session.Session) []session.Rule, error) {
	path := config.Path(home, userHome())
	c, err := settings(home)
	if err != nil {
		return nil, err
	}
	own, err := configuredRules(c, path, "")
	if err != nil {
		return nil, err
	}
	return func(s session.Session) []session.Rule { return slices.Concat(own, projectRules(home, s.Cwd)) }, nil
}

// askAll is the rulebook of a configuration that cannot be used: what it refuses is not known, so nothing goes on without a question.
func askAll(why error) func(session.Session) []session.Rule {
	r := session.Rule{ID: "config", Verdict: session.VerdictAsk, Kind: session.RuleAny, Origin: "a configuration that cannot be used: " + line(why.Error(), 200)}
	return func(session.Session) []session.Rule { return []session.Rule{r} }
}

// projectRules are those of the project's configuration, when the user trusts the directory.
var projectRules = func(home, cwd string) []session.Rule { return nil }

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
