// Package acp is the agent side of the Agent Client Protocol, version 1, over stdio.
//
// A connection has one [Agent]. Each session that the client opens has a follower: one goroutine that turns the session's log, and live
// text of this process, into updates, raises open questions, and answers prompts. The follower executes nothing; another process may
// own the session, and the client sees the same.
//
// It imports session, goals, acp/rpc and acp/v1.
//
// Invariants:
//
//	I1: nothing is sent about a session before the answer that opened it, except the replay of session/load; afterwards it stays quiet
//	    for a moment.
//	I2: each update of a turn goes out before the answer to its prompt; after a cancelled answer nothing of that turn follows.
//	I3: every prompt gets exactly one answer.
//	I4: a fragment of text is sent once: live or from the log, by its offset.
package acp
