package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"holdfast/internal/store"
	"holdfast/mcp/client"
	"holdfast/session"
)

func effectsOutput() *cobra.Command {
	var raw bool
	cmd := &cobra.Command{Use: "output EFFECT", Short: "Print the whole result of a call, of which the conversation holds the beginning and the end",
		Args: takes(1, "the id of a call")}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return reading(cmd, func(ctx context.Context, c *cli) error {
			id, err := c.id(ctx, store.RecordEffect, args[0])
			if err != nil {
				return err
			}
			return c.output(ctx, session.EffectID(id), raw)
		})
	}
	cmd.Flags().BoolVar(&raw, "raw", false, "the answer of an external server as it came, in JSON")
	return cmd
}

// output prints what a call returned, from where the whole of it is: a command's folder, the row or the file of an answer, or the history.
func (c *cli) output(ctx context.Context, id session.EffectID, raw bool) error {
	var tool *session.ToolCall
	var answer session.Send
	if err := c.st.Read(ctx, func(tx session.Tx) error {
		e, err := tx.Effect(id)
		if err != nil {
			return err
		}
		it, err := tx.Item(e.Item)
		if err != nil {
			return err
		}
		tool = it.Body.Tool
		sends, err := tx.Sends(id)
		if err != nil || len(sends) == 0 {
			return err
		}
		answer, err = tx.Send(sends[len(sends)-1].ID)
		return err
	}); err != nil {
		return err
	}
	if answer.AnswerDigest != "" {
		return c.answer(answer, tool, raw)
	}
	f, err := os.Open(filepath.Join(c.home, "calls", string(id), "out"))
	if errors.Is(err, fs.ErrNotExist) {
		return c.kept(tool)
	} else if err != nil {
		return fmt.Errorf("read the output of the command: %w", err)
	}
	defer func() { _ = f.Close() }()
	if _, err := io.Copy(c.out, secretsOf(c.home).mask.Shown(f)); err != nil {
		return fmt.Errorf("print the output of the command: %w", err)
	}
	return nil
}

// answer prints the answer of an external server.
func (c *cli) answer(s session.Send, tool *session.ToolCall, raw bool) error {
	text := []byte(s.Answer)
	if len(text) == 0 {
		var err error
		text, err = os.ReadFile(filepath.Join(c.home, "answers", strings.TrimPrefix(s.AnswerDigest, "sha256:")))
		if errors.Is(err, fs.ErrNotExist) {
			return c.kept(tool)
		} else if err != nil {
			return fmt.Errorf("read the answer of the server: %w", err)
		}
	}
	if !raw {
		text = []byte(client.ReadAnswer(text).Text)
	}
	_, err := fmt.Fprintf(c.out, "%s\n", secretsOf(c.home).mask.Text(string(text)))
	return err
}

// kept prints what the history holds, and says so when that is not the whole.
func (c *cli) kept(tool *session.ToolCall) error {
	if tool == nil || tool.Output == nil {
		return errors.New("the call has no result")
	}
	if tool.Output.Cut > 0 {
		_, _ = fmt.Fprintln(c.errs, "holdfast: the whole is not there any more (files of calls are kept for 30 days); this is what the conversation holds")
	}
	_, err := fmt.Fprintln(c.out, strings.TrimRight(tool.Output.Text, "\n"))
	return err
}
