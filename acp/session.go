package acp

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"holdfast/acp/rpc"
	v1 "holdfast/acp/v1"
	"holdfast/internal/fault"
	"holdfast/session"
)

// checkRoots validates the directories of a session: absolute, existing, the cwd first.
func checkRoots(cwd string, more []string) ([]string, error) {
	roots := []string{}
	for i, dir := range append([]string{cwd}, more...) {
		member := "cwd"
		if i > 0 {
			member = fmt.Sprintf("additionalDirectories[%d]", i-1)
		}
		if !filepath.IsAbs(dir) {
			return nil, &invalid{member, fmt.Sprintf("%q is not an absolute path", dir)}
		}
		st, err := os.Stat(dir)
		switch {
		case errors.Is(err, os.ErrNotExist):
			return nil, &invalid{member, fmt.Sprintf("the directory %s does not exist; create it or name another", dir)}
		case err != nil:
			return nil, &invalid{member, fmt.Sprintf("the directory %s cannot be read", dir)}
		case !st.IsDir():
			return nil, &invalid{member, dir + " is not a directory"}
		}
		roots = append(roots, filepath.Clean(dir))
	}
	return roots, nil
}

func (a *Agent) needModel(b *Backend) error {
	if err := b.ModelError(); err != nil {
		return &AuthRequired{Message: err.Error()}
	}
	return nil
}

// needModelOf is needModel for a session, which may have a model of its own.
func (a *Agent) needModelOf(ctx context.Context, b *Backend, id session.SessionID) error {
	s, err := a.stored(ctx, b, id)
	if err != nil {
		return err
	}
	if s.Choice.Model == "" {
		return a.needModel(b)
	}
	if _, err := b.Engine.ModelFor(session.Profile{Chosen: s.Choice.Model}); err != nil {
		return &AuthRequired{Message: fmt.Sprintf("This session's model is %s, which cannot be asked here. %s", s.Choice.Model, err.Error())}
	}
	return nil
}

func (a *Agent) newSession(ctx context.Context, b *Backend, req *rpc.Request) error {
	servers, notices := takeServers(req)
	p, err := parse[v1.NewSessionRequest](req)
	if err != nil {
		return err
	}
	roots, err := checkRoots(string(p.Cwd), p.AdditionalDirectories)
	if err != nil {
		return err
	}
	if err := a.needModel(b); err != nil {
		return err
	}
	s, err := a.create(ctx, b, roots)
	if err != nil {
		return err
	}
	if err := a.supply(ctx, b, s, servers, notices); err != nil {
		return err
	}
	if fault.Without("answer_first") {
		a.notify(s.ID, commandsUpdate())
	}
	f := a.publish(b, s, s.LastSeq, func() { req.Reply(a.newSessionResult(b, s)) })
	f.post(f.begin)
	a.warm(ctx, b, s)
	return nil
}

func (a *Agent) create(ctx context.Context, b *Backend, roots []string) (session.Session, error) {
	a.introduce(b)
	return b.Engine.NewSession(ctx, session.Session{Cwd: roots[0], Roots: roots})
}

// introduce tells the engine whom it works for.
func (a *Agent) introduce(b *Backend) {
	a.mu.Lock()
	defer a.mu.Unlock()
	b.Engine.For(a.client)
}

// publish begins to follow a session and answers. A new session needs no silence beyond the order: the answer first.
func (a *Agent) publish(b *Backend, s session.Session, from int64, answer func()) *follower {
	f := a.newFollower(b, s)
	f.seq = from
	a.mu.Lock()
	old := a.open[s.ID]
	a.open[s.ID] = f
	a.mu.Unlock()
	if old != nil {
		old.stop()
		<-old.gone
		f.prompts, f.held, f.own, f.cancel = old.prompts, old.held, old.own, old.cancel
	}
	if answer != nil {
		answer()
	}
	a.wg.Go(f.loop)
	return f
}

func (a *Agent) loadSession(ctx context.Context, b *Backend, req *rpc.Request) error {
	servers, notices := takeServers(req)
	p, err := parse[v1.LoadSessionRequest](req)
	if err != nil {
		return err
	}
	return a.reopen(ctx, b, req, reopening{session.SessionID(p.SessionID), string(p.Cwd), p.AdditionalDirectories, servers, notices, true})
}

func (a *Agent) resumeSession(ctx context.Context, b *Backend, req *rpc.Request) error {
	servers, notices := takeServers(req)
	p, err := parse[v1.ResumeSessionRequest](req)
	if err != nil {
		return err
	}
	return a.reopen(ctx, b, req, reopening{session.SessionID(p.SessionID), string(p.Cwd), p.AdditionalDirectories, servers, notices, false})
}

// reopening is what session/load and session/resume ask for.
type reopening struct {
	id      session.SessionID
	cwd     string
	more    []string
	servers []Server
	notices []string
	replay  bool
}

