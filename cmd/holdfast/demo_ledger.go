package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
	"github.com/spf13/cobra"
)

// demoServerName is the hidden command that serves the demo's external MCP server.
const demoServerName = "demo-server"

// demoAnswerAfter is how long the server takes to answer a call that it has written down: long enough to be killed over.
const demoAnswerAfter = 30 * time.Second

// demoServerCommand is a real MCP server with a log of its own: one line for each call that reached it. It knows nothing of Holdfast.
func demoServerCommand() *cobra.Command {
	return &cobra.Command{Use: demoServerName + " LOG", Hidden: true, Args: cobra.ExactArgs(1), RunE: func(_ *cobra.Command, args []string) error {
		s := server.NewMCPServer("ledger", version)
		publish := mcp.NewTool("publish", mcp.WithDescription("Publish a version. It cannot be taken back."), mcp.WithString("version", mcp.Required()))
		s.AddTool(publish, func(ctx context.Context, req mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			v, err := req.RequireString("version")
			if err != nil {
				return mcp.NewToolResultError(err.Error()), nil
			}
			if err := note(args[0], v); err != nil {
				return mcp.NewToolResultError(err.Error()), nil
			}
			select {
			case <-time.After(demoAnswerAfter):
			case <-ctx.Done():
			}
			return mcp.NewToolResultText("published " + v), nil
		})
		return server.ServeStdio(s)
	}}
}

// note writes a line that is on disk before the call goes on.
func note(path, v string) (err error) {
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY|os.O_SYNC, 0o600)
	if err != nil {
		return fmt.Errorf("open the ledger: %w", err)
	}
	defer func() {
		if e := f.Close(); err == nil {
			err = e
		}
	}()
	_, err = fmt.Fprintf(f, "published %s, process %d\n", v, os.Getpid())
	return err
}
