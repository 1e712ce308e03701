package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"holdfast/internal/proc"
	"holdfast/session"
)

// running is everything of Holdfast that runs on this machine.
type running struct {
	Processes []processView `json:"processes"`
	Commands  []commandView `json:"commands"`
	// Queue is the unattended work: who works, then who waits in the order in which they go on.
	Queue []session.SlotView `json:"queue"`
}

// processView is a Holdfast process.
type processView struct {
	InstanceID session.InstanceID  `json:"instanceId"`
	Kind       string              `json:"kind"`
	PID        int                 `json:"pid"`
	Executes   bool                `json:"executes"`
	StartedAt  time.Time           `json:"startedAt"`
	Owns       []session.SessionID `json:"owns"`
	State      session.Life        `json:"state"` // alive, not_responding, other_host, or "" when nothing is known
	Suspended  bool                `json:"suspended"`
	Since      *time.Time          `json:"since"` // last sign of life of one that does not respond
	Host       string              `json:"host"`  // short name of the machine of one elsewhere, else ""
}

// viewOf shows a process that is not known to be dead.
func viewOf(p process) processView {
	v := processView{InstanceID: p.ID, Kind: p.Kind, PID: p.PID, Executes: executes(p.Kind), StartedAt: p.StartedAt, Owns: append([]session.SessionID{}, p.Owns...),
		State: p.Now.Life, Suspended: p.Now.Suspended}
	switch p.Now.Life {
	case session.LifeSilent:
		v.Since = &p.Now.Since
	case session.LifeElsewhere:
		v.Host = p.Now.Host
	}
	return v
}

// says is the state for a person.
func (v processView) says() string {
	switch v.State {
	case session.LifeAlive:
		return "alive"
	case session.LifeSilent:
		why := "not responding since " + clock(*v.Since)
		if v.Suspended {
			why += ", suspended"
		}
		return why
	case session.LifeElsewhere:
		return "on another machine (" + v.Host + ")"
	}
	return "unknown"
}

// commandView is a command that runs under its supervisor, whether or not a Holdfast process lives.
type commandView struct {
	EffectID  session.EffectID  `json:"effectId"`
	SessionID session.SessionID `json:"sessionId"` // "" when no session of this store knows it
	Name      string            `json:"name"`      // of a background command in its session, else ""
	Command   string            `json:"command"`
	PID       int               `json:"pid"`   // 0 while it is being started
	State     string            `json:"state"` // running, stopping, supervisor_lost
	StartedAt time.Time         `json:"startedAt"`
}

// commandOf shows a command that runs; false when it does not.
func commandOf(id session.EffectID, dir string) (commandView, bool, error) {
	st, err := proc.Open(dir).State()
	if err != nil {
		return commandView{}, false, fmt.Errorf("look at call %s: %w", id, err)
	}
	v := commandView{EffectID: id, PID: st.Command.PID, State: "running"}
	if st.Verdict == proc.Orphaned {
		v.State = "supervisor_lost"
	}
	return v, st.Verdict == proc.Live || st.Verdict == proc.Orphaned, nil
}

// commands lists what runs, of one session or, with "", of all: calls that wait for their command, background commands, and commands that
// no session knows.
func (c *cli) commands(ctx context.Context, id session.SessionID) ([]commandView, error) {
	effects, err := c.supervised(ctx, id)
	if err != nil {
		return nil, err
	}
	out, seen := []commandView{}, map[session.EffectID]bool{}
	add := func(id session.EffectID, dir string, fill func(*commandView)) error {
		if seen[id] {
			return nil
		}
		seen[id] = true
		v, runs, err := commandOf(id, dir)
		if runs {
			fill(&v)
			out = append(out, v)
		}
		return err
	}
	backgrounds, err := c.backgrounds(ctx, id)
	if err != nil {
		return nil, err
	}
	for _, b := range backgrounds {
		if err := add(b.Effect, b.Dir, func(v *commandView) {
			v.SessionID, v.Name, v.Command, v.StartedAt = b.Session, b.Handle(), b.Command, b.StartedAt
			if b.Desired == session.DesiredStopped {
				v.State = "stopping"
			}
		}); err != nil {
			return nil, err
		}
	}
	for _, e := range effects {
		if err := add(e.ID, e.Dir, func(v *commandView) {
			v.SessionID, v.Command, v.StartedAt = e.Session, or(e.Plan.Command, e.Plan.Title), e.DispatchedAt
		}); err != nil {
			return nil, err
		}
	}
	if id != "" {
		return out, nil
	}
	dirs, err := filepath.Glob(filepath.Join(c.home, "calls", "*"))
	if err != nil {
		return nil, err
	}
	for _, dir := range dirs {
		h := proc.Open(dir)
		if err := add(session.EffectID(filepath.Base(dir)), dir, func(v *commandView) {
			v.SessionID, v.Command, v.StartedAt = c.knows(ctx, v.EffectID), h.Command(), modified(dir)
		}); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// knows finds the session of a call that is settled and whose command runs all the same.
func (c *cli) knows(ctx context.Context, id session.EffectID) (s session.SessionID) {
	_ = c.st.Read(ctx, func(tx session.Tx) error { // not found says that nobody knows it
		e, err := tx.Effect(id)
		s = e.Session
		return err
	})
	return s
}

func modified(path string) time.Time {
	st, err := os.Stat(path)
	if err != nil {
		return time.Time{}
	}
	return st.ModTime().UTC()
}

// backgrounds lists the background commands without a recorded end.
func (c *cli) backgrounds(ctx context.Context, id session.SessionID) (out []session.Background, err error) {
	err = c.st.Read(ctx, func(tx session.Tx) error {
		out = nil
		all, err := tx.RunningBackgrounds()
		for _, b := range all {
			if id == "" || b.Session == id {
				out = append(out, b)
			}
		}
		return err
	})
	return out, err
}

func psCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "ps", Short: "List the Holdfast processes that live and the commands that run", Args: noArgs}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return reading(cmd, func(ctx context.Context, c *cli) error {
			r := running{[]processView{}, []commandView{}, []session.SlotView{}}
			if c.db != nil {
				if err := c.running(ctx, &r); err != nil {
					return err
				}
			}
			c.none(len(r.Processes)+len(r.Commands), "process that lives and no command that runs")
			return c.show(r, r.print)
		})
	}
	jsonFlag(cmd)
	return cmd
}