// reopen opens a stored session: the replay first when it was asked for, then the answer, then silence for a moment. The servers are
// there before the session's work is looked at again: it may wait for them.
func (a *Agent) reopen(ctx context.Context, b *Backend, req *rpc.Request, p reopening) error {
	id, replay := p.id, p.replay
	s, err := a.stored(ctx, b, id)
	if err != nil {
		return err
	}
	var roots []string
	if p.cwd != "" {
		if filepath.Clean(p.cwd) != s.Cwd {
			return &invalid{"cwd", fmt.Sprintf("the session belongs to %s; open it there", s.Cwd)}
		}
		// A directory that is gone does not keep the history from being read: the work waits, the user sees why.
		if roots, err = checkRoots(p.cwd, p.more); err != nil && len(p.more) > 0 {
			return err
		}
	}
	s, busy := a.attach(ctx, b, s, p, roots)
	if busy != nil && !session.IsBusy(busy) {
		return busy
	}
	if old := a.follower(id); old != nil {
		old.stop()
		<-old.gone
	}
	var open []session.Item
	err = b.Engine.Store.Read(ctx, func(tx session.Tx) error {
		if s, err = tx.Session(id); err != nil {
			return err
		}
		open, err = tx.OpenItems(id)
		return err
	})
	if err != nil {
		return err
	}
	f := a.publish(b, s, s.LastSeq, nil)
	f.post(func() {
		if err := f.before(s.LastSeq, open, replay); err != nil {
			a.drop(f)
			req.Fail(toError(err, id))
			return
		}
		req.Reply(a.openResult(b, s))
		f.hush()
		if busy != nil {
			f.after(quiet, func() { f.attachLater(s, p, roots, busy) })
		}
	})
	return nil
}

// warm starts the servers of a session that this process executes.
func (a *Agent) warm(ctx context.Context, b *Backend, s session.Session) {
	if b.Servers != nil && b.Engine.Owns(s.ID) {
		b.Servers.Warm(ctx, s)
	}
}

// stored returns a session or the error clients know.
func (a *Agent) stored(ctx context.Context, b *Backend, id session.SessionID) (s session.Session, err error) {
	if id == "" {
		return s, &invalid{"sessionId", "name the session"}
	}
	err = b.Engine.Store.Read(ctx, func(tx session.Tx) error { s, err = tx.Session(id); return err })
	if err == nil && s.Broken == session.CodeUnreadable {
		err = &session.RecordError{Code: s.Broken, Session: id, Record: "session " + string(id)}
	}
	return s, err
}

const listPage = 50

func (a *Agent) listSessions(ctx context.Context, b *Backend, req *rpc.Request) error {
	p, err := parse[v1.ListSessionsRequest](req)
	if err != nil {
		return err
	}
	_, err = session.ParseCursor(deref(p.Cursor))
	if err != nil {
		return &invalid{"cursor", "this cursor is not from session/list; ask for the first page"}
	}
	cwd := deref(p.Cwd)
	if cwd != "" {
		if !filepath.IsAbs(cwd) {
			return &invalid{"cwd", fmt.Sprintf("%q is not an absolute path", cwd)}
		}
		cwd = filepath.Clean(cwd)
	}
	var page []session.SessionView
	next := ""
	err = b.Engine.Store.Read(ctx, func(tx session.Tx) error {
		page, next, err = session.ListSessions(tx, cwd, deref(p.Cursor), listPage)
		return err
	})
	if err != nil {
		return err
	}
	req.Reply(listResult(page, next))
	return nil
}

func (a *Agent) closeSession(ctx context.Context, b *Backend, req *rpc.Request) error {
	p, err := parse[v1.CloseSessionRequest](req)
	if err != nil {
		return err
	}
	id := session.SessionID(p.SessionID)
	if _, err := a.stored(ctx, b, id); err != nil {
		return err
	}
	if err := b.Engine.CloseSession(ctx, id); err != nil {
		return err
	}
	a.letGo(b, id)
	req.Reply(map[string]any{})
	return nil
}

// letGo ends what this connection has of a session: its open prompts, its following, and the servers that were there for it.
func (a *Agent) letGo(b *Backend, id session.SessionID) {
	a.mu.Lock()
	f := a.open[id]
	delete(a.open, id)
	a.mu.Unlock()
	if f != nil {
		done := make(chan struct{})
		f.post(func() { f.answerAll("cancelled"); close(done) })
		select {
		case <-done:
		case <-f.gone:
		}
		f.stop()
		<-f.gone
	}
	if b.Servers != nil {
		b.Servers.Release(id)
	}
}

// answerAll answers every open prompt.
func (f *follower) answerAll(stop string) {
	for id, p := range f.prompts {
		delete(f.prompts, id)
		p.answer(f, stop)
	}
	for _, p := range f.held {
		p.answer(f, stop)
	}
	f.held = nil
}

func (a *Agent) setMode(ctx context.Context, b *Backend, req *rpc.Request) error {
	p, err := parse[v1.SetSessionModeRequest](req)
	if err != nil {
		return err
	}
	id := session.SessionID(p.SessionID)
	if _, err := a.stored(ctx, b, id); err != nil {
		return err
	}
	for _, m := range session.Modes {
		if string(m) == string(p.ModeID) {
			if f := a.follower(id); f != nil {
				f.post(func() { f.mode = m }) // the client knows what it set
			}
			if err := b.Engine.SetMode(ctx, id, m); err != nil {
				return err
			}
			req.Reply(map[string]any{})
			return nil
		}
	}
	return &invalid{"modeId", fmt.Sprintf("%q is not a mode; the modes are ask, edit, auto and plan", p.ModeID)}
}

// deref reads an optional string.
func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
