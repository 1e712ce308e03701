package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"holdfast/internal/provider"
	"holdfast/internal/store"
	"holdfast/session"
)

// Levels of a finding.
const (
	levelOK     = "ok"
	levelNote   = "note"   // worth knowing; nothing has to be done
	levelPerson = "person" // does not go on without you
	levelFault  = "fault"  // the store cannot be used
)

// finding is one thing that was looked at.
type finding struct {
	Check   string `json:"check"`
	Level   string `json:"level"`
	Message string `json:"message"`
	Command string `json:"command"` // what to run or do; "" when there is nothing
	Wait    *wait  `json:"wait"`    // with check "waiting"
}

// diagnosis is everything that was looked at.
type diagnosis struct {
	Version  string    `json:"version"`
	Home     string    `json:"home"`
	Schema   int       `json:"schema"`
	ExitCode int       `json:"exitCode"`
	Findings []finding `json:"findings"`

	loose []string // what other users could read before the store was opened
}

func doctorCommand(model *string) *cobra.Command {
	var startServers bool
	var o lookOptions
	cmd := &cobra.Command{Use: "doctor", Short: "Look through the store and say what needs you", Args: noArgs,
		Long: "Look at the state directory, the configuration, the store and everything in it that does not go on by itself. Nothing is changed,\n" +
			"except that opening an older store brings it to this binary's schema, after a copy, and that damaged indexes are made anew.\n\n" +
			"Exit codes: 0 nothing needs you; 3 something needs you; 1 the store cannot be used.",
		RunE: func(cmd *cobra.Command, _ []string) error { return doctor(cmd, *model, startServers, o) }}
	cmd.Flags().BoolVar(&startServers, "start-servers", false, "start each configured MCP server once, in this directory, and end it")
	cmd.Flags().BoolVar(&o.deep, "deep", false, "also compare every index, reference and history; reads the whole store")
	cmd.Flags().BoolVar(&o.rebuild, "rebuild-indexes", false, "make indexes anew that do not match their records")
	jsonFlag(cmd)
	return cmd
}

func doctor(cmd *cobra.Command, model string, startServers bool, o lookOptions) error {
	home, err := homeDir()
	if err != nil {
		return err
	}
	d := &diagnosis{Version: version, Home: home, Schema: store.SchemaVersion(), Findings: []finding{}}
	d.directory()
	d.model(model)
	d.keySources()
	log, logFile := openLog(home)
	defer func() { _ = logFile.Close() }()
	c := &cli{home: home, out: cmd.OutOrStdout(), errs: cmd.ErrOrStderr()}
	c.json, _ = cmd.Flags().GetBool("json") // absent means false
	ctx := cmd.Context()
	d.configuration(ctx, startServers, log)
	d.sandbox(ctx)
	err = c.open(ctx, log)
	if err == nil {
		d.project(ctx, c, startServers, log)
	}
	switch {
	case err != nil:
		d.broken(err)
	case c.db == nil:
		d.add("store", levelNote, "There is no store yet; the first session makes one.", "")
	default:
		defer func() { _ = c.close() }()
		d.private()
		if why := c.db.Beside(); why != nil {
			d.add("gate", levelPerson, heldBy(why)+". Nothing is stored until it goes on or ends; reading goes on.", freeStore(why))
		}
		d.files()
		if err := d.look(ctx, c, o); err != nil {
			d.broken(err)
		}
	}
	slices.SortStableFunc(d.Findings, func(a, b finding) int { return firstIs("directory", a.Check) - firstIs("directory", b.Check) })
	for _, f := range d.Findings {
		switch {
		case f.Level == levelFault:
			d.ExitCode = exitFailed
		case f.Level == levelPerson && d.ExitCode == exitOK:
			d.ExitCode = exitPerson
		}
	}
	if err := c.show(d, d.print); err != nil || d.ExitCode == exitOK {
		return err
	}
	return exitError{d.ExitCode}
}

// firstIs orders one word before all others.
func firstIs(word, s string) int {
	if s == word {
		return 0
	}
	return 1
}

func (d *diagnosis) add(check, level, message, command string) {
	d.Findings = append(d.Findings, finding{Check: check, Level: level, Message: secretsOf(d.Home).mask.Text(message), Command: command})
}

