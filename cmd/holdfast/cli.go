package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"

	"github.com/google/uuid"
	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"holdfast/goals"
	"holdfast/internal/store"
	"holdfast/session"
)

// exitPerson is the exit code of a command that found something that only a person can move.
const exitPerson = 3

// exitError ends the program with a code; everything was said already.
type exitError struct{ code int }

func (e exitError) Error() string { return fmt.Sprintf("exit code %d", e.code) }

// cli is one command line on the store, as a reader or as a writer of commands. It executes nothing.
type cli struct {
	home  string
	db    *store.DB // nil when there has never been a store
	st    store.Store
	goals *goals.Service
	node  *node // of a writer only
	out   io.Writer
	errs  io.Writer
	json  bool
}

// reading opens the store for a listing: no row, no lock, nothing written. Without a store there is nothing to list.
func reading(cmd *cobra.Command, fn func(ctx context.Context, c *cli) error) error {
	return withStore(cmd, false, fn)
}

// writing opens the store for a control.
func writing(cmd *cobra.Command, fn func(ctx context.Context, c *cli) error) error {
	return withStore(cmd, true, fn)
}

func withStore(cmd *cobra.Command, write bool, fn func(ctx context.Context, c *cli) error) (err error) {
	home, err := homeDir()
	if err != nil {
		return err
	}
	log, logFile := openLog(home)
	defer func() { _ = logFile.Close() }()
	c := &cli{home: home, out: cmd.OutOrStdout(), errs: cmd.ErrOrStderr()}
	c.json, _ = cmd.Flags().GetBool("json") // absent means false
	if write {
		err = c.join(cmd.Context(), log)
	} else {
		err = c.open(cmd.Context(), log)
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.close()) }()
	return fn(cmd.Context(), c)
}

func (c *cli) open(ctx context.Context, log zerolog.Logger) (err error) {
	if neverWas(c.home) {
		return nil
	}
	o := storeOptions(c.home)
	o.Log, o.Reading = log, true
	if c.db, err = store.Open(ctx, o); err != nil {
		return err
	}
	if why := c.db.Beside(); why != nil {
		_, _ = fmt.Fprintf(c.errs, "holdfast: %s; what is stored is shown all the same. %s\n", heldBy(why), freeStore(why))
	}
	c.st = store.Store{DB: c.db}
	c.goals = &goals.Service{Engine: session.NewEngine(session.Config{Store: c.st, Passive: true, Mask: secretsOf(c.home).mask, Log: log})}
	return nil
}

func (c *cli) join(ctx context.Context, log zerolog.Logger) (err error) {
	if c.node, err = openNode(ctx, c.home, kindCLI, "", log, warnBusy(c.errs)); err != nil {
		return err
	}
	c.node.engine.SetShared(true) // whoever executes shall hear of it
	c.db, c.st, c.goals = c.node.db, store.Store{DB: c.node.db}, c.node.goals
	return nil
}

func (c *cli) close() error {
	switch {
	case c.node != nil:
		return c.node.close()
	case c.db != nil:
		return c.db.Close()
	}
	return nil
}

// neverWas tells that no store was ever made here; a lost one is for the store to name.
func neverWas(home string) bool {
	for _, name := range []string{"holdfast.db", "holdfast.db-wal", "store.id"} {
		if _, err := os.Lstat(filepath.Join(home, name)); !errors.Is(err, fs.ErrNotExist) {
			return false
		}
	}
	return true
}

// shortest is how many characters of an id are enough, at its beginning or end, when no other has them there.
const shortest = 8

// id completes the id that a person typed.
func (c *cli) id(ctx context.Context, kind store.Record, typed string) (string, error) {
	if _, err := uuid.Parse(typed); err != nil && len(typed) < shortest {
		return "", usageError{fmt.Errorf("%q is too short for the id of a %s; give at least %d characters", typed, kind, shortest)}
	}
	unknown := fmt.Errorf("there is no %s %s; 'holdfast %s' lists them", kind, line(typed, 60), listings[kind])
	if c.db == nil {
		return "", unknown
	}
	typed = strings.ToLower(typed)
	ids, err := c.db.Find(ctx, kind, typed, named+1)
	switch {
	case err != nil:
		return "", err
	case len(ids) == 0:
		return "", unknown
	case slices.Contains(ids, typed):
		return typed, nil
	case len(ids) > 1:
		return "", c.ambiguous(ctx, kind, typed, ids)
	}
	return ids[0], nil
}

// named is how many ids an error names at most.
const named = 5

