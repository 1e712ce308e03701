package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"holdfast/internal/store"
	"holdfast/session"
)

// lookOptions say how thoroughly doctor looks, and whether it may make damaged indexes anew.
type lookOptions struct{ deep, rebuild bool }

const (
	keepAndCopy = "End all Holdfast processes and keep the file; copy the newest file of the folder backups over it."
	tellUs      = "Keep a copy of the output of 'holdfast doctor --deep --json' and report it; nothing was changed."
)

// soundness checks the store's file. It returns false when what it holds cannot be trusted.
func (d *diagnosis) soundness(ctx context.Context, c *cli, o lookOptions) (bool, error) {
	if o.rebuild {
		names, err := c.db.Rebuild(ctx)
		if err != nil {
			return false, err
		}
		if len(names) > 0 {
			d.add("index", levelNote, "Made anew from the records: "+strings.Join(names, ", ")+".", "")
		}
	}
	faults, err := c.db.Check(ctx, o.deep)
	if err != nil {
		return false, err
	}
	by := map[store.FaultKind][]string{}
	for _, f := range faults {
		by[f.Kind] = append(by[f.Kind], f.Text)
	}
	some := func(k store.FaultKind) string {
		return plural(len(by[k]), "fault") + ": " + line(strings.Join(by[k][:min(len(by[k]), 3)], "; "), 300)
	}
	if len(by[store.FaultPage]) > 0 {
		d.add("integrity", levelFault, "store_corrupt: The store is damaged, "+some(store.FaultPage), keepAndCopy)
		return false, nil
	}
	for kind, f := range map[store.FaultKind]finding{
		store.FaultIndex:     {"index", levelPerson, "An index does not match its records, ", "holdfast doctor --rebuild-indexes", nil},
		store.FaultReference: {"records", levelPerson, "A record refers to one that is not there, ", tellUs, nil},
		store.FaultRecord:    {"records", levelPerson, "Records contradict each other, ", tellUs, nil},
		store.FaultRow:       {"records", levelNote, "Records are not valid; the sessions they belong to are named below, ", "", nil},
		store.FaultUnused:    {"space", levelNote, "Pages of the store are used by nothing, which is harmless, ", "", nil},
	} {
		if len(by[kind]) > 0 {
			d.add(f.Check, f.Level, f.Message+some(kind), f.Command)
		}
	}
	if len(faults) == 0 {
		how := "looked through quickly; --deep compares every index and every reference"
		if o.deep {
			how = "every page, index and reference, and what must be true of every history"
		}
		d.add("integrity", levelOK, "The store is sound ("+how+").", "")
	}
	d.records(ctx, c, o.deep || len(by[store.FaultRow]) > 0)
	return true, d.background(c)
}

// background repeats what the last check of a large store found, as long as it counts.
func (d *diagnosis) background(c *cli) error {
	k, err := c.db.LastCheck()
	if err != nil || k.At.IsZero() || k.Fault == "" {
		return err
	}
	d.add("integrity", levelPerson, fmt.Sprintf("The check in the background of %s found: %s", clock(k.At), line(k.Fault, 200)), "holdfast doctor --deep")
	return nil
}

// records names each session of which something cannot be used. With history it reads every entry.
func (d *diagnosis) records(ctx context.Context, c *cli, history bool) {
	var ids []session.SessionID
	err := c.st.Read(ctx, func(tx session.Tx) error {
		all, err := tx.Sessions("", session.Cursor{}.At, "", -1)
		ids = ids[:0]
		for _, s := range all {
			ids = append(ids, s.ID)
		}
		return err
	})
	var broken *session.RecordError
	for _, id := range ids {
		e := c.brokenIn(ctx, id, history)
		switch {
		case e == nil:
		case errors.As(e, &broken):
			d.add("record", levelPerson, fmt.Sprintf("%s: session %s: %s Nothing of it is executed; what can be read of it is shown.", broken.Code, id,
				broken.Reason()), "holdfast sessions show "+string(id)+"; restore a copy from the folder backups, or give it up: holdfast stop "+string(id))
		default:
			err = errors.Join(err, e)
		}
	}
	if err != nil {
		d.broken(err)
	}
}

// brokenIn is the first thing of a session that cannot be used, or nil. Each session is read by itself.
func (c *cli) brokenIn(ctx context.Context, id session.SessionID, history bool) error {
	return c.st.Read(ctx, func(tx session.Tx) error {
		if err := tx.Intact(id); err != nil || !history {
			return err
		}
		runs, err := tx.RunsOf(id)
		if err != nil {
			return err
		}
		threads := []string{""}
		for _, r := range runs {
			if r.Kind == session.RunVerification {
				threads = append(threads, string(r.ID))
			}
			if r.Broken != session.CodeNone {
				return &session.RecordError{Code: r.Broken, Session: id, Record: "run " + string(r.ID)}
			}
		}
		for _, th := range threads {
			items, err := tx.Items(id, th, 0, 0)
			if err != nil {
				return err
			}
			if i := slices.IndexFunc(items, func(it session.Item) bool { return it.Broken != session.CodeNone }); i >= 0 {
				return &session.RecordError{Code: items[i].Broken, Session: id, Record: "item " + string(items[i].ID)}
			}
		}
		return nil
	})
}

// largeLog is a write-ahead log that should have been folded in.
const largeLog = 256 << 20

// files looks at what lies beside the store. Only names and sizes: the store's own files are never opened.
func (d *diagnosis) files() {
	if name, err := store.NetworkFileSystem(d.Home); err == nil && name == "" {
		d.add("filesystem", levelOK, "The state directory is on a local file system.", "")
	}
	if st, err := os.Stat(filepath.Join(d.Home, "holdfast.db-wal")); err == nil {
		switch message := fmt.Sprintf("The store's log holds %d MiB.", st.Size()>>20); {
		case st.Size() > largeLog:
			d.add("log", levelPerson, message+" Something keeps it from being folded in, such as a program that reads the store all the time.",
				"End what reads "+filepath.Join(d.Home, "holdfast.db")+"; holdfast ps lists Holdfast's own processes.")
		default:
			d.add("log", levelOK, message, "")
		}
	}
	if at, file, err := store.LogLost(d.Home); err == nil && at != "" {
		d.add("log", levelPerson, store.CodeLogLost+": the store's log was removed while it held changes (found "+line(at, 40)+"). What was stored last may be missing.",
			"Look whether what you remember is there, then remove "+file+".")
	}
	if _, err := os.Stat(filepath.Join(d.Home, "reserve")); errors.Is(err, os.ErrNotExist) {
		d.add("space", levelNote, "The space kept back for a full disk is in use; it is set aside again once there is room.", "")
	}
	copies, _ := filepath.Glob(filepath.Join(d.Home, "backups", "*.db")) // a fixed pattern cannot be wrong
	if len(copies) > 0 {
		slices.Sort(copies)
		d.add("backups", levelOK, fmt.Sprintf("%s of the store, made before its schema changed; the newest is %s.", plural(len(copies), "copy"), copies[len(copies)-1]), "")
	}
}
