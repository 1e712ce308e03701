package toolbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"holdfast/internal/secret"
	"holdfast/mcp/client"
	"holdfast/session"
)

// Options of a Box.
type Options struct {
	Configured []Server // of the user's configuration
	// Project says what the project of a session adds to them right now, and what the user has to be told about it; nil adds nothing.
	// After an error everything stays as it is.
	Project   func(context.Context, session.Session) ([]ProjectServer, []string, error)
	Complaint error  // why the configuration is not used; every session is told once
	Key       []byte // of the digests of definitions
	StateDir  string
	Instance  session.InstanceID
	Store     session.Store
	// Takes tells whether this process owns a session, or does once it is opened, and whether it has work that other clients began. Only
	// an owner says what is stored. Nil is an owner without such work.
	Takes   func(context.Context, session.SessionID) (takes, others bool, err error)
	Resolve func(context.Context, session.Send, session.Output) error // stores a late answer
	Limits  client.Limits
	Version string // ours, as told to servers
	NewID   func() string
	Log     zerolog.Logger
	Mask    *secret.Masker // of the process; learns the values of every server
}

// Box runs the servers of every session of this process. Close waits for everything it started.
type Box struct {
	Options
	eras   client.Eras // which definition speaks what
	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup

	storing sync.Mutex // whoever changes stored definitions; taken before mu

	mu       sync.Mutex
	closed   bool
	sessions map[session.SessionID]*bundle
	shared   map[string]*held // configured servers by directory and digest
	notice   func(session.SessionID, string)
}

// bundle is what one session has.
type bundle struct {
	servers  []*held
	supplied bool            // by a client of this process; otherwise what the store knows
	waited   bool            // the first offer has waited for the slow ones
	warned   bool            // of the configuration
	told     map[string]bool // what was said once
	unsaved  bool            // another process had the session when they were supplied: they are not stored
	pending  bool            // a changed tool list is about to be stored
}

// held is one server of a session. server is nil when it is missing.
type held struct {
	name   string
	digest string
	server *client.Server
	veil   *secret.Masker    // of what it answers
	def    session.ServerDef // of a supplied one
	config bool
	key    string // of one of a project, "" otherwise
	uses   int    // sessions of a shared one
}

// New returns a box that has started nothing.
func New(o Options) *Box {
	ctx, cancel := context.WithCancel(context.Background())
	if o.Mask == nil {
		o.Mask = secret.New()
	}
	return &Box{Options: o, ctx: ctx, cancel: cancel, sessions: map[session.SessionID]*bundle{}, shared: map[string]*held{}}
}

var _ session.Toolbox = (*Box)(nil)

// OnNotice says who is told what was left out. It is called from goroutines of the box and must not block.
func (b *Box) OnNotice(fn func(session.SessionID, string)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.notice = fn
}

func (b *Box) tell(id session.SessionID, format string, args ...any) {
	b.mu.Lock()
	fn := b.notice
	text := b.Mask.Text(fmt.Sprintf(format, args...))
	if bu := b.sessions[id]; bu != nil {
		if bu.told[text] {
			b.mu.Unlock()
			return
		}
		if bu.told == nil {
			bu.told = map[string]bool{}
		}
		bu.told[text] = true
	}
	b.mu.Unlock()
	b.Log.Warn().Str("session_id", string(id)).Str("notice", text).Msg("an MCP server or tool is left out")
	if fn != nil {
		fn(id, text)
	}
}

