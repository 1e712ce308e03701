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

// byDefault is how a person takes a setting of a session back.
const byDefault = "default"

func autos() (out []string) {
	for _, a := range session.Autos {
		out = append(out, string(a))
	}
	return append(out, byDefault)
}

func sessionsRecovery() *cobra.Command {
	cmd := &cobra.Command{Use: "recovery SESSION VALUE", Short: "Say what is done by itself with work of a session whose process is gone: " + strings.Join(autos(), ", "),
		Long: "Say what is done by itself with work of a session whose process is gone: it goes on (always), it goes on once an editor opens the\n" +
			"session (attached), or it waits for your word (off). 'default' is what recovery.auto of the configuration says.",
		Args: takes(2, "the id of a session and a value")}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := oneOf("the value", args[1], autos()); err != nil {
			return err
		}
		return writing(cmd, func(ctx context.Context, c *cli) error {
			typed, err := c.id(ctx, store.RecordSession, args[0])
			if err != nil {
				return err
			}
			id, auto := session.SessionID(typed), session.Auto(args[1])
			if args[1] == byDefault {
				auto = session.AutoDefault
			}
			if err := c.node.engine.SetRecovery(ctx, id, auto); err != nil {
				return err
			}
			return c.show(map[string]any{"sessionId": id, "recovery": auto}, func(w io.Writer) {
				_, _ = fmt.Fprintf(w, "recovery of session %s is %s\n", id, args[1])
			})
		})
	}
	jsonFlag(cmd)
	return cmd
}
