package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"holdfast/acp"
	"holdfast/acp/rpc"
	"holdfast/internal/store"
)

// admitAfter is how long paid work waits when a client has only said initialize: editors probe agents.
const admitAfter = 3 * time.Second

// serveACP serves one editor until the end of input or SIGTERM. Both are a disconnect: the work stays wanted.
func serveACP(model string) error {
	home, homeErr := homeDir()
	log, logFile := openLog(home)
	defer func() { _ = logFile.Close() }()
	s := &acpServer{home: home, wanted: make(chan struct{})}
	s.agent = acp.NewAgent(acp.Options{
		Version: version, Scripted: scripted(home, model), Now: time.Now, Log: log,
		Backend: func(ctx context.Context) (*acp.Backend, error) {
			if homeErr != nil {
				return nil, &acp.Unavailable{Code: "store_unwritable", Message: homeErr.Error() + ".", Action: "Set HOLDFAST_HOME and launch again."}
			}
			n, err := openNode(ctx, home, kindACP, model, log)
			if err != nil {
				if ctx.Err() == nil { // a client that left at once is no fault
					log.Error().Err(err).Msg("opening the store failed")
				}
				return nil, unavailable(err)
			}
			return s.opened(n), nil
		},
		Initialized: func() { s.timer = time.AfterFunc(admitAfter, s.want) },
		Wanted:      s.want,
	})
	signal.Ignore(syscall.SIGPIPE) // a client that closed its side ends the connection, not the process
	term := make(chan os.Signal, 1)
	signal.Notify(term, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	s.agent.Serve(func(h rpc.Handler) *rpc.Conn {
		conn := rpc.New(os.Stdin, os.Stdout, h)
		go func() { // ends with the process
			<-term
			_ = conn.Close()
		}()
		return conn
	})
	return s.close()
}

// unavailable turns a store that cannot be used into what session requests answer with.
func unavailable(err error) error {
	var oe *store.OpenError
	if errors.As(err, &oe) {
		return &acp.Unavailable{Code: string(oe.Code), Message: oe.Message, Action: oe.Action}
	}
	return &acp.Unavailable{Code: "store_failed", Message: "The store could not be opened.", Action: "The log in the state directory has the cause."}
}

// acpServer is what outlives the agent: the node, and the moment from which paid work is admitted.
type acpServer struct {
	home   string
	once   sync.Once
	wanted chan struct{}
	agent  *acp.Agent
	timer  *time.Timer

	mu   sync.Mutex
	node *node
	wg   sync.WaitGroup
}

// want admits recovery and paid work: a session request came, or the client has stayed.
func (s *acpServer) want() { s.once.Do(func() { close(s.wanted) }) }

func (s *acpServer) opened(n *node) *acp.Backend {
	s.mu.Lock()
	s.node = n
	s.mu.Unlock()
	ctx, cancel := context.WithCancel(context.Background())
	s.wg.Go(func() {
		defer cancel()
		<-s.wanted
		n.recover(ctx, s.home)
	})
	n.box.OnNotice(s.agent.Notice)
	c, _ := settings(s.home) // one that cannot be used is complained about by the box
	return &acp.Backend{Engine: n.engine, Goals: n.goals, Park: time.Duration(c.Permissions.ParkMinutes * float64(time.Minute)), Servers: supplied{n.box}, Projects: n.projects, Dead: n.dead,
		ModelError: func() error { _, err := n.model(); return err }}
}

func (s *acpServer) close() error {
	if s.timer != nil {
		s.timer.Stop()
	}
	s.mu.Lock()
	n := s.node
	s.mu.Unlock()
	if n == nil {
		return nil
	}
	return n.close()
}
