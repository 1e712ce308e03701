package main

import (
	"encoding/json"
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"holdfast/internal/store"
)

// versionDocument says what this binary is.
type versionDocument struct {
	Version string `json:"version"`
	Schema  int    `json:"schema"` // of the store
	Go      string `json:"go"`
	OS      string `json:"os"`
	Arch    string `json:"arch"`
}

func versionCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{Use: "version", Short: "Print the version", Args: noArgs, RunE: func(cmd *cobra.Command, _ []string) error {
		if !asJSON {
			_, err := fmt.Fprintln(cmd.OutOrStdout(), "holdfast", version)
			return err
		}
		e := json.NewEncoder(cmd.OutOrStdout())
		e.SetIndent("", "  ")
		return e.Encode(versionDocument{version, store.SchemaVersion(), runtime.Version(), runtime.GOOS, runtime.GOARCH})
	}}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON document")
	return cmd
}
