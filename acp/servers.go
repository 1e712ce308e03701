package acp

import (
	"context"
	"encoding/json"
	"fmt"

	"holdfast/acp/rpc"
	v1 "holdfast/acp/v1"
	"holdfast/session"
)

// Server is an MCP server that the client hands over for a session.
type Server struct {
	Name    string
	Command string
	Args    []string
	Env     []string // NAME=value
}

// Servers runs what clients hand over.
type Servers interface {
	// Supply replaces the servers of a session. It starts none.
	Supply(context.Context, session.Session, []Server) error
	// Warm starts the servers of a session in the background.
	Warm(context.Context, session.Session)
	// Release ends the servers of a session that its client closed.
	Release(session.SessionID)
}

// takeServers takes mcpServers out of the parameters and reads it entry by entry: one that cannot be used is left out and named, and the
// session is opened all the same.
func takeServers(req *rpc.Request) (servers []Server, notices []string) {
	var params map[string]json.RawMessage
	if json.Unmarshal(req.Params, &params) != nil {
		return nil, nil // the handler says what is wrong
	}
	list, given := params["mcpServers"]
	if !given {
		return nil, nil
	}
	delete(params, "mcpServers")
	req.Params = raw(params)
	var entries []json.RawMessage
	if json.Unmarshal(list, &entries) != nil {
		if string(list) != "{}" { // an empty table of a client that cannot tell it from an empty list
			notices = append(notices, "mcpServers is not a list; no MCP server is used.")
		}
		return nil, notices
	}
	for i, e := range entries {
		s, why := readServer(e)
		if why != "" {
			notices = append(notices, fmt.Sprintf("An MCP server is left out: mcpServers[%d] %s.", i, why))
			continue
		}
		servers = append(servers, s)
	}
	return servers, notices
}

func readServer(e json.RawMessage) (Server, string) {
	var m v1.McpServer
	if err := v1.Decode(e, &m); err != nil {
		return Server{}, "cannot be read: " + err.Error()
	}
	switch {
	case m.Http != nil:
		return Server{}, fmt.Sprintf("(%q) uses HTTP, which this version does not support; use a stdio server", m.Http.Name)
	case m.Sse != nil:
		return Server{}, fmt.Sprintf("(%q) uses SSE, which this version does not support; use a stdio server", m.Sse.Name)
	case m.Stdio == nil:
		return Server{}, "has a transport this version does not know; use a stdio server"
	}
	s := Server{Name: m.Stdio.Name, Command: m.Stdio.Command, Args: m.Stdio.Args}
	for _, v := range m.Stdio.Env {
		s.Env = append(s.Env, v.Name+"="+v.Value)
	}
	return s, ""
}

// supply hands the servers of a request over.
func (a *Agent) supply(ctx context.Context, b *Backend, s session.Session, servers []Server, notices []string) error {
	for _, n := range notices {
		a.Notice(s.ID, n)
	}
	if b.Servers == nil {
		return nil
	}
	return b.Servers.Supply(ctx, s, servers)
}

// Notice tells the client of a session something that is not part of the history, at a moment when it will be shown.
func (a *Agent) Notice(id session.SessionID, text string) {
	a.mu.Lock()
	a.untold[id] = append(a.untold[id], text)
	f := a.open[id]
	a.mu.Unlock()
	if f != nil {
		select {
		case f.untold <- struct{}{}:
		default:
		}
	}
}

// tell shows what was not told yet. A client without notices gets a line once a prompt is open: many drop or mark what comes at other times.
func (f *follower) tell() {
	f.a.mu.Lock()
	if f.isQuiet() || !f.a.notices && len(f.prompts)+len(f.held) == 0 {
		f.a.mu.Unlock()
		return
	}
	texts := f.a.untold[f.id]
	delete(f.a.untold, f.id)
	f.a.mu.Unlock()
	for _, t := range texts {
		f.notice(t)
	}
}

// notice shows a line that is about processes and not part of the history.
func (f *follower) notice(text string) {
	if f.a.notices { // set once, by initialize
		f.send(update{Notice: &v1.Notice{Severity: v1.NoticeSeverityWarning, Title: text}})
		return
	}
	f.send(textChunk(session.ItemMarker, session.ItemID(f.b.Engine.NewID()), text+"\n"))
}
