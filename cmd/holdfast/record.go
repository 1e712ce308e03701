package main

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"holdfast/internal/provider"
	"holdfast/session"
)

// record is the recording of this process: one file, whichever models answer. It is a flag and no variable, so that what this process starts
// in turn records nothing.
type record struct {
	path string
	over bool
	to   *provider.Recorder // nil when nothing is recorded
}

// recording is set by the flags, before anything starts.
var recording = &record{}

// flags gives a command the flags. Its file begins before it does anything, or it does nothing: no answer is missing in a recording.
func (r *record) flags(cmd *cobra.Command) *cobra.Command {
	cmd.Flags().StringVar(&r.path, "record", "", "write what the model answers into `FILE`, a script that plays it again (scripted/FILE), without secrets")
	cmd.Flags().BoolVar(&r.over, "record-over", false, "replace the file of --record when it is there")
	run := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := r.begin(); err != nil {
			return err
		}
		return run(cmd, args)
	}
	return cmd
}

func (r *record) begin() error {
	if r.path == "" {
		if r.over {
			return usageError{errors.New("--record-over says to replace a recording, and no --record names one")}
		}
		return nil
	}
	path, err := filepath.Abs(r.path)
	if err != nil {
		return fmt.Errorf("find the recording: %w", err)
	}
	home, err := homeDir()
	if err != nil {
		return err
	}
	r.to, err = provider.NewRecorder(path, r.over, secretsOf(home).mask, func(err error) {
		log, file := openLog(home)
		log.Error().Err(err).Msg("recording the model failed")
		_ = file.Close()
	})
	return err
}

// of is a model whose answers are recorded, when that is wanted.
func (r *record) of(m session.Model) session.Model {
	if r.to == nil {
		return m
	}
	return r.to.Wrap(m)
}
