package toolbox

import (
	"context"
	"slices"
	"strings"
	"time"

	"holdfast/mcp/client"
	"holdfast/session"
)

// offerWait is how long the first request of a session waits for servers that are starting. A slower one joins when it is ready.
const offerWait = 10 * time.Second

// Offer returns the tools of a session, sorted by name. Tools of a missing server stay in the list. What is offered was stored before: a
// model's call of it finds it after a crash.
func (b *Box) Offer(ctx context.Context, s session.Session) []session.Tool {
	bu := b.ready(ctx, s)
	if bu == nil {
		return nil
	}
	b.mu.Lock()
	now := b.sessions[s.ID]
	b.mu.Unlock()
	if now != nil {
		b.store(ctx, s.ID, now)
	}
	var out []session.Tool
	seen := map[string]bool{}
	for _, h := range bu {
		for _, t := range h.tools() {
			if !seen[t.Exposed] { // two servers whose names become the same: the first keeps it
				seen[t.Exposed] = true
				out = append(out, &tool{box: b, def: t, held: h})
			}
		}
	}
	slices.SortFunc(out, func(x, y session.Tool) int { return strings.Compare(x.Spec().Name, y.Spec().Name) })
	return out
}

// ready starts what a session has and waits, the first time, until it is there or has failed.
func (b *Box) ready(ctx context.Context, s session.Session) []*held {
	b.Warm(ctx, s)
	bu, err := b.bundle(ctx, s)
	if err != nil {
		return nil // logged by Warm
	}
	b.mu.Lock()
	servers, wait, unsaved := slices.Clone(bu.servers), !bu.waited, bu.unsaved
	bu.waited = true
	b.mu.Unlock()
	if unsaved { // the session has come here since
		b.store(ctx, s.ID, bu)
	}
	if wait {
		limited, cancel := context.WithTimeout(ctx, offerWait)
		defer cancel()
		for _, h := range servers {
			if h.server != nil {
				_ = h.server.Wait(limited) // attend tells why one is not there
			}
		}
	}
	return servers
}

// tools lists what a server has, or had when it was last here.
func (h *held) tools() []client.Tool {
	if h.server != nil {
		return h.server.Tools()
	}
	var out []client.Tool
	for _, raw := range h.def.Tools {
		if t, err := client.Rebuild(h.name, raw); err == nil {
			out = append(out, t)
		}
	}
	return out
}

// Find returns one tool by the name the model knows.
func (b *Box) Find(ctx context.Context, s session.Session, name string) session.Tool {
	if !strings.HasPrefix(name, "mcp__") {
		return nil
	}
	for _, h := range b.ready(ctx, s) {
		for _, t := range h.tools() {
			if t.Exposed == name {
				return &tool{box: b, def: t, held: h}
			}
		}
	}
	return nil
}

// Missing names the server of a tool that only a client can bring back.
func (b *Box) Missing(ctx context.Context, s session.Session, name string) string {
	if !strings.HasPrefix(name, "mcp__") {
		return ""
	}
	bu, err := b.bundle(ctx, s)
	if err != nil {
		return ""
	}
	for _, h := range bu.servers {
		if h.server != nil {
			continue
		}
		for _, t := range h.tools() {
			if t.Exposed == name {
				return h.name
			}
		}
	}
	return ""
}
