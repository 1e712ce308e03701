// Package rpc is JSON-RPC 2.0 over lines: one UTF-8 JSON object per line, as ACP uses it on stdio.
//
// It stands on github.com/sourcegraph/jsonrpc2 behind an object stream of its own, because the library's plain stream ends the
// connection on the first malformed message, changes ids, and decodes parameters more than once. The stream reads lines with a limit,
// answers what cannot be a message itself, hands the library a private id and a reference in place of each id and parameter, and puts
// the peer's own bytes back on the way out. docs/protocol.md has the table of what each bad input gets.
//
// It imports nothing of ours.
//
// Invariants:
//
//	I1: nothing a peer sends ends the connection; only the end of input or Close does.
//	I2: an id is echoed byte for byte.
//	I3: parameters reach the handler as the peer wrote them.
//	I4: messages go out in the order they were given: a notification before the reply that follows it.
//	I5: a request gets exactly one answer.
package rpc
