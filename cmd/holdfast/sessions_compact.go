package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"holdfast/internal/store"
	"holdfast/session"
)

func sessionsCompact() *cobra.Command {
	cmd := &cobra.Command{Use: "compact SESSION [KEEP]", Short: "Put a summary in the place of what was said so far; KEEP is what it is to keep in particular",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 && len(args) != 2 {
				return usageError{fmt.Errorf("it takes the id of a session, and what the summary is to keep")}
			}
			return nil
		}}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		keep := strings.TrimSpace(strings.Join(args[1:], ""))
		return writing(cmd, func(ctx context.Context, c *cli) error {
			id, err := c.id(ctx, store.RecordSession, args[0])
			if err != nil {
				return err
			}
			in := session.PromptInput{Text: strings.TrimSpace("/compact " + keep), Compact: true, Keep: keep}
			run, err := c.node.engine.Prompt(ctx, session.SessionID(id), in)
			if err != nil {
				return err
			}
			c.stored(ctx, session.SessionID(id))
			return c.show(map[string]any{"sessionId": id, "runId": run}, func(w io.Writer) {
				_, _ = fmt.Fprintf(w, "stored; session %s is compacted once what it works on has ended\n", id)
			})
		})
	}
	jsonFlag(cmd)
	return cmd
}