// broken says why the store cannot be used.
func (d *diagnosis) broken(err error) {
	var open *store.OpenError
	var busy *store.BusyError
	switch {
	case errors.As(err, &open):
		d.add("store", levelFault, open.Code+": "+open.Message, open.Action)
	case errors.As(err, &busy):
		d.add("store", levelFault, heldBy(err)+".", freeStore(err))
	default:
		d.add("store", levelFault, store.CodeOf(err)+": "+line(err.Error(), 300), "See log.jsonl in the state directory.")
	}
}

// lowSpace is how much free space a store should have at least.
const lowSpace = 256 << 20

// directory looks at the state directory as it is, before anything opens it.
func (d *diagnosis) directory() {
	st, err := os.Stat(d.Home)
	if err != nil {
		if !errors.Is(err, os.ErrNotExist) {
			d.add("directory", levelFault, "The state directory cannot be looked at.", "Give your user "+d.Home+", or set HOLDFAST_HOME to another directory.")
		}
		return
	}
	if !st.IsDir() {
		d.add("directory", levelFault, d.Home+" is not a directory.", "Move it away, or set HOLDFAST_HOME to a directory.")
		return
	}
	d.loose = loose(d.Home)
	free, err := freeSpace(d.Home)
	if err != nil {
		return
	}
	if message := fmt.Sprintf("%d MiB are free on the disk of %s.", free>>20, d.Home); free < lowSpace {
		d.add("space", levelPerson, message, "Free some space; a full disk stops all work until there is room.")
	} else {
		d.add("space", levelOK, message, "")
	}
}

// manyLoose is how many open files are named.
const manyLoose = 5

// loose lists what of the state directory other users may read: the door, and behind it whatever is open itself.
func loose(home string) (open []string) {
	_ = filepath.WalkDir(home, func(path string, e fs.DirEntry, err error) error { // what cannot be looked at cannot be read by others either
		if err != nil || e.Type()&fs.ModeSymlink != 0 {
			return nil
		}
		if e.IsDir() && e.Name() == "trees" {
			return fs.SkipDir // git keeps its own modes there, behind the door
		}
		if st, err := e.Info(); err == nil && st.Mode().Perm()&0o077 != 0 && len(open) < manyLoose {
			open = append(open, fmt.Sprintf("%s (%04o)", path, st.Mode().Perm()))
		}
		return nil
	})
	return open
}

// private compares the modes before the store was opened, which corrects them, with those after.
func (d *diagnosis) private() {
	switch now := loose(d.Home); {
	case len(now) > 0:
		d.add("directory", levelPerson, fmt.Sprintf("Other users of this machine may read %v.", now), "chmod -R go-rwx "+d.Home)
	case len(d.loose) > 0:
		d.add("directory", levelNote, fmt.Sprintf("Other users of this machine could read %v; that was taken back.", d.loose), "")
	default:
		d.add("directory", levelOK, "The state directory is private: "+d.Home, "")
	}
}

func (d *diagnosis) model(name string) {
	c, err := modelConfig(d.Home, name, nil)
	var id session.ModelIdentity
	if err == nil {
		id, err = provider.Check(c)
	}
	if err != nil { // the editor's environment may have what this one has not
		d.add("model", levelNote, "In this environment: "+line(err.Error(), 300), "Set it where 'holdfast work' or the editor runs.")
		return
	}
	d.add("model", levelOK, "The model here is "+id.Provider+"/"+id.Name+"; it was not asked anything.", "")
}

// look goes through an open store.
func (d *diagnosis) look(ctx context.Context, c *cli, o lookOptions) error {
	d.add("schema", levelOK, fmt.Sprintf("The store has schema %d, which is this binary's.", d.Schema), "")
	if sound, err := d.soundness(ctx, c, o); err != nil || !sound {
		return err
	}
	all, err := processes(ctx, c.home, c.db)
	if err != nil {
		return err
	}
	alive, executing := d.processes(all)
	if err := d.unattended(ctx, c, executing); err != nil {
		return err
	}
	left, err := waits(ctx, c.st, c.goals, alive)
	if err != nil {
		return err
	}
	for _, w := range left {
		f := finding{Check: "waiting", Level: levelNote, Command: w.Command, Wait: &w}
		f.Message = fmt.Sprintf("%s in %s is %s (%s): %s", or(prefixed("goal ", w.GoalID), "session "+string(w.SessionID)), w.Cwd, w.State, w.ReasonCode, w.Sentence)
		if w.needsPerson() {
			f.Level = levelPerson
		}
		d.Findings = append(d.Findings, f)
	}
	lost, err := c.interruptions(ctx, "")
	if err != nil {
		return err
	}
	for _, l := range lost {
		f := finding{Check: "effect", Level: levelNote, Message: fmt.Sprintf("%s yet.", l)}
		if executing == 0 {
			f.Level, f.Command = levelPerson, startHint
		}
		d.Findings = append(d.Findings, f)
	}
	unknown, _, err := c.listEffects(ctx, session.EffectFilter{Fact: session.FactUnknown, Open: true}, 0)
	for _, e := range unknown {
		d.add("effect", levelPerson, fmt.Sprintf("The outcome of a call is unknown: %s in session %s (%s)", e.Tool, e.SessionID, line(e.Title, 100)),
			"holdfast effects settle "+string(e.EffectID)+" --happened|--did-not-happen")
	}
	return err
}

