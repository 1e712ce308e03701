package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"holdfast/goals"
	"holdfast/internal/store"
	"holdfast/session"
	"holdfast/usage"
)

// exportFormat names the document and its version: a member may be added under the same number, none is removed or changed.
const exportFormat = "holdfast.session/1"

// export is a whole session as it is given away. docs/session-export.schema.json describes it.
type export struct {
	Format     string              `json:"format"`
	Program    string              `json:"program"`
	ExportedAt time.Time           `json:"exportedAt"`
	Session    exportSession       `json:"session"`
	Plan       []session.PlanEntry `json:"plan"`
	Goals      []goals.View        `json:"goals"`
	Entries    []exportEntry       `json:"entries"`
	// Unknown are the calls whose outcome nobody knows: each may have happened, wholly, in part, or not.
	Unknown []session.EffectID `json:"unknownOutcomes"`
	Usage   exportUsage        `json:"usage"`
}

type exportSession struct {
	SessionID   session.SessionID `json:"sessionId"`
	Title       string            `json:"title"`
	Cwd         string            `json:"cwd"`
	Directories []string          `json:"additionalDirectories"`
	Mode        session.Mode      `json:"mode"`
	State       string            `json:"state"`
	CreatedAt   time.Time         `json:"createdAt"`
	UpdatedAt   time.Time         `json:"updatedAt"`
}

// exportEntry is one entry of the history. Thread is "" for the conversation; a review of a goal has a thread of its own.
type exportEntry struct {
	Seq       int64             `json:"seq"`
	At        time.Time         `json:"at"`
	Thread    string            `json:"thread"`
	Kind      session.ItemKind  `json:"kind"`
	State     session.ItemState `json:"state"`
	Text      string            `json:"text"`
	Content   json.RawMessage   `json:"content"` // user: the blocks as the client sent them; else null
	Call      *exportCall       `json:"call"`
	Unusable  bool              `json:"unusable"` // the record is damaged; what could be read of it is here
	RunID     session.RunID     `json:"runId"`
	AttemptID session.AttemptID `json:"attemptId"`
}

// exportCall is a tool call with what is known of it.
type exportCall struct {
	EffectID    session.EffectID         `json:"effectId"`
	Tool        string                   `json:"tool"`
	Title       string                   `json:"title"`
	Arguments   string                   `json:"arguments"` // as the model sent them
	Status      session.ToolStatus       `json:"status"`
	Fact        session.Fact             `json:"fact"`
	Class       session.Class            `json:"class"`
	Permission  string                   `json:"permission"`
	Note        string                   `json:"note"` // what is known about how it came to its outcome
	Result      *string                  `json:"result"`
	IsError     bool                     `json:"isError"`
	ExitCode    *int                     `json:"exitCode"`
	Files       []exportFile             `json:"files"`
	Settlements []session.SettlementView `json:"settlements"`
}

type exportFile struct {
	Path   string `json:"path"`
	Before string `json:"before"` // digest, or "absent"
	After  string `json:"after"`
	Old    string `json:"old"` // the part that differs
	New    string `json:"new"`
}

type exportUsage struct {
	Requests int   `json:"requests"`
	Unknown  int   `json:"unknownRequests"` // they may have been answered and billed
	Input    int64 `json:"inputTokens"`
	Output   int64 `json:"outputTokens"`
	// Parts of the two; null when no request reported them.
	CacheRead  usage.Count `json:"cacheReadTokens"`
	CacheWrite usage.Count `json:"cacheWriteTokens"`
	Reasoning  usage.Count `json:"reasoningTokens"`
	// What is known in US dollars, null when nothing is; every currency, known and estimated apart; requests of which nobody knows.
	CostUSD     *float64           `json:"costUsd"`
	Costs       []session.CostView `json:"costs"`
	UnknownCost int                `json:"unknownCostRequests"`
	// Models names what was asked, in order of first use.
	Models []string `json:"models"`
}

