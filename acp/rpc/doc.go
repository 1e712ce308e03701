// Package rpc is JSON-RPC 2.0 over lines: one UTF-8 JSON object per line, as ACP uses it on stdio.
//
// Its words: a line is what stands between two line feeds; a message is a line that is a request, a notification or a response; anything
// else is refused with an error whose id is null, or the message's own when it has a usable one. docs/protocol.md has the table of what
// each bad input gets.
//
// It stands on github.com/sourcegraph/jsonrpc2 behind an object stream of its own, because the library's plain stream ends the
// connection on the first malformed message, changes ids, and decodes parameters more than once. The stream answers what is no message
// itself, hands the library a stub in place of each message, and keeps the peer's own bytes beside it. Notifications and answers go
// straight into the stream's queue, which skips the library's encodings.
//
// It imports nothing of ours.
//
// Invariants:
//
//	I1: nothing that a peer sends ends the connection; only the end of input, a failed write, or Close does.
//	I2: an id is echoed byte for byte.
//	I3: parameters reach the handler as the peer wrote them.
//	I4: messages go out in the order they were given: a notification before the answer that follows it.
//	I5: a request gets exactly one answer, also when its handler panics.
//	I6: a peer that does not read delays notifications, for a bounded time; it delays neither reading nor answers, until the unread
//	    output reaches a hard limit, from which on reading waits.
//	I7: memory for one message is bounded by the line limit.
package rpc
