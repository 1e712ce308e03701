//go:build linux || darwin

package ident

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// signal checks the identity and sends.
func (p Process) signal(send func() error) error {
	running, err := p.Running()
	if err != nil {
		return fmt.Errorf("signal process %d: %w", p.PID, err)
	}
	if !running {
		return ErrGone
	}
	if err := send(); errors.Is(err, unix.ESRCH) {
		return ErrGone
	} else if err != nil {
		return fmt.Errorf("signal process %d: %w", p.PID, err)
	}
	return nil
}
