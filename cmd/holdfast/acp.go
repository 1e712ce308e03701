package main

import (
	"context"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"holdfast/acp"
	"holdfast/acp/rpc"
	"holdfast/internal/store"
	"holdfast/session"
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
			n, err := openNode(ctx, home, kindACP, model, log, func(pid int, since time.Time) { s.agent.Busy(pid, since) })
			if err != nil {
				if ctx.Err() == nil && s.refused != err.Error() { // a client that left at once is no fault; the same again is no news
					s.refused = err.Error()
					log.Error().Err(err).Msg("opening the store failed")
				}
				if session.IsBusy(err) {
					return nil, err // it is opened as soon as it can be
				}
				return nil, refusal(err)
			}
			return s.opened(n), nil
		},
		Diagnose:    s.diagnose,
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

// unavailable names what a store reports; nil for any other error.
func unavailable(err error) *acp.Unavailable {
	d := diagnose(err)
	if d == nil {
		return nil
	}
	return &acp.Unavailable{Code: d.Code, Message: d.Message, Action: d.Action, Passes: d.Code == store.CodeInUse || d.Code == store.CodeBusy}
}

// refusal is what session requests answer with while the store cannot be opened.
func refusal(err error) *acp.Unavailable {
	if d := unavailable(err); d != nil {
		return d
	}
	return &acp.Unavailable{Code: store.CodeFailed, Message: "The store could not be opened.", Action: "The log in the state directory has the cause."}
}

// acpServer is what outlives the agent: the node, and the moment from which paid work is admitted.
type acpServer struct {
	home   string
	once   sync.Once
	wanted chan struct{}
	agent  *acp.Agent
	timer  *time.Timer

	refused string // why the store could not be opened, at the last try; the agent tries once at a time

	mu   sync.Mutex
	node *node
	wg   sync.WaitGroup
}

// want admits recovery and paid work: a session request came, or the client has stayed.
func (s *acpServer) want() { s.once.Do(func() { close(s.wanted) }) }

// diagnose names what the store reports inside a request. A store that was let go of is closed for a reason.
func (s *acpServer) diagnose(err error) *acp.Unavailable {
	s.mu.Lock()
	n := s.node
	s.mu.Unlock()
	if n != nil && n.db.OutdatedBy() != nil && store.CodeOf(err) == store.CodeClosed {
		err = n.db.OutdatedBy()
	}
	return unavailable(err)
}

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
	s.wg.Go(func() {
		select {
		case <-n.outed:
			s.agent.Retire(unavailable(n.db.OutdatedBy()))
		case <-n.life.Done():
		}
	})
	n.box.OnNotice(s.agent.Notice)
	c, _ := settings(s.home) // one that cannot be used is complained about by the box
	return &acp.Backend{Engine: n.engine, Goals: n.goals, Park: time.Duration(c.Permissions.ParkMinutes * float64(time.Minute)), Servers: supplied{n.box}, Projects: n.projects, Dead: n.dead,
		Delete: n.deleteLater, Takeover: n.takeFrom, ModelError: func() error { _, err := n.model(); return err }}
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
