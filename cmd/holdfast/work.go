package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"holdfast/internal/provider"
	"holdfast/internal/store"
	"holdfast/session"
)

func workCommand(model *string) *cobra.Command {
	var watch, asJSON bool
	cmd := &cobra.Command{Use: "work", Short: "Go on with all wanted work, without an editor", Args: noArgs,
		Long: "Go on with every session and goal whose work is still wanted, as an editor's agent would, with no editor there. It ends when nothing\n" +
			"can go on by itself any more: all of it has ended, is paused, or waits for a person. For each thing that still waits it prints one\n" +
			"line: what for, and the command that moves it.\n\n" +
			"What another live process is working on is left alone, and a session that was closed in an editor waits until an editor opens it.\n" +
			"SIGTERM and SIGINT are no stop: the work stays wanted.\n\n" +
			"Exit codes: 0 nothing needs you; 3 something needs you (its line says what); 1 it could not work; 2 the command line makes no sense.",
		RunE: func(cmd *cobra.Command, _ []string) error { return work(cmd, *model, watch, asJSON) }}
	cmd.Flags().BoolVar(&watch, "watch", false, "stay, and take up whatever is stored later")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object a line")
	return cmd
}

// work executes until nothing goes on by itself, or until a signal.
func work(cmd *cobra.Command, model string, watch, asJSON bool) (err error) {
	out, errs := cmd.OutOrStdout(), cmd.ErrOrStderr()
	home, err := homeDir()
	if err != nil {
		return err
	}
	wanted, err := modelConfig(home, model, nil)
	if err != nil {
		return err
	}
	if _, err := provider.Check(wanted); err != nil {
		return err // before anything is taken over
	}
	log, logFile := openLog(home)
	defer func() { _ = logFile.Close() }()
	signal.Ignore(syscall.SIGPIPE) // a reader that goes away ends the lines, not the work
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	defer stop()
	n, err := openNode(ctx, home, kindWork, model, log, warnBusy(errs))
	if err != nil {
		return err
	}
	n.box.OnNotice(notices(errs))
	w := &worker{node: n, home: home, out: out, json: asJSON, watch: watch, st: store.Store{DB: n.db}, seen: map[session.SessionID]mark{},
		began: time.Now().UTC().Truncate(time.Millisecond)}
	running, end := context.WithCancel(ctx)
	go func() { // ends with the run
		select {
		case <-n.outed:
			end()
		case <-running.Done():
		}
	}()
	left, err := w.run(running)
	end()
	if why := n.db.OutdatedBy(); why != nil {
		return errors.Join(why, n.close())
	}
	remark := ""
	if ctx.Err() != nil {
		remark = w.leaving(context.WithoutCancel(ctx))
	}
	err = errors.Join(err, n.close()) // lets go first: what the lines name is free to be moved when they are read
	if remark != "" {
		_, _ = fmt.Fprintln(errs, "holdfast:", remark)
	}
	if err != nil || ctx.Err() != nil {
		return err
	}
	return w.report(left)
}

// notices tells what was left out, each thing once, however many sessions it concerns.
func notices(errs io.Writer) func(session.SessionID, string) {
	var mu sync.Mutex
	told := map[string]bool{}
	return func(id session.SessionID, text string) {
		mu.Lock()
		defer mu.Unlock()
		if !told[text] {
			told[text] = true
			_, _ = fmt.Fprintf(errs, "holdfast: %s (session %s)\n", line(text, 500), id)
		}
	}
}

// worker watches what the node does, for a person.
type worker struct {
	node  *node
	home  string
	out   io.Writer
	json  bool
	watch bool
	st    store.Store
	began time.Time
	seen  map[session.SessionID]mark
}

// How often it looks: often while work runs, seldom while it only stays.
const (
	lookAt    = 200 * time.Millisecond
	lookIdle  = 2 * time.Second
	maxUnread = 20 // looks in a row that may fail
)

// run returns what is left when nothing goes on by itself any more, or nothing after a signal.
func (w *worker) run(ctx context.Context) ([]wait, error) {
	w.node.recover(ctx, w.home)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for unread := 0; ; {
		select {
		case <-ctx.Done():
			return nil, nil
		case <-timer.C:
		}
		next := lookAt
		switch moves, err := w.look(ctx); {
		case ctx.Err() != nil:
			return nil, nil
		case err != nil:
			if unread++; unread >= maxUnread {
				return nil, err
			}
		case moves:
			unread = 0
		case !w.watch:
			return w.left(ctx)
		default:
			unread, next = 0, lookIdle
		}
		timer.Reset(next)
	}
}

// look tells whether anything goes on here or is to be taken up, and says what has changed.
func (w *worker) look(ctx context.Context) (moves bool, err error) {
	var places []place
	owners := map[session.InstanceID]session.InstanceRow{}
	free := false
	err = w.st.Read(ctx, func(tx session.Tx) error {
		moves, places = false, nil
		ids, err := tx.Unowned()
		if err != nil {
			return err
		}
		free = len(ids) > 0
		mine, err := tx.OwnedBy(w.node.engine.Self.ID)
		if err != nil {
			return err
		}
		for _, id := range mine {
			m, err := session.Moves(tx, id)
			if err != nil {
				return err
			}
			moves = moves || m || !w.node.engine.Rests(id)
			p, err := w.placeOf(tx, id)
			if err != nil {
				return err
			}
			places = append(places, p)
		}
		busy, err := tx.Busy()
		if err != nil {
			return err
		}
		for _, id := range busy {
			s, err := tx.Session(id)
			if err != nil {
				return err
			}
			if s.Owner == "" || s.Owner == w.node.engine.Self.ID {
				continue
			}
			if owners[s.Owner], err = tx.Instance(s.Owner); err != nil && !errors.Is(err, session.ErrNotFound) {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return false, err
	}
	for id, row := range owners {
		if liveness(w.home, row) == isDead {
			w.node.bury(ctx, w.home, []string{string(id)})
			w.node.buryUnlocked(ctx)
			moves = true
		}
	}
	if free && w.node.takeUnowned(ctx) > 0 {
		moves = true
	}
	for _, p := range places {
		w.say(p)
	}
	return moves, nil
}

func (w *worker) encode(v any) { _ = json.NewEncoder(w.out).Encode(v) } // a reader that went away is no reason to end

// left is what does not go on by itself, while this process still has the store.
func (w *worker) left(ctx context.Context) ([]wait, error) {
	all, err := processes(ctx, w.home, w.node.db)
	if err != nil {
		return nil, err
	}
	alive := map[session.InstanceID]process{}
	for _, p := range all {
		if p.State == lives && p.ID != w.node.engine.Self.ID {
			alive[p.ID] = p
		}
	}
	return waits(ctx, w.st, w.node.goals, alive)
}

// waitEvent is a wait as one line.
type waitEvent struct {
	Event string `json:"event"` // waits
	wait
}

// report prints what still waits. What a live process has is for that process to ask about.
func (w *worker) report(left []wait) error {
	person := false
	for _, l := range left {
		person = person || l.needsPerson() && l.PID == 0
		if w.json {
			w.encode(waitEvent{"waits", l})
		} else {
			_, _ = fmt.Fprintln(w.out, l)
		}
	}
	if person {
		return exitError{exitPerson}
	}
	return nil
}
