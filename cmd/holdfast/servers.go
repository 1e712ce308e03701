package main

import (
	"context"
	"os"
	"slices"
	"strings"
	"time"

	"holdfast/acp"
	"holdfast/internal/config"
	"holdfast/mcp/client"
	"holdfast/mcp/toolbox"
	"holdfast/session"
)

// letGoServers is how long a server may take to end by itself when its session or this process ends, and again after SIGTERM.
const letGoServers = 300 * time.Millisecond

// lateGrace is how long the end of a call waits for an answer after a cancel or a timeout. A later one is taken in all the same.
const lateGrace = 500 * time.Millisecond

// newBox makes what runs external servers, from the user's configuration. A configuration that cannot be used is told to every session.
func newBox(home string, o toolbox.Options) *toolbox.Box {
	c, err := settings(home)
	if err != nil {
		o.Log.Error().Err(err).Msg("the configuration is ignored")
		o.Complaint = err
	}
	o.Configured, o.Limits = configured(c), limits(c)
	o.StateDir, o.Version = home, version
	return toolbox.New(o)
}

// passedOn names the variables that the user gives to servers without writing their values down.
func passedOn(c config.Config) (names []string) {
	for _, s := range c.MCP.Servers {
		names = append(names, s.EnvFrom...)
	}
	return names
}

// configured lists the servers of a configuration that are not disabled, by name.
func configured(c config.Config) (out []toolbox.Server) {
	for name, s := range c.MCP.Servers {
		if !s.Disabled {
			out = append(out, toolbox.Server{Name: name, Command: s.Command, Args: s.Args, Env: s.Environ(os.LookupEnv)})
		}
	}
	slices.SortFunc(out, func(a, b toolbox.Server) int { return strings.Compare(a.Name, b.Name) })
	return out
}

func limits(c config.Config) client.Limits {
	seconds := func(n int64) time.Duration { return time.Duration(n) * time.Second }
	l := c.MCP.Limits
	return client.Limits{Start: seconds(l.Start), Idle: seconds(l.Idle), Call: seconds(l.Call), Grace: lateGrace, EOF: letGoServers, Term: letGoServers}
}

// supplied gives the toolbox what an editor hands over; the two adapters do not know each other.
type supplied struct{ *toolbox.Box }

func (s supplied) Supply(ctx context.Context, sess session.Session, servers []acp.Server) error {
	out := make([]toolbox.Server, len(servers))
	for i, sv := range servers {
		out[i] = toolbox.Server(sv)
	}
	return s.Box.Supply(ctx, sess, out)
}