// Supply replaces the servers that a client supplied for a session. Those that are the same keep running. Nothing is started yet.
func (b *Box) Supply(ctx context.Context, s session.Session, servers []Server) error {
	b.storing.Lock()
	defer b.storing.Unlock()
	old, err := b.known(ctx, s.ID)
	if err != nil {
		return err
	}
	takes, others, err := b.takes(ctx, s.ID)
	if err != nil {
		return err
	}
	next := &bundle{supplied: true, unsaved: !takes}
	var defs []session.ServerDef
	seen := map[string]bool{}
	for _, sv := range servers {
		if why := faulty(sv, seen); why != "" {
			b.tell(s.ID, "An MCP server is left out: %s.", why)
			continue
		}
		seen[sv.Name] = true
		def := sv.stored(b.Key)
		if i := slices.IndexFunc(old, func(d session.ServerDef) bool { return d.Name == def.Name && d.Digest == def.Digest }); i >= 0 {
			def.Tools = old[i].Tools
		}
		defs = append(defs, def)
		next.servers = append(next.servers, &held{name: sv.Name, digest: def.Digest, def: def})
	}
	if !takes || others { // work that goes on elsewhere, or waits, began with these: a call of one waits for the window that has it
		for _, d := range old {
			if !seen[d.Name] {
				defs = append(defs, d)
				next.servers = append(next.servers, &held{name: d.Name, digest: d.Digest, def: d})
			}
		}
	}
	if takes && !slices.EqualFunc(old, defs, func(x, y session.ServerDef) bool { return x.Name == y.Name && x.Digest == y.Digest }) {
		if err := b.Store.Commit(ctx, "servers.supplied", func(tx session.Tx) error { return tx.PutServers(s.ID, defs) }); err != nil {
			return fmt.Errorf("store the MCP servers of the session: %w", err)
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return nil
	}
	before := b.sessions[s.ID]
	for i, h := range next.servers {
		if before != nil {
			if j := slices.IndexFunc(before.servers, func(o *held) bool { return !o.config && o.digest == h.digest && o.name == h.name && o.server != nil }); j >= 0 {
				next.servers[i] = before.servers[j]
				before.servers = slices.Delete(before.servers, j, j+1)
				continue
			}
		}
		at := slices.IndexFunc(servers, func(x Server) bool { return x.Name == h.name })
		if at < 0 {
			continue // only known
		}
		sv := servers[at]
		b.arm(h, sv, s.Cwd, func() { b.changed(s.ID, h) })
	}
	if before != nil {
		b.drop(before)
	}
	b.configure(next, s)
	b.sessions[s.ID] = next
	return nil
}

func (b *Box) takes(ctx context.Context, id session.SessionID) (takes, others bool, err error) {
	if b.Takes == nil {
		return true, false, nil
	}
	return b.Takes(ctx, id)
}

// faulty says why a definition cannot be used.
func faulty(s Server, seen map[string]bool) string {
	switch {
	case strings.TrimSpace(s.Name) == "":
		return "it has no name"
	case strings.TrimSpace(s.Command) == "":
		return fmt.Sprintf("%q has no command", s.Name)
	case seen[s.Name]:
		return fmt.Sprintf("the name %q is used twice", s.Name)
	case strings.ContainsRune(s.Command+s.Name+strings.Join(s.Args, "")+strings.Join(s.Env, ""), 0):
		return fmt.Sprintf("%q has a zero byte in its definition", s.Name)
	}
	return ""
}

// known is what the store has for a session.
func (b *Box) known(ctx context.Context, id session.SessionID) (defs []session.ServerDef, err error) {
	err = b.Store.Read(ctx, func(tx session.Tx) error { defs, err = tx.Servers(id); return err })
	if err != nil {
		return nil, fmt.Errorf("load the MCP servers of the session: %w", err)
	}
	return defs, nil
}

// arm gives h a server that has not been started. b.mu is held.
func (b *Box) arm(h *held, s Server, dir string, changed func()) {
	veil := s.veil()
	h.veil = veil
	b.Mask.Add(s.everywhere()...)
	late := func(ticket string, a client.Answer) { b.late(ticket, veiled(a, veil, b.Mask)) }
	h.server = client.New(s.Client(dir),
		client.Options{Limits: b.Limits, Tag: string(b.Instance), Children: ChildrenFile(b.StateDir, string(b.Instance)), Late: late, Changed: changed,
			Log: b.Log, Now: time.Now, Eras: &b.eras, Version: b.Version})
}

// ChildrenFile is where an instance notes the server processes it starts, so that they can be ended after it died.
func ChildrenFile(home, instance string) string {
	return filepath.Join(home, "run", instance+".children")
}

// configure adds the configured servers, shared by directory. What the client supplied under the same name wins. b.mu is held.
func (b *Box) configure(bu *bundle, s session.Session) {
	for _, sv := range b.Configured {
		if slices.ContainsFunc(bu.servers, func(h *held) bool { return h.name == sv.Name }) {
			continue
		}
		digest := sv.digest(b.Key)
		key := s.Cwd + "\x00" + digest
		h := b.shared[key]
		if h == nil {
			h = &held{name: sv.Name, digest: digest, config: true}
			b.arm(h, sv, s.Cwd, func() {})
			b.shared[key] = h
		}
		h.uses++
		bu.servers = append(bu.servers, h)
	}
}

// bundle returns what a session has; without a client it is what the store knows, and the configured servers.
func (b *Box) bundle(ctx context.Context, s session.Session) (*bundle, error) {
	b.mu.Lock()
	bu := b.sessions[s.ID]
	b.mu.Unlock()
	if bu != nil {
		return bu, nil
	}
	defs, err := b.known(ctx, s.ID)
	if err != nil {
		return nil, err
	}
	bu = &bundle{}
	for _, d := range defs {
		bu.servers = append(bu.servers, &held{name: d.Name, digest: d.Digest, def: d})
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if other := b.sessions[s.ID]; other != nil {
		return other, nil
	}
	if b.closed {
		return &bundle{}, nil
	}
	b.configure(bu, s)
	b.sessions[s.ID] = bu
	return bu, nil
}

// Warm starts the servers of a session in the background.
func (b *Box) Warm(ctx context.Context, s session.Session) {
	bu, err := b.bundle(ctx, s)
	if err != nil {
		b.Log.Error().Err(err).Str("session_id", string(s.ID)).Msg("loading MCP servers failed")
		return
	}
	b.adopt(s, bu)
	b.mu.Lock()
	warn := b.Complaint != nil && !bu.warned
	bu.warned = true
	b.mu.Unlock()
	if warn {
		b.tell(s.ID, "%v.", b.Complaint)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, h := range bu.servers {
		if h.server == nil || b.closed || h.server.State().Phase != client.Stopped {
			continue
		}
		h.server.Start()
		b.wg.Go(func() { b.attend(s.ID, h) })
	}
}

// attend tells what became of the start of a server, and stores what tools it has.
func (b *Box) attend(id session.SessionID, h *held) {
	if err := h.server.Wait(b.ctx); err != nil {
		var se *client.StartError
		if b.ctx.Err() == nil && errors.As(err, &se) {
			b.tell(id, "The MCP server %q could not be started: %s. Its tools are left out.", h.name, se.Reason)
		}
		return
	}
	b.changed(id, h)
}

// changed looks at a tool list that is new.
func (b *Box) changed(id session.SessionID, h *held) {
	for _, a := range h.server.Aside() {
		b.tell(id, "The tool %q of the MCP server %q is left out: %s.", a.Tool, h.name, a.Reason)
	}
	if h.config {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	bu := b.sessions[id]
	if bu == nil || bu.pending || b.closed {
		return
	}
	bu.pending = true
	b.wg.Go(func() { // servers become ready together: one write for all
		select {
		case <-time.After(200 * time.Millisecond):
		case <-b.ctx.Done():
			return
		}
		b.mu.Lock()
		bu.pending = false
		b.mu.Unlock()
		b.store(b.ctx, id, bu)
	})
}

// store keeps the definitions that the supplied servers of a session have listed.
func (b *Box) store(ctx context.Context, id session.SessionID, bu *bundle) {
	b.storing.Lock()
	defer b.storing.Unlock()
	if takes, _, err := b.takes(ctx, id); err != nil || !takes {
		return // what is stored is the owner's
	}
	b.mu.Lock()
	var defs []session.ServerDef
	dirty := bu.unsaved
	for _, h := range bu.servers {
		if h.config {
			continue
		}
		def := h.def
		if h.server != nil {
			if raw := rawOf(h.server.Tools()); len(raw) > 0 && !slices.EqualFunc(raw, def.Tools, func(x, y json.RawMessage) bool { return string(x) == string(y) }) {
				def.Tools, dirty = raw, true
			}
		}
		defs = append(defs, def)
	}
	dirty = dirty && b.sessions[id] == bu // what replaced it stores its own
	b.mu.Unlock()
	if !dirty {
		return
	}
	if err := b.Store.Commit(ctx, "servers.listed", func(tx session.Tx) error { return tx.PutServers(id, defs) }); err != nil {
		if ctx.Err() == nil {
			b.Log.Error().Err(err).Str("session_id", string(id)).Msg("storing a tool list failed")
		}
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	bu.unsaved = false
	for _, h := range bu.servers {
		if i := slices.IndexFunc(defs, func(d session.ServerDef) bool { return d.Name == h.name }); i >= 0 && !h.config {
			h.def = defs[i]
		}
	}
}

func rawOf(tools []client.Tool) (out []json.RawMessage) {
	for _, t := range tools {
		out = append(out, t.Raw)
	}
	return out
}

// Release ends the servers of a session that its client closed.
func (b *Box) Release(id session.SessionID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if bu := b.sessions[id]; bu != nil {
		delete(b.sessions, id)
		b.drop(bu)
	}
}

// drop ends servers nobody uses any more. b.mu is held.
func (b *Box) drop(bu *bundle) {
	for _, h := range bu.servers {
		b.letGo(h)
	}
}

// letGo ends one server of a session unless another one has it too. b.mu is held.
func (b *Box) letGo(h *held) {
	if h.config {
		if h.uses--; h.uses > 0 {
			return
		}
		for key, o := range b.shared {
			if o == h {
				delete(b.shared, key)
			}
		}
	}
	if h.server != nil {
		b.wg.Go(h.server.Close)
	}
}

// Close ends every server, side by side, and waits.
func (b *Box) Close() {
	b.mu.Lock()
	b.closed = true
	for id, bu := range b.sessions {
		delete(b.sessions, id)
		b.drop(bu)
	}
	b.mu.Unlock()
	b.cancel()
	b.wg.Wait()
}
