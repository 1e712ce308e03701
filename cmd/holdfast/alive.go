package main

import (
	"context"
	"sync"
	"time"

	"holdfast/internal/ident"
	"holdfast/internal/instance"
	"holdfast/internal/store"
	"holdfast/session"
)

// A process leaves a sign of life every few seconds, and when somebody rings at it.
const (
	silentAfter = 15 * time.Second // without a sign for so long it is silent
	answerIn    = time.Second      // how long a ring is given
)

// identity is the process of a row.
func identity(row session.InstanceRow) ident.Process {
	return ident.Process{PID: row.PID, Start: row.Start, Boot: row.Boot, Space: row.Space}
}

// condition says what is known of the process of a row. It asks the kernel and waits for nobody.
func condition(home string, row session.InstanceRow) session.Condition {
	c := session.Condition{PID: row.PID, Host: short(row.Host), Since: row.StartedAt}
	if row.Host != ident.Host() {
		c.Life = session.LifeElsewhere
		return c
	}
	switch state, claim, err := instance.Probe(home, string(row.ID)); {
	case err != nil:
		return c
	case state == instance.Dead:
		claim.Release()
		c.Life = session.LifeDead
		return c
	case state != instance.Alive: // the folder was copied, or somebody removed the file
		if provenGone(row) {
			c.Life = session.LifeDead
		}
		return c
	}
	c.Life = session.LifeAlive
	if pulse := instance.Pulse(home, string(row.ID)); !pulse.IsZero() && executes(row.Kind) { // the others only come and go, or wait for a request
		c.Since = pulse
		if time.Since(pulse) > silentAfter {
			c.Life = session.LifeSilent
		}
	}
	if identity(row).Suspended() {
		c.Life, c.Suspended = session.LifeSilent, true
	}
	return c
}

// provenGone tells whether the process of a row of this machine has provably ended, without its lock: no process outlives a restart, and one
// whose number is free or another's by now is gone. Rows of before the space was recorded prove it by a restart alone.
func provenGone(row session.InstanceRow) bool {
	boot, err := ident.BootID()
	if err != nil || row.Boot == "" {
		return false
	}
	if row.Boot != boot {
		return true
	}
	running, err := identity(row).Running()
	return err == nil && !running
}

// short makes the name of a machine readable. It is a hash already and tells nothing.
func short(host string) string { return host[:min(8, len(host))] }

// asked is condition for a person: one that has been silent for long is rung at first, because the whole machine may have slept.
func asked(home string, rows []session.InstanceRow) []session.Condition {
	out := make([]session.Condition, len(rows))
	var wg sync.WaitGroup
	for i, row := range rows {
		if out[i] = condition(home, row); out[i].Life != session.LifeSilent || out[i].Suspended {
			continue
		}
		wg.Go(func() {
			instance.Ring(home, string(row.ID))
			for deadline := time.Now().Add(answerIn); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
				if now := condition(home, row); now.Life != session.LifeSilent {
					out[i] = now
					return
				}
			}
		})
	}
	wg.Wait()
	return out
}

// liveness is condition for those who only tell life from death.
func liveness(home string, row session.InstanceRow) string {
	switch condition(home, row).Life {
	case session.LifeAlive, session.LifeSilent:
		return lives
	case session.LifeDead:
		return isDead
	}
	return unclear
}

// options are what every opening of the store shares.
func storeOptions(home string) store.Options {
	return store.Options{Home: home, Mask: secretsOf(home).mask, BinaryVersion: version,
		Dead:      func(row session.InstanceRow) bool { return liveness(home, row) == isDead },
		Condition: func(row session.InstanceRow) session.Condition { return condition(home, row) }}
}

// buryUnlocked takes over from the dead of this machine that have no lock file here any more: the folder was copied, or the files are gone.
func (n *node) buryUnlocked(ctx context.Context) {
	var rows []session.InstanceRow
	if err := (store.Store{DB: n.db}).Read(ctx, func(tx session.Tx) (err error) { rows, err = tx.Instances(); return err }); err != nil {
		if ctx.Err() == nil {
			n.log.Error().Err(err).Msg("listing the processes failed")
		}
		return
	}
	for _, row := range rows {
		if row.ID == n.engine.Self.ID || row.Host != ident.Host() {
			continue
		}
		state, claim, err := instance.Probe(n.home, string(row.ID))
		if claim != nil {
			claim.Release() // bury takes it
		}
		if err != nil || state == instance.Dead || state == instance.Alive || !provenGone(row) {
			continue
		}
		if err := n.engine.TakeDead(ctx, row.ID); err != nil && ctx.Err() == nil {
			n.log.Error().Err(err).Str("instance", string(row.ID)).Msg("taking over failed")
		}
	}
}

// foreign tells whether a row was written on another machine; without a row there is nothing of it here.
func (n *node) foreign(ctx context.Context, id string) bool {
	var row session.InstanceRow
	err := store.Store{DB: n.db}.Read(ctx, func(tx session.Tx) (err error) { row, err = tx.Instance(session.InstanceID(id)); return err })
	return err == nil && row.Host != ident.Host()
}
