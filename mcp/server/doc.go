// Package server is Holdfast as an MCP server over stdio: Goals, sessions, calls and questions as tools for any MCP client.
//
// It owns the tools (their names, schemas and words), the one table from an error to what a client sees (errors.go), what a client may do
// (authority.go, trust.go), and the line stream. The protocol itself, in both eras, is mcp-go's HandleMessage; its stdio transport is not
// used, because it drops what is in flight at the end of input and keeps one session for the whole process.
//
// It may import session and goals, and nothing that opens a store: the wiring hands it an opened one.
//
// Invariants:
//
//	I1: stdout gets whole JSON lines and nothing else. What belongs to a request goes out before its answer, and a cancelled one gets none.
//	I2: a tool call runs under a context that neither the end of input nor a cancel ends. What it committed stands, and a client that did
//	    not see the answer asks again with its idempotency key.
//	I3: the list of tools depends on nothing: not on the authority, not on the store, not on what was called before.
//	I4: every structured result has exactly the members its output schema names; a failed one has the member error and no other.
//	I5: a handler waits for the store at most, and for that no longer than callLimit.
package server
