package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"holdfast/internal/store"
	"holdfast/session"
)

// deleted is what became of a session that was to be deleted.
type deleted struct {
	SessionID session.SessionID `json:"sessionId"`
	Complete  bool              `json:"complete"` // nothing is left; false: the rest goes later, by itself
	// Copies of the store from before an upgrade that hold the session as it was then and stay; --backups removes them.
	Copies []string `json:"copies"`
}

func sessionsDelete() *cobra.Command {
	var yes, backups bool
	cmd := &cobra.Command{Use: "delete SESSION", Short: "Delete a session with everything it had",
		Long: "Delete a session: its history, questions, goals, usage, and the rules that were made for it alone; the output and long answers of its\n" +
			"calls; the work trees that were recorded for it. Files of the work tree itself stay as they are. Nothing brings it back.\n\n" +
			"A session with work that has not ended, or that a client has open, is not deleted: stop it or close it first.",
		Args: takes(1, "the id of a session")}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return writing(cmd, func(ctx context.Context, c *cli) error {
			typed, err := c.id(ctx, store.RecordSession, args[0])
			if err != nil {
				return err
			}
			id := session.SessionID(typed)
			if !yes {
				if err := c.confirm(ctx, cmd, id); err != nil {
					return err
				}
			}
			d := deleted{SessionID: id, Complete: true, Copies: []string{}}
			err = c.node.delete(ctx, id)
			if d.Complete = err == nil; err != nil && !errors.Is(err, errLeft) {
				return err
			}
			var failed error
			if d.Copies, failed = copiesWith(c.home, id, backups); failed != nil {
				return failed
			}
			return c.show(d, func(w io.Writer) {
				_, _ = fmt.Fprintf(w, "deleted session %s\n", id)
				if !d.Complete {
					_, _ = fmt.Fprintf(w, "something of it is still in use and is removed later, by the next process that executes: %s\n", line(err.Error(), 300))
				}
				for _, path := range d.Copies {
					_, _ = fmt.Fprintf(w, "a copy of the store from before an upgrade still holds it: %s\n", path)
				}
			})
		})
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask")
	cmd.Flags().BoolVar(&backups, "backups", false, "also remove copies of the store from before an upgrade that hold the session")
	jsonFlag(cmd)
	return cmd
}

// confirm asks a person at a terminal. Without one nothing is deleted.
func (c *cli) confirm(ctx context.Context, cmd *cobra.Command, id session.SessionID) error {
	in, ok := cmd.InOrStdin().(*os.File)
	if !ok || !isTerminal(in) {
		return usageError{errors.New("deleting asks first, and there is no terminal to ask on; say --yes")}
	}
	var v session.SessionView
	err := c.st.Read(ctx, func(tx session.Tx) error {
		s, err := tx.Session(id)
		if err == nil {
			v, err = session.ViewSession(tx, s)
		}
		return err
	})
	if err != nil {
		return err
	}
	_, _ = fmt.Fprintf(c.errs, "Delete session %s (%s, in %s)", id, or(line(v.Title, 60), "no title"), line(v.Cwd, 100))
	if v.UnknownEffects > 0 {
		_, _ = fmt.Fprintf(c.errs, ", with the record of %s whose outcome is unknown", plural(v.UnknownEffects, "call"))
	}
	_, _ = fmt.Fprint(c.errs, "? Nothing brings it back. [y/N] ")
	answer, err := bufio.NewReader(in).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if a := strings.ToLower(strings.TrimSpace(answer)); a != "y" && a != "yes" {
		return usageError{errors.New("nothing was deleted")}
	}
	return nil
}

// copiesWith lists the copies of the store that name a session, or removes them.
func copiesWith(home string, id session.SessionID, remove bool) ([]string, error) {
	left := []string{}
	all, _ := filepath.Glob(filepath.Join(home, "backups", "*")) // the pattern is valid
	for _, path := range all {
		holds, err := fileHolds(path, []byte(id))
		if err == nil && holds && remove {
			err, holds = os.Remove(path), false
		}
		if err != nil {
			return left, fmt.Errorf("look at a copy of the store: %w", err)
		}
		if holds {
			left = append(left, path)
		}
	}
	return left, nil
}

// fileHolds tells whether a file holds some bytes, without reading it into memory.
func fileHolds(path string, what []byte) (bool, error) {
	f, err := os.Open(path)
	if err != nil {
		return false, err
	}
	defer func() { _ = f.Close() }()
	if st, err := f.Stat(); err != nil || !st.Mode().IsRegular() {
		return false, err
	}
	buf, kept := make([]byte, 1<<20), 0
	for {
		n, err := f.Read(buf[kept:])
		if bytes.Contains(buf[:kept+n], what) {
			return true, nil
		}
		if errors.Is(err, io.EOF) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		kept = copy(buf, buf[max(0, kept+n-len(what)+1):kept+n]) // it may lie across two reads
	}
}