func sessionsExport() *cobra.Command {
	var format, out string
	var force bool
	cmd := &cobra.Command{Use: "export SESSION", Short: "Write a whole session out, as Markdown or JSON",
		Long: "Write a whole session out: what was said, each call with its arguments and its result, outcomes that are unknown, goals, the plan and usage.\n" +
			"The JSON document is described by docs/session-export.schema.json. Secrets are masked (docs/secrets.md); read\n" +
			"what you give away all the same.",
		Args: takes(1, "the id of a session")}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := oneOf("the format", format, []string{"markdown", "json"}); err != nil {
			return err
		}
		return reading(cmd, func(ctx context.Context, c *cli) error {
			id, err := c.id(ctx, store.RecordSession, args[0])
			if err != nil {
				return err
			}
			x, err := c.export(ctx, session.SessionID(id))
			if err != nil {
				return err
			}
			if err := x.mask(secretsOf(c.home).mask.Text); err != nil {
				return err
			}
			text := x.markdown()
			if format == "json" {
				b, err := json.MarshalIndent(x, "", "  ")
				if err != nil {
					return fmt.Errorf("encode the export: %w", err)
				}
				text = string(b) + "\n"
			}
			if out == "" || out == "-" {
				_, err = c.out.Write([]byte(text))
				return err
			}
			if err := writeExport(out, text, force); err != nil {
				return err
			}
			_, _ = fmt.Fprintf(c.errs, "written to %s\n", line(out, whole))
			return nil
		})
	}
	cmd.Flags().StringVar(&format, "format", "markdown", "markdown or json")
	cmd.Flags().StringVarP(&out, "output", "o", "", "write to this file instead of standard output")
	cmd.Flags().BoolVar(&force, "force", false, "replace a file that is there")
	return cmd
}

// writeExport writes a file that only its owner reads, whole or not at all.
func writeExport(path, text string, force bool) (err error) {
	if _, err := os.Lstat(path); err == nil && !force {
		return fmt.Errorf("%s is there already; say --force to replace it", path)
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("look at %s: %w", path, err)
	}
	dir := filepath.Dir(path)
	f, err := os.CreateTemp(dir, ".holdfast-export-*")
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("there is no directory %s", dir)
	} else if err != nil {
		return fmt.Errorf("nothing can be written to the directory %s", dir)
	}
	defer func() { _ = os.Remove(f.Name()) }() // it has its own name by then, or is of no use
	_, err = f.WriteString(text)
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("write the export: %w", err)
	}
	return nil
}

// export reads everything in one look, so that its parts fit together.
func (c *cli) export(ctx context.Context, id session.SessionID) (x export, err error) {
	x = export{Format: exportFormat, Program: "holdfast " + version, ExportedAt: time.Now().UTC(), Plan: []session.PlanEntry{}, Entries: []exportEntry{},
		Unknown: []session.EffectID{}, Usage: exportUsage{Costs: []session.CostView{}, Models: []string{}}}
	err = c.st.Read(ctx, func(tx session.Tx) error {
		s, err := tx.Session(id)
		if err != nil {
			return err
		}
		v, err := session.ViewSession(tx, s)
		if err != nil {
			return err
		}
		x.Session = exportSession{id, v.Title, v.Cwd, v.Directories, v.Mode, v.State, v.CreatedAt, v.UpdatedAt}
		plan, err := tx.PlanOf(id)
		if err != nil {
			return err
		}
		x.Plan = append(x.Plan, plan...)
		threads := []string{""}
		runs, err := tx.RunsOf(id)
		if err != nil {
			return err
		}
		for _, r := range runs {
			if r.Kind == session.RunVerification {
				threads = append(threads, string(r.ID))
			}
		}
		for _, thread := range threads {
			items, err := tx.Items(id, thread, 0, 0)
			if err != nil {
				return err
			}
			for _, it := range items {
				if err := x.entry(tx, it); err != nil {
					return err
				}
			}
		}
		return x.use(tx, id)
	})
	if err != nil {
		return x, err
	}
	x.Goals, err = c.goals.Of(ctx, id)
	return x, err
}

