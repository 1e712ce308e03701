package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	llsys "github.com/landlock-lsm/go-landlock/landlock/syscall"
)

// proofTime bounds one proof.
const proofTime = 10 * time.Second

// Probe finds the wall of this system and proves it. self is this binary. It costs a few processes: ask once.
func Probe(ctx context.Context, self string) Wall {
	var why error
	if abi, err := llsys.LandlockGetABIVersion(); err != nil || abi < 1 {
		why = errors.New("this kernel has no Landlock")
	} else {
		w := Wall{Name: "landlock", ABI: abi, Namespace: true}
		if why = prove(ctx, self, w); why == nil {
			return w
		}
		w.Namespace = false
		if why = prove(ctx, self, w); why == nil {
			return w
		}
	}
	program, err := exec.LookPath("bwrap")
	if err != nil {
		return Wall{Reason: fmt.Sprintf("%v, and bubblewrap is not installed", why)}
	}
	w := Wall{Name: "bubblewrap", program: program}
	if err := prove(ctx, self, w); err != nil {
		return Wall{Reason: fmt.Sprintf("%v, and bubblewrap does not work here: %v", why, err)}
	}
	return w
}

// prove runs one confined command: what it may write must be there afterwards, and what it may not must not.
func prove(ctx context.Context, self string, w Wall) error {
	dir, err := os.MkdirTemp("", "holdfast-wall-")
	if err != nil {
		return fmt.Errorf("make a folder for the proof: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	in, out := filepath.Join(dir, "in"), filepath.Join(dir, "out")
	if err := errors.Join(os.Mkdir(in, 0o700), os.Mkdir(out, 0o700)); err != nil {
		return fmt.Errorf("make a folder for the proof: %w", err)
	}
	c, err := w.Wrap(self, Spec{Writable: []string{in}}, []string{"/bin/sh", "-c", `echo x >"$1/f"; echo x 2>/dev/null >"$2/f"; true`, "sh", in, out})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, proofTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, c.Argv[0], c.Argv[1:]...)
	cmd.SysProcAttr = &syscall.SysProcAttr{}
	if c.OwnNetwork {
		NetworkFlags(cmd.SysProcAttr, os.Getuid(), os.Getgid())
	}
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("a confined command does not run: %w", err)
	}
	if _, err := os.Stat(filepath.Join(in, "f")); err != nil {
		return errors.New("a confined command could not write where it may")
	}
	if _, err := os.Stat(filepath.Join(out, "f")); err == nil {
		return errors.New("a confined command could write where it may not")
	}
	return nil
}
