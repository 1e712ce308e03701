package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"holdfast/internal/store"
)

// letGoWithin is how long older processes may take to let go of the store: they look every few seconds, and finish what they are storing.
const letGoWithin = 30 * time.Second

func upgradeCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{Use: "upgrade", Short: "Make older processes let go of the store, and bring it to this binary's schema", Args: noArgs,
		Long: "After an update, a store with an older schema is brought to the new one as soon as no process of the older version has it open. Quitting\n" +
			"the editors that started them is enough. This command does not wait for that: it forbids the older version to write. Its processes stop\n" +
			"working within seconds and say so in their editors; commands that they started go on, and a process of this version takes their work\n" +
			"over. Then the store is copied into the folder backups and changed. There is no way back but that copy.",
		RunE: func(cmd *cobra.Command, _ []string) error { return upgrade(cmd, asJSON) }}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON document")
	return cmd
}

// upgraded is what the command did.
type upgraded struct {
	Schema int  `json:"schema"`
	Raised bool `json:"raised"` // the older version was forbidden to write
	Store  bool `json:"store"`  // there is a store
}

func upgrade(cmd *cobra.Command, asJSON bool) error {
	home, err := homeDir()
	if err != nil {
		return err
	}
	log, logFile := openLog(home)
	defer func() { _ = logFile.Close() }()
	ctx := cmd.Context()
	c := &cli{home: home, out: cmd.OutOrStdout(), errs: cmd.ErrOrStderr(), json: asJSON}
	u := upgraded{Schema: store.SchemaVersion(), Store: !neverWas(home)}
	if !u.Store {
		return c.show(u, func(w io.Writer) { _, _ = fmt.Fprintln(w, "There is no store yet; nothing to do.") })
	}
	if u.Raised, err = store.RaiseWriter(ctx, store.Options{Home: home, Log: log, BinaryVersion: version}); err != nil {
		return err
	}
	wait, cancel := context.WithTimeout(ctx, letGoWithin)
	defer cancel()
	for err = c.open(ctx, log); store.CodeOf(err) == store.CodeInUse; err = c.open(ctx, log) {
		select {
		case <-time.After(lookAt):
			continue
		case <-wait.Done():
		}
		return err
	}
	if err != nil {
		return err
	}
	defer func() { _ = c.close() }()
	return c.show(u, func(w io.Writer) {
		_, _ = fmt.Fprintf(w, "The store has schema %d, which is this binary's.\n", u.Schema)
	})
}