// ambiguous names the shortest endings that tell the ids apart.
func (c *cli) ambiguous(ctx context.Context, kind store.Record, typed string, ids []string) error {
	var endings []string
	for _, id := range ids[:min(named, len(ids))] {
		n := min(shortest, len(id))
		for ; n < len(id); n++ {
			same, err := c.db.Find(ctx, kind, id[len(id)-n:], 2)
			if err != nil {
				return err
			}
			if len(same) == 1 {
				break
			}
		}
		endings = append(endings, id[len(id)-n:])
	}
	more := ""
	if len(ids) > named {
		more = ", and more"
	}
	return fmt.Errorf("%q is part of the ids of several %ss; take the end of one: %s%s", typed, kind, strings.Join(endings, ", "), more)
}

var listings = map[store.Record]string{store.RecordSession: "sessions", store.RecordGoal: "goals", store.RecordEffect: "effects",
	store.RecordApproval: "sessions approvals", store.RecordRule: "rules"}

// show prints a document: as JSON, or by text.
func (c *cli) show(v any, text func(io.Writer)) error {
	if !c.json {
		text(c.out)
		return nil
	}
	e := json.NewEncoder(c.out)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// table prints rows under a heading; without rows it prints nothing.
func table(w io.Writer, heading []string, rows [][]string) {
	if len(rows) == 0 {
		return
	}
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	_, _ = fmt.Fprintln(t, strings.Join(heading, "\t"))
	for _, r := range rows {
		_, _ = fmt.Fprintln(t, strings.Join(r, "\t"))
	}
	_ = t.Flush()
}

// whole is a limit that cuts nothing.
const whole = math.MaxInt

// line makes one line of a text that came from elsewhere: no control characters, at most limit characters.
func line(s string, limit int) string {
	s = strings.Join(strings.Fields(strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && !unicode.IsSpace(r) || unicode.Is(unicode.Bidi_Control, r) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, "\uFFFD"))), " ")
	if r := []rune(s); len(r) > limit {
		return string(r[:limit-1]) + "…"
	}
	return s
}

// plain keeps the lines of a text that came from elsewhere and drops what would control a terminal.
func plain(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' && r != '\t' || unicode.Is(unicode.Bidi_Control, r) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, "\uFFFD"))
}

func clock(t time.Time) string { return t.Local().Format("2006-01-02 15:04:05") }

// pages collects a listing until limit, 0 for all. more tells that there is more.
func pages[T any](limit int, next func(cursor string, n int) ([]T, string, error)) (all []T, more bool, err error) {
	const page = 200
	all = []T{}
	for cursor := ""; ; {
		n := page
		if limit > 0 {
			n = min(n, limit-len(all))
		}
		got, c, err := next(cursor, n)
		if err != nil {
			return nil, false, err
		}
		all, cursor = append(all, got...), c
		if cursor == "" || limit > 0 && len(all) >= limit {
			return all, cursor != "", nil
		}
	}
}

func (c *cli) more(more bool) {
	if more {
		_, _ = fmt.Fprintln(c.errs, "holdfast: there are more; --limit 0 lists all")
	}
}

// none says that a listing is empty, and where it looked: the state directory may not be the one that was meant.
func (c *cli) none(n int, what string) {
	if n == 0 && !c.json {
		_, _ = fmt.Fprintf(c.errs, "holdfast: no %s in %s\n", what, c.home)
	}
}

func limitFlag(cmd *cobra.Command, limit *int) {
	*limit = 100
	cmd.Flags().Var((*count)(limit), "limit", "how many at most; 0 for all")
}

func jsonFlag(cmds ...*cobra.Command) {
	for _, cmd := range cmds {
		cmd.Flags().Bool("json", false, "print one JSON document")
	}
}

// takes checks how many arguments there are, and says what is missing.
func takes(n int, what string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) != n {
			return usageError{fmt.Errorf("it takes %s; %s given", what, given(len(args)))}
		}
		return nil
	}
}

func given(n int) string {
	if n == 1 {
		return "1 argument was"
	}
	return fmt.Sprintf("%d arguments were", n)
}

// group is a command with commands below it; alone it does what bare does.
func group(use, short, long string, bare *cobra.Command, below ...*cobra.Command) *cobra.Command {
	g := &cobra.Command{Use: use, Short: short, Long: long, Args: onlyCommands, RunE: bare.RunE, SuggestionsMinimumDistance: 2}
	g.Flags().AddFlagSet(bare.Flags())
	g.AddCommand(append([]*cobra.Command{bare}, below...)...)
	return g
}

func or(s, other string) string {
	if s == "" {
		return other
	}
	return s
}
