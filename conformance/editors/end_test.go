package editors_test

import (
	"errors"
	"syscall"
	"time"

	"holdfast/conformance/harness"
)

// finish ends the agent as the editor does. The error is an end that was the agent's own fault.
func (c *client) finish() error {
	if c.p.end == kill {
		c.a.Kill()
		return nil
	}
	ended := make(chan error, 1)
	switch c.p.end {
	case term:
		c.signal(syscall.SIGTERM)
	case termKill:
		c.signal(syscall.SIGTERM)
		c.signal(syscall.SIGKILL)
		c.a.Kill()
		return nil
	}
	go func() { ended <- c.a.CloseInput() }()
	if c.p.end == ladder {
		for _, step := range []struct {
			after  time.Duration
			signal syscall.Signal
		}{{100 * time.Millisecond, syscall.SIGTERM}, {1500 * time.Millisecond, syscall.SIGKILL}} {
			select {
			case err := <-ended:
				return err
			case <-time.After(step.after):
				c.signal(step.signal)
			}
		}
	}
	select {
	case err := <-ended:
		return err
	case <-time.After(harness.Limit):
		return errors.New("it goes on")
	}
}

// signal may come after the agent's end.
func (c *client) signal(s syscall.Signal) { _ = syscall.Kill(c.a.PID(), s) }
