//go:build !linux

package instance

import "net"

// Elsewhere datagrams come without a sender; the private folder is what keeps others out.
func askWho(*net.UnixConn) error { return nil }

func fromUs([]byte) bool { return true }
