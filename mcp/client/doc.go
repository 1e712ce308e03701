// Package client runs one external MCP server over stdio and speaks with it: it starts the process, agrees on the protocol, lists the
// tools, sends calls and says what is known about their outcome. It knows nothing of sessions or of the store: whoever calls it keeps
// the journal.
//
// Its words: a [Server] is one configured server, running or not. A generation is one process of it. A [Slot] is the right to send one
// call. A ticket is the caller's durable record of that one call. An [Outcome] is answered, or unknown with a reason.
//
// The library speaks the protocol; the process, its pipes and every byte are ours. Between the library and the pipe stands a recording
// transport (wire), and what the server writes is read by our own reader first, which keeps the answers to calls as they came.
//
// It may import internal/ident and internal/fault.
//
// Invariants:
//
//	I1: a ticket is sent at most once. The pipe refuses a tools/call for which no unused ticket was shown, whoever offers it.
//	I2: a call whose first byte may have left is answered only if a complete answer with its id was read; everything else is unknown.
//	I3: a restart serves future calls only. Nothing that was offered to one process is offered to another.
//	I4: no process of a server outlives Close; what outlives our own death is found by [Sweep], and nobody else's process is touched.
//	I5: what a server says about itself (hints, names, schemas) decides nothing but what is shown.
//	I6: configured secrets are not in reasons, errors or log lines of this package.
package client