func (c *cli) running(ctx context.Context, r *running) error {
	all, err := processes(ctx, c.home, c.db)
	if err != nil {
		return err
	}
	for _, p := range all {
		if p.State == lives || p.State != isDead && len(p.Owns) > 0 {
			r.Processes = append(r.Processes, viewOf(p))
		}
	}
	if r.Commands, err = c.commands(ctx, ""); err != nil {
		return err
	}
	return c.st.Read(ctx, func(tx session.Tx) (err error) { r.Queue, err = session.ListSlots(tx); return err })
}

// supervised lists the calls that may have a command running, of one session or, with "", of all.
func (c *cli) supervised(ctx context.Context, id session.SessionID) (out []session.Effect, err error) {
	err = c.st.Read(ctx, func(tx session.Tx) error {
		out = nil
		all, err := tx.Effects(session.EffectFilter{Session: id, Open: true}, time.Time{}, "", -1) // without a limit
		for _, e := range all {
			if e.State == session.EffectDispatched && e.Dir != "" {
				out = append(out, e)
			}
		}
		return err
	})
	return out, err
}

// shownQueue is how many places a person is shown.
const shownQueue = 50

func (r running) print(w io.Writer) {
	var rows [][]string
	for _, p := range r.Processes {
		rows = append(rows, []string{fmt.Sprint(p.PID), p.Kind, clock(p.StartedAt), plural(len(p.Owns), "session"), p.says()})
	}
	table(w, []string{"PID", "KIND", "SINCE", "HAS", "STATE"}, rows)
	r.silent(w)
	rows = nil
	for _, c := range r.Commands {
		rows = append(rows, []string{fmt.Sprint(c.PID), string(c.EffectID), or(string(c.SessionID), "(no session)"), or(c.Name, "-"), c.State,
			clock(c.StartedAt), line(c.Command, 100)})
	}
	table(w, []string{"PID", "EFFECT", "SESSION", "NAME", "STATE", "SINCE", "COMMAND"}, rows)
	rows = nil
	for i, q := range r.Queue {
		if i == shownQueue {
			rows = append(rows, []string{"", fmt.Sprintf("and %d more", len(r.Queue)-i), "", "", "", ""})
			break
		}
		rows = append(rows, []string{fmt.Sprint(q.PID), string(q.SessionID), string(q.Kind), string(q.State), or(string(q.Code), "-"), or(line(q.WorkTree, 60), "-")})
	}
	table(w, []string{"PID", "SESSION", "UNATTENDED", "STATE", "REASON", "WORK TREE"}, rows)
}

// silent says what can be done about processes that hold sessions and do not respond.
func (r running) silent(w io.Writer) {
	for _, p := range r.Processes {
		if len(p.Owns) == 0 {
			continue
		}
		switch p.State {
		case session.LifeSilent:
			_, _ = fmt.Fprintf(w, "Process %d does not respond. %s\n", p.PID, goOn(p.PID, p.Owns[0]))
		case session.LifeElsewhere:
			_, _ = fmt.Fprintf(w, "Nothing of the sessions of process %d on another machine is executed here. %s\n", p.PID, moveHere(p.Owns[0]))
		}
	}
}
