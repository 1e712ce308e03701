package client

import (
	"errors"
	"math"
	"time"
)

// Phase is where a server is in its life.
type Phase string

const (
	Stopped    Phase = "stopped"     // nothing was asked of it yet, or it is closed
	Starting   Phase = "starting"    // a process is being launched, or was and has not listed its tools; ends in ready, backing_off or failed
	Ready      Phase = "ready"       // takes calls, until its process ends
	BackingOff Phase = "backing_off" // its process ended or did not become ready; left by the next start, which waits its turn
	Failed     Phase = "failed"      // too many starts, or a command that cannot be started; left by the next use once the window has passed
)

// State is a server at one instant.
type State struct {
	Phase      Phase
	Generation int64  // counts the processes that were launched
	PID        int    // of the running one
	Reason     string // why it is not ready; a safe sentence
	Era        string // "modern" or "legacy", once agreed
	Protocol   string
}

var (
	// ErrChanged: the tool is not the one that was shown, or not there any more. Nothing was sent.
	ErrChanged = errors.New("the tool's definition has changed")

	// ErrClosed: the server was closed. Nothing was sent.
	ErrClosed = errors.New("the MCP server is closed")
)

// StartError says why a server is not ready.
type StartError struct {
	Server string
	Reason string // a safe sentence
	Stderr string // the end of what it wrote there, masked
}

func (e *StartError) Error() string { return "MCP server " + e.Server + ": " + e.Reason }

// history is what decides about the next start.
type history struct {
	starts   []time.Time // within the window, oldest first
	failures int         // in a row
	ended    time.Time   // when the last process ended
}

// next says how long the next start has to wait, or that there is none for now. random is from [0,1).
func (h history) next(now time.Time, l Limits, random float64) (wait time.Duration, ok bool) {
	recent := 0
	for _, t := range h.starts {
		if now.Sub(t) < l.Window {
			recent++
		}
	}
	if recent >= l.Starts {
		return 0, false
	}
	if h.failures == 0 {
		return 0, true
	}
	pause := float64(l.Backoff) * math.Pow(2, float64(min(h.failures-1, 20)))
	pause = min(pause, float64(l.MaxBackoff)) * (0.8 + 0.4*random)
	return max(0, time.Duration(pause)-now.Sub(h.ended)), true
}

// started notes a launch and forgets those outside the window.
func (h *history) started(now time.Time, l Limits) {
	kept := h.starts[:0]
	for _, t := range h.starts {
		if now.Sub(t) < l.Window {
			kept = append(kept, t)
		}
	}
	h.starts = append(kept, now)
}

// over notes the end of a process that was ready since a time, or never (zero).
func (h *history) over(ready, now time.Time, l Limits) {
	if !ready.IsZero() && now.Sub(ready) >= l.Window {
		h.starts, h.failures = nil, 0
	}
	h.failures++
	h.ended = now
}
