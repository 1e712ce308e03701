package rpc

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
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

// Error is the error member of a response. Message is one line; it is made so on the way out. In an error that the peer sent, Data is a
// json.RawMessage or nil.
type Error struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
	Data    any    `json:"data,omitempty"`
}

func (e *Error) Error() string { return fmt.Sprintf("%s (code %d)", e.Message, e.Code) }

// oneLine returns e fit to be sent: clients show the message as it is.
func (e *Error) oneLine() *Error {
	if e == nil {
		return &Error{Code: CodeInternalError, Message: "Internal error."}
	}
	c := *e
	if c.Message = strings.Join(strings.Fields(e.Message), " "); c.Message == "" {
		c.Message = "The request failed."
	}
	return &c
}

var (
	// ErrClosed: the connection has ended.
	ErrClosed = errors.New("the connection has ended")
	// ErrNotReading: the peer has not read for so long that a notification was not queued.
	ErrNotReading = errors.New("the peer does not read")
	// ErrCancelledByPeer is the cause of a request's context that the peer cancelled.
	ErrCancelledByPeer = errors.New("the peer cancelled the request")
)

// peerError reads the error member of a response. Whatever it holds, the call has failed.
func peerError(raw json.RawMessage) *Error {
	var e struct {
		Code    *int            `json:"code"`
		Message string          `json:"message"`
		Data    json.RawMessage `json:"data"`
	}
	if err := json.Unmarshal(raw, &e); err != nil || e.Code == nil {
		return &Error{Code: CodeInternalError, Message: "the peer answered with an error that cannot be read"}
	}
	out := &Error{Code: *e.Code, Message: e.Message}
	if e.Data != nil {
		out.Data = e.Data
	}
	return out
}