func prefixed(prefix, s string) string {
	if s == "" {
		return ""
	}
	return prefix + s
}

func (d *diagnosis) processes(all []process) (alive map[session.InstanceID]process, executing int) {
	alive = map[session.InstanceID]process{}
	for _, p := range all {
		switch p.State {
		case lives:
			alive[p.ID] = p
			if executes(p.Kind) && p.Now.Life == session.LifeAlive {
				executing++
			}
			if p.Now.Life == session.LifeSilent {
				d.silent(p)
				break
			}
			d.add("process", levelOK, fmt.Sprintf("Process %d (%s) is alive since %s and has %s.", p.PID, p.Kind, clock(p.StartedAt), plural(len(p.Owns), "session")), "")
		case isDead:
			d.add("process", levelNote, fmt.Sprintf("Process %d (%s) is gone without having let go of %s; the next that executes takes over.", p.PID, p.Kind,
				plural(len(p.Owns), "session")), "")
		default:
			if p.Now.Life == session.LifeElsewhere {
				d.elsewhere(p)
				break
			}
			d.add("process", levelNote, fmt.Sprintf("Whether process %d (%s) lives cannot be told from here.", p.PID, p.Kind), "")
		}
	}
	return alive, executing
}

// unattended finds work that would go on if anything executed.
func (d *diagnosis) unattended(ctx context.Context, c *cli, executing int) error {
	if executing > 0 {
		return nil
	}
	n := 0
	err := c.st.Read(ctx, func(tx session.Tx) error {
		n = 0
		ids, err := tx.Busy()
		if err != nil {
			return err
		}
		for _, id := range ids {
			s, err := tx.Session(id)
			if err != nil {
				return err
			}
			moves, err := session.Moves(tx, id)
			if err != nil {
				return err
			}
			if moves && !s.Closed {
				n++
			}
		}
		return nil
	})
	if n > 0 {
		d.add("unattended", levelPerson, plural(n, "session")+" could go on, and no process that executes is running.", startHint)
	}
	return err
}

func (d *diagnosis) print(w io.Writer) {
	for _, f := range d.Findings {
		_, _ = fmt.Fprintf(w, "%-7s %-11s %s\n", f.Level, f.Check, f.Message)
		if f.Command != "" {
			_, _ = fmt.Fprintf(w, "%-19s → %s\n", "", f.Command)
		}
	}
}

// silent says what to do about a process that lives and does not respond. One that has nothing keeps nothing up.
func (d *diagnosis) silent(p process) {
	why := "does not respond"
	if p.Now.Suspended {
		why = "is suspended"
	}
	m := fmt.Sprintf("Process %d (%s) %s since %s and has %s.", p.PID, p.Kind, why, clock(p.Now.Since), plural(len(p.Owns), "session"))
	if len(p.Owns) == 0 {
		d.add("process", levelNote, m, fmt.Sprintf("kill -CONT %d", p.PID))
		return
	}
	d.add("process", levelPerson, m, goOn(p.PID, p.Owns[0]))
}

// elsewhere says what to do about sessions that a process of another machine has.
func (d *diagnosis) elsewhere(p process) {
	m := fmt.Sprintf("other_host: process %d (%s) of another machine (%s) has %s; nothing of it is executed here.", p.PID, p.Kind, p.Now.Host, plural(len(p.Owns), "session"))
	if len(p.Owns) == 0 {
		d.add("process", levelNote, m, "")
		return
	}
	d.add("process", levelPerson, m, moveHere(p.Owns[0]))
}
