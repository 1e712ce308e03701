package main

import (
	"context"
	"time"
)

// mind waits for the moment from which this process must not write any more, and retires it then. A process that writes nothing for long
// looks every few seconds.
func (n *node) mind(ctx context.Context) {
	tick := time.NewTicker(fallback * time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-n.db.Outdated():
			n.retire()
			return
		case <-tick.C:
			if err := n.db.CheckWriter(ctx); err != nil && n.db.OutdatedBy() == nil && ctx.Err() == nil {
				n.log.Error().Err(err).Msg("looking whether this process may still write failed")
			}
		}
	}
}

// retire lets go of everything while the process stays, to say why to its client. The order matters: nothing is executed here any more
// before the store is let go of, which is when a newer program may change its schema, and the instance lock goes last, which is when the
// work is taken over.
func (n *node) retire() {
	n.log.Error().Err(n.db.OutdatedBy()).Msg("a newer program has taken the store over; letting go")
	close(n.outed)
	n.cancel()
	n.engine.Retire()
	n.wg.Wait()
	if n.box != nil {
		n.box.Close()
	}
	if err := n.db.Close(); err != nil {
		n.log.Error().Err(err).Msg("closing the store failed")
	}
	others, _ := n.inst.Others() // without them they find out by themselves
	n.inst.Poke(others...)
	if err := n.inst.Abandon(); err != nil {
		n.log.Error().Err(err).Msg("letting the instance lock go failed")
	}
}
