package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"holdfast/internal/config"
	"holdfast/mcp/client"
)

// configuration looks at config.toml and at the servers it names. With start each of them is started once, in this directory, and ended.
func (d *diagnosis) configuration(ctx context.Context, start bool, log zerolog.Logger) {
	path := config.Path(d.Home, userHome())
	c, err := settings(d.Home)
	var bad *config.Error
	switch _, missing := os.Stat(path); {
	case errors.As(err, &bad):
		d.add("config", levelPerson, bad.Error()+".", "Correct "+path+", then begin sessions anew.")
		return
	case errors.Is(missing, os.ErrNotExist):
		d.add("config", levelOK, "There is no configuration; it would be "+path+".", "")
		return
	}
	if f, err := userFile(d.Home); err == nil && len(ruleMistakes(f)) > 0 {
		err := ruleMistakes(f)
		d.add("config", levelPerson, "A rule cannot be used, so that every command asks: "+line(err.Error(), 300)+".", "Correct "+path+", then start anew.")
		return
	}
	d.add("config", levelOK, "The configuration is "+path+".", "")
	dir, err := os.Getwd()
	if err != nil {
		dir = d.Home
	}
	servers := configured(c)
	findings := make([]finding, len(servers))
	var wg sync.WaitGroup
	for i, s := range servers {
		wg.Go(func() { findings[i] = serverFinding(ctx, s.Client(dir), start, limits(c), log) })
	}
	wg.Wait()
	d.Findings = append(d.Findings, findings...)
}

// project looks at the configuration that this directory brings along. Servers of one that is not trusted are not even looked for.
func (d *diagnosis) project(ctx context.Context, c *cli, start bool, log zerolog.Logger) {
	s, err := here(ctx, c.db)
	switch {
	case err != nil || !s.Exists():
		return
	case s.Err != nil:
		d.add("project", levelNote, line(s.Err.Error(), 400)+".", "Correct it, or leave it: nothing of it is used.")
		return
	case !s.trusted():
		d.add("project", levelNote, fmt.Sprintf("The project's configuration %s is %s; nothing of it is used.", s.File.Path, s.state()), "holdfast trust "+shellWord(s.Dir))
		return
	}
	d.add("project", levelOK, "The project's configuration "+s.File.Path+" is trusted as it is.", "")
	user, _ := userFile(d.Home) // its mistakes are a finding already
	for _, name := range config.Collisions(user, s.File) {
		d.add("project", levelNote, fmt.Sprintf("The project's MCP server %q is left out: you have one of that name.", name), "")
	}
	more, _ := s.adds(user)
	for _, sv := range more {
		f := serverFinding(ctx, sv.Client(s.Dir), start, limits(user.Config), log)
		f.Message += " It is the project's."
		d.Findings = append(d.Findings, f)
	}
}

// serverFinding says whether a server can be used.
func serverFinding(ctx context.Context, cfg client.Config, start bool, l client.Limits, log zerolog.Logger) finding {
	f := finding{Check: "servers", Level: levelPerson, Command: "Correct the section [mcp.servers." + cfg.Name + "], or set disabled = true there."}
	if err := client.Lookup(cfg); err != nil {
		f.Message = fmt.Sprintf("The MCP server %q cannot be started: %s.", cfg.Name, line(err.Error(), 300))
		return f
	}
	if !start {
		return finding{Check: "servers", Level: levelOK, Message: fmt.Sprintf("The command of the MCP server %q is there; --start-servers tries it.", cfg.Name)}
	}
	l.Starts = 1
	var eras client.Eras
	s := client.New(cfg, client.Options{Limits: l, Log: log, Now: time.Now, Eras: &eras, Version: version})
	defer s.Close()
	s.Start()
	if err := s.Wait(ctx); err != nil {
		reason := err.Error()
		var se *client.StartError
		if errors.As(err, &se) {
			reason = se.Reason
		}
		f.Message = fmt.Sprintf("The MCP server %q could not be started: %s.", cfg.Name, line(reason, 300))
		return f
	}
	return finding{Check: "servers", Level: levelOK, Message: fmt.Sprintf("The MCP server %q starts and has %s.", cfg.Name, plural(len(s.Tools()), "tool"))}
}
