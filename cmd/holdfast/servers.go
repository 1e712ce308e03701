package main

import (
	"context"
	"os"
	"slices"
	"strings"

	"holdfast/acp"
	"holdfast/internal/config"
	"holdfast/mcp/toolbox"
	"holdfast/session"
)

// settings reads the user's configuration. An error is a *config.Error; what it returns then is empty.
func settings(home string) (config.Config, error) {
	return config.Load(config.Path(home, userHome()))
}

// configured lists the MCP servers of the user's configuration, by name.
func configured(home string) ([]toolbox.Server, error) {
	c, err := settings(home)
	if err != nil {
		return nil, err
	}
	var out []toolbox.Server
	for name, s := range c.MCP.Servers {
		if !s.Disabled {
			out = append(out, toolbox.Server{Name: name, Command: s.Command, Args: s.Args, Env: s.Environ(os.LookupEnv)})
		}
	}
	slices.SortFunc(out, func(a, b toolbox.Server) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
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
