package main

import (
	"context"
	"path/filepath"
	"strings"

	"holdfast/internal/config"
	"holdfast/internal/instructions"
	"holdfast/session"
)

// instructed reads the instruction files of a session before its work begins, where no transaction waits for a slow disk.
type instructed struct {
	session.Driver
	node *node
}

func (d instructed) Observe(ctx context.Context, s session.Session, r session.Run) (any, error) {
	if p := d.node.projects; p != nil {
		p.read(ctx, s)
	}
	return d.Driver.Observe(ctx, s, r)
}

// informed gives each kind of run that talks to the user's model the instructions; a review judges without them.
func informed(n *node, all map[session.RunKind]session.Driver) map[session.RunKind]session.Driver {
	for kind, d := range all {
		if kind != session.RunVerification {
			all[kind] = instructed{d, n}
		}
	}
	return all
}

// prompt is what the model is told about its place, and what the files there say.
func (n *node) prompt(s session.Session) string {
	if n.projects == nil {
		return systemPrompt(s, "")
	}
	text := systemPrompt(s, n.projects.repository(s.Cwd))
	if more := n.projects.told(s); more != "" {
		text += "\n\n" + more
	}
	return text
}

// read looks at the files and keeps the text for the request that follows; sessions in the same directories share one.
func (p *projects) read(ctx context.Context, s session.Session) string {
	c := p.effective(ctx, s.Cwd)
	text := ""
	if !c.Instructions.Disabled {
		text = instructions.Text(p.files(s, c))
	}
	tree := gitState(p.home, s.Cwd)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.texts[strings.Join(s.Roots, "\x00")] = text
	p.git[s.Cwd] = tree
	return text
}

// repository is what the last look at a directory found of git.
func (p *projects) repository(cwd string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.git[cwd]
}

func (p *projects) told(s session.Session) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.texts[strings.Join(s.Roots, "\x00")]
}

// files finds the instruction files of a session: the user's own, those of further directories, and those of its own directory last.
func (p *projects) files(s session.Session, c config.Config) []instructions.File {
	places := []instructions.Place{{Top: p.own(), Dir: p.own(), Only: []string{"AGENTS.md"}}}
	for i := len(s.Roots) - 1; i >= 0; i-- {
		if dir, err := filepath.EvalSymlinks(s.Roots[i]); err == nil {
			places = append(places, instructions.Place{Top: config.Top(dir), Dir: dir})
		}
	}
	files := instructions.Find(places)
	instructions.Fit(files, int(c.Instructions.MaxKiB)<<10)
	return files
}

// own is the directory of the user's configuration.
func (p *projects) own() string { return filepath.Dir(config.Path(p.home, userHome())) }

// listing says which instruction files a session's next turn carries.
func (p *projects) listing(ctx context.Context, s session.Session) []string {
	c := p.effective(ctx, s.Cwd)
	if c.Instructions.Disabled {
		return []string{"none: instructions.disabled is set"}
	}
	return instructions.List(p.files(s, c))
}

// Context answers /context.
func (p *projects) Context(ctx context.Context, s session.Session) (string, error) {
	lines := p.listing(ctx, s)
	if len(lines) == 0 {
		return "No instruction files (" + strings.Join(instructions.Names, ", ") + ") are here; the model is told none.", nil
	}
	return "Instruction files, as the next turn carries them:\n- " + strings.Join(lines, "\n- "), nil
}
