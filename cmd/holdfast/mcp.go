package main

import (
	"cmp"
	"context"
	"errors"
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"holdfast/internal/store"
	"holdfast/mcp/server"
)

func mcpCommand(model *string) *cobra.Command {
	var work bool
	var trust []string
	var authority string
	c := &cobra.Command{Use: "mcp", Short: "Serve goals and sessions to an MCP client over stdin and stdout", Args: noArgs,
		Long: "Serve goals and sessions to an MCP client over stdin and stdout. It stores what the client asks for; an editor's agent does the work,\n" +
			"or this process with --work.",
		RunE: func(*cobra.Command, []string) error {
			// A file that may hold the narrower setting must not be passed over.
			if home, err := homeDir(); err == nil { // without a home every tool call says so
				c, err := settings(home)
				if err != nil {
					return err
				}
				authority = cmp.Or(authority, c.MCP.Authority)
				trust = append(trust, c.MCP.Trusted...)
			}
			a, err := server.ParseAuthority(authority)
			if err != nil {
				return usageError{err}
			}
			for _, dir := range filepath.SplitList(os.Getenv("HOLDFAST_MCP_TRUST")) {
				if dir != "" {
					trust = append(trust, dir)
				}
			}
			for _, dir := range trust {
				if !filepath.IsAbs(dir) {
					return usageError{errors.New("trust " + dir + ": it must be an absolute path")}
				}
			}
			return serveMCP(*model, work, server.Options{Version: version, Authority: a, Trust: trust})
		}}
	c.Flags().BoolVar(&work, "work", false, "also execute the work, as 'holdfast acp' does")
	c.Flags().StringVar(&authority, "authority", os.Getenv("HOLDFAST_MCP_AUTHORITY"),
		"what the client may do: read, goals (default) or full; only full answers questions, settles outcomes and works without asking")
	c.Flags().StringArrayVar(&trust, "trust", nil,
		"directory in which the client may start work, besides HOLDFAST_MCP_TRUST; repeatable. Those of stored sessions are trusted already")
	return c
}

// serveMCP serves one client until the end of input or SIGTERM. Both are a disconnect: the work stays wanted.
func serveMCP(model string, work bool, o server.Options) error {
	out, err := takeStdout()
	if err != nil {
		return err
	}
	home, homeErr := homeDir()
	log, logFile := openLog(home)
	defer func() { _ = logFile.Close() }()
	m := &mcpServer{home: home, homeErr: homeErr, model: model, kind: kindMCP, log: log, wanted: make(chan struct{}), turn: make(chan struct{}, 1)}
	if work {
		m.kind = kindWork
	}
	o.Log, o.Backend, o.Diagnose = log, m.backend, diagnose
	signal.Ignore(syscall.SIGPIPE) // a client that closed its side ends the connection, not the process
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	defer stop()
	if work {
		m.wg.Go(func() { m.admit(ctx) })
	}
	server.New(o).Serve(ctx, os.Stdin, out)
	stop()
	return m.close()
}

// mcpServer is the node that tool calls share, opened by the first of them.
type mcpServer struct {
	home, model, kind string
	homeErr           error
	log               zerolog.Logger

	want   sync.Once
	wanted chan struct{} // closed by the first tool call
	turn   chan struct{} // held while the node is opened or closed
	node   *node
	closed bool
	wg     sync.WaitGroup
}

var errEnding = &server.Unavailable{Code: "store_closed", Message: "This server is ending.", Action: "Start it again."}

// backend opens the store once. A failure is looked at again by the next call, because the answer to it is to repair something.
func (m *mcpServer) backend(ctx context.Context) (*server.Backend, error) {
	m.want.Do(func() { close(m.wanted) })
	if m.homeErr != nil {
		return nil, &server.Unavailable{Code: store.CodeUnwritable, Message: m.homeErr.Error() + ".", Action: "Set HOLDFAST_HOME and start this server again."}
	}
	select {
	case m.turn <- struct{}{}:
		defer func() { <-m.turn }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	switch {
	case m.closed:
		return nil, errEnding
	case m.node == nil:
		n, err := openNode(ctx, m.home, m.kind, m.model, m.log)
		if err != nil {
			return nil, err
		}
		n.engine.SetShared(true) // whoever executes hears of what is stored here
		m.node = n
	}
	n := m.node
	if why := n.db.OutdatedBy(); why != nil {
		return nil, why
	}
	return &server.Backend{Engine: n.engine, Goals: n.goals, Executor: func(ctx context.Context) server.Executor { return m.executor(ctx, n) }}, nil
}

// executor tells who will do what was stored.
func (m *mcpServer) executor(ctx context.Context, n *node) server.Executor {
	if executes(m.kind) {
		return server.Executor{Alive: true}
	}
	alive, err := executors(ctx, m.home, n.db)
	if err != nil {
		m.log.Error().Err(err).Msg("listing the processes failed")
		return server.Executor{Hint: "It is stored; whether somebody executes it could not be found out."}
	}
	if len(alive) > 0 {
		return server.Executor{Alive: true}
	}
	return server.Executor{Hint: "It is stored, and nobody executes it now. It begins when an editor starts 'holdfast acp'; or run '" + startHint +
		"', or start this server with --work."}
}

// diagnose names what a store reports.
func diagnose(err error) *server.Unavailable {
	var open *store.OpenError
	var busy *store.BusyError
	switch code := store.CodeOf(err); {
	case code == store.CodeUnknownOutcome:
		return &server.Unavailable{Code: code, Message: "Whether it was stored is not known.",
			Action: "Look it up, or repeat it with the same idempotencyKey, expectedControlVersion or id: then nothing happens twice."}
	case errors.As(err, &open):
		return &server.Unavailable{Code: code, Message: open.Message, Action: open.Action}
	case errors.As(err, &busy):
		return &server.Unavailable{Code: code, Message: busy.Error() + ".", Action: "Call again later."}
	case code == store.CodeFull:
		return &server.Unavailable{Code: code, Message: "The disk is full.", Action: "Free some space and call again."}
	case code == store.CodeClosed:
		return errEnding
	}
	return nil
}

// admit begins to execute at the first tool call, or once the client has stayed: clients probe servers.
func (m *mcpServer) admit(ctx context.Context) {
	select {
	case <-time.After(admitAfter):
	case <-m.wanted:
	case <-ctx.Done():
		return
	}
	told := ""
	for ctx.Err() == nil {
		if _, err := m.backend(ctx); err != nil {
			if told != err.Error() { // the same again is no news
				told = err.Error()
				m.log.Error().Err(err).Msg("opening the store failed")
			}
			select {
			case <-time.After(admitAfter):
			case <-ctx.Done():
			}
			continue
		}
		m.node.recover(ctx, m.home)
		return
	}
}

func (m *mcpServer) close() error {
	m.turn <- struct{}{}
	defer func() { <-m.turn }()
	m.closed = true
	m.wg.Wait()
	if m.node == nil {
		return nil
	}
	return m.node.close()
}
