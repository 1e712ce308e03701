package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
)

// Aside is a tool that is not offered.
type Aside struct{ Tool, Reason string }

// page is one page of a raw list.
type page struct {
	Tools []json.RawMessage `json:"tools"`
	Next  string            `json:"nextCursor"`
}

// list reads the whole list as it comes, tool by tool: one that cannot be used costs nobody else anything.
func (c *conn) list(ctx context.Context) ([]Tool, []Aside, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, c.s.lim.List, fmt.Errorf("the list of tools did not come within %s", c.s.lim.List))
	defer cancel()
	ctx, stop := c.alive(ctx)
	defer stop()
	var raw []json.RawMessage
	seen := map[string]bool{}
	for cursor, n := "", 1; ; n++ {
		p, err := c.page(ctx, cursor)
		if err != nil {
			return nil, nil, err
		}
		raw = append(raw, p.Tools...)
		if p.Next == "" {
			break
		}
		if seen[p.Next] || n >= c.s.lim.Pages || len(raw) > c.s.lim.Tools {
			return c.sort(raw, fmt.Sprintf("the list does not end; only its first %d entries were read", len(raw)))
		}
		seen[p.Next] = true
		cursor = p.Next
	}
	return c.sort(raw, "")
}

func (c *conn) page(ctx context.Context, cursor string) (page, error) {
	x := newExchange()
	ctx = context.WithValue(ctx, ticketKey{}, x)
	r := mcp.ListToolsRequest{}
	r.Params.Cursor = mcp.Cursor(cursor)
	if _, err := c.lib.ListToolsByPage(ctx, r); err != nil {
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		var e envelope
		if c.isBroken() || json.Unmarshal(c.raw(x), &e) != nil || len(e.Error) == 0 || c.lib.GetServerCapabilities().Tools != nil {
			return page{}, fmt.Errorf("the tools could not be listed: %w", err)
		}
		return page{}, nil // it has never claimed to have any
	}
	var e envelope
	var p page
	if err := json.Unmarshal(c.raw(x), &e); err != nil {
		return page{}, err
	}
	if err := json.Unmarshal(e.Result, &p); err != nil {
		return page{}, errors.New("the list of tools is not a list")
	}
	return p, nil
}

// sort makes tools of definitions and puts aside what cannot be one.
func (c *conn) sort(raw []json.RawMessage, notice string) ([]Tool, []Aside, error) {
	var tools []Tool
	var aside []Aside
	taken := map[string]bool{}
	for i, def := range raw {
		t, err := Rebuild(c.s.cfg.Name, def)
		switch {
		case i >= c.s.lim.Tools:
			err = fmt.Errorf("the server has more than %d tools", c.s.lim.Tools)
		case err == nil && taken[t.Exposed]:
			err = errors.New("the server has another tool of this name")
		}
		if err != nil {
			aside = append(aside, Aside{Tool: label(def, i), Reason: err.Error()})
			if i >= c.s.lim.Tools {
				break
			}
			continue
		}
		taken[t.Exposed] = true
		tools = append(tools, t)
	}
	if notice != "" {
		aside = append(aside, Aside{Reason: notice})
	}
	slices.SortFunc(tools, func(a, b Tool) int { return strings.Compare(a.Exposed, b.Exposed) })
	return tools, aside, nil
}

// label names a definition that may have no name.
func label(def json.RawMessage, i int) string {
	var t struct {
		Name string `json:"name"`
	}
	if json.Unmarshal(def, &t); t.Name != "" {
		return head(t.Name, 128)
	}
	return fmt.Sprintf("number %d of the list", i+1)
}

func (s *Server) firstList(ctx context.Context, c *conn) error {
	covers := c.notices()
	tools, aside, err := c.list(ctx)
	if err != nil {
		return err
	}
	s.adopt(c, tools, aside, covers)
	return nil
}

// settle keeps a server that changes its list all the time from keeping us busy: the n-th list in a row waits a little longer.
func (c *conn) settle(n int) {
	t := time.NewTimer(min(time.Duration(n*n)*time.Millisecond, time.Second))
	defer t.Stop()
	select {
	case <-t.C:
	case <-c.broken:
	case <-c.s.ctx.Done():
	}
}

// relist reads the list again after a notice. A server that cannot say what it has is not used any more.
func (s *Server) relist(c *conn) bool {
	covers := c.notices()
	tools, aside, err := c.list(s.ctx)
	if err != nil {
		c.fail("the changed list of tools could not be read")
		return false
	}
	s.adopt(c, tools, aside, covers)
	return true
}

func (s *Server) adopt(c *conn, tools []Tool, aside []Aside, covers int64) {
	c.mu.Lock()
	c.listed = covers
	c.mu.Unlock()
	s.mu.Lock()
	same := slices.EqualFunc(s.tools, tools, func(a, b Tool) bool { return a.Exposed == b.Exposed && a.Hash == b.Hash && bytes.Equal(a.Raw, b.Raw) }) &&
		slices.Equal(s.aside, aside)
	s.tools, s.aside = tools, aside
	close(s.moved)
	s.moved = make(chan struct{})
	s.mu.Unlock()
	if !same && s.opts.Changed != nil {
		s.later(s.opts.Changed)
	}
}

func (c *conn) notices() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.notified
}
