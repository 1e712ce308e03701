package rpc

import (
	"errors"
	"fmt"
)

// Codes of JSON-RPC 2.0 and of ACP.
const (
	CodeParseError       = -32700
	CodeInvalidRequest   = -32600
	CodeMethodNotFound   = -32601
	CodeInvalidParams    = -32602
	CodeInternalError    = -32603
	CodeRequestCancelled = -32800
	CodeAuthRequired     = -32000
	CodeResourceNotFound = -32002
)

// Error is the error member of a response.
type Error struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
	Data    any    `json:"data,omitempty"`
}

func (e *Error) Error() string { return fmt.Sprintf("%s (code %d)", e.Message, e.Code) }

var (
	// ErrClosed: the connection has ended.
	ErrClosed = errors.New("the connection has ended")
	// ErrNotReading: the peer has not read for so long that nothing more is queued for it.
	ErrNotReading = errors.New("the peer does not read")
	// ErrCancelledByPeer is the cause of a request's context that the peer cancelled.
	ErrCancelledByPeer = errors.New("the peer cancelled the request")
)
