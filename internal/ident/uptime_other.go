//go:build !linux && !darwin

package ident

import "time"

// Uptime is how long this process has run.
func Uptime() time.Duration { return awake() }