// use adds up the requests of the session.
func (x *export) use(tx session.Tx, id session.SessionID) error {
	all, err := tx.RequestsOfSession(id)
	if err != nil {
		return err
	}
	a, u := session.AccountOf(all), &x.Usage
	u.Requests, u.Unknown, u.Input, u.Output = len(all), a.Tokens.UnknownRequests, a.Tokens.Input, a.Tokens.Output
	u.CacheRead, u.CacheWrite, u.Reasoning = a.Tokens.CacheRead.Count, a.Tokens.CacheWrite.Count, a.Tokens.Reasoning.Count
	u.Costs, u.CostUSD = session.ViewCosts(a.Money)
	u.UnknownCost = a.Money.UnknownRequests
	for _, r := range all {
		if !hasModel(u.Models, r.Model) {
			u.Models = append(u.Models, r.Model)
		}
	}
	return nil
}

func hasModel(all []string, s string) bool {
	for _, v := range all {
		if v == s {
			return true
		}
	}
	return false
}

func (x *export) entry(tx session.Tx, it session.Item) error {
	if err := session.Whole(tx, &it); err != nil {
		return err
	}
	e := exportEntry{Seq: it.Seq, At: it.CreatedAt, Thread: it.Thread, Kind: it.Kind, State: it.State, Text: it.Body.Text, Content: it.Body.Blocks,
		Unusable: it.Broken != session.CodeNone, RunID: it.Run, AttemptID: it.Attempt}
	if len(e.Content) == 0 {
		e.Content = json.RawMessage("null")
	}
	if t := it.Body.Tool; t != nil {
		c := &exportCall{EffectID: t.Effect, Tool: t.Name, Title: t.Title, Arguments: t.Args, Status: t.Status, Fact: t.Fact, Note: t.Why,
			Files: []exportFile{}, Settlements: []session.SettlementView{}}
		for _, f := range t.Files {
			old := ""
			if f.OldText != nil {
				old = *f.OldText
			}
			c.Files = append(c.Files, exportFile{f.Path, f.Before, f.After, old, f.NewText})
		}
		if t.Output != nil {
			c.Result, c.IsError = &t.Output.Text, t.Output.IsError
		}
		if err := c.journal(tx); err != nil {
			return err
		}
		if c.Fact == session.FactUnknown {
			x.Unknown = append(x.Unknown, c.EffectID)
		}
		e.Call = c
	}
	x.Entries = append(x.Entries, e)
	return nil
}

// journal adds what the journal has of the call; a record that is not valid leaves it out.
func (c *exportCall) journal(tx session.Tx) error {
	ef, err := tx.Effect(c.EffectID)
	var broken *session.RecordError
	if session.IsNotFound(err) || errors.As(err, &broken) {
		return nil
	}
	if err != nil {
		return err
	}
	v, err := session.ViewEffect(tx, ef)
	if err != nil {
		return err
	}
	c.Class, c.Permission, c.ExitCode, c.Settlements = v.Class, v.Permission, v.ExitCode, v.Settlements
	if c.Note == "" {
		c.Note = v.Note
	}
	return nil
}

// mask puts every text of the document through fn.
func (x *export) mask(fn func(string) string) error {
	b, err := json.Marshal(x)
	if err != nil {
		return fmt.Errorf("encode the export: %w", err)
	}
	var v any
	if err := json.Unmarshal(b, &v); err != nil {
		return fmt.Errorf("mask the export: %w", err)
	}
	if b, err = json.Marshal(maskIn(v, fn)); err != nil {
		return fmt.Errorf("mask the export: %w", err)
	}
	*x = export{}
	return json.Unmarshal(b, x)
}

func maskIn(v any, fn func(string) string) any {
	switch v := v.(type) {
	case string:
		return fn(v)
	case []any:
		for i := range v {
			v[i] = maskIn(v[i], fn)
		}
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, m := range v {
			out[fn(k)] = maskIn(m, fn)
		}
		return out
	}
	return v
}
