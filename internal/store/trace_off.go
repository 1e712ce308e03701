//go:build !faultpoints

package store

import "holdfast/session"

// trace is what a faultpoints build writes down about ownership. Here it is nothing.
type trace struct{}

func traceBegin() *trace { return nil }

func (*trace) note(string, session.SessionID, session.InstanceID, int64, bool) {}
func (*trace) commits(string)                                                  {}
func (*trace) ends(string, error)                                              {}
