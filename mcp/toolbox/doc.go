// Package toolbox gives sessions the tools of external MCP servers. It stands between session, which knows calls, approvals and the
// journal, and mcp/client, which knows one server and its wire.
//
// Words. A supplied server came from the client with session/new, load or resume, and belongs to that session alone. A configured server
// is in the user's configuration; sessions in the same directory share its process. A server is missing when its definition is stored
// without its secret values and no client has supplied it again since.
//
// Invariants:
//
//	I1: a send is on record, in the transaction that dispatches its call, before its first byte leaves, and there is one send for a call.
//	I2: every external tool has the class unknown, whatever its annotations say.
//	I3: a bad server or tool hurts only itself: it is left out, with a notice.
//	I4: values of a definition that may be secret are never stored and never logged; a keyed digest tells whether two are the same.
//	I5: a call of a missing server waits for the client; it is never sent to another server of the same name.
package toolbox
