package proc

import (
	"context"
	"errors"

	"holdfast/internal/secret"
)

var errWindows = errors.New("supervised commands are not available on Windows")

// Handle is a command.
type Handle struct {
	dir  string
	mask *secret.Masker // of those who read its output
}

// Main never handles anything here.
func Main([]string) bool { return false }

// Start is refused here.
func Start(Spec) (*Handle, error) { return nil, errWindows }

// Open returns the command of a folder.
func Open(dir string) *Handle { return &Handle{dir: dir} }

// State is refused here.
func (h *Handle) State() (State, error) { return State{}, errWindows }

// Wait is refused here.
func (h *Handle) Wait(context.Context) (Result, error) { return Result{}, errWindows }

// Stop is refused here.
func (h *Handle) Stop(context.Context, string) (Result, error) { return Result{}, errWindows }

// Remove is refused here.
func (h *Handle) Remove() error { return errWindows }
