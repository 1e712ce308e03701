// Package session is the domain: sessions, runs and their attempts, items, events, ownership, effects, approvals, and the turn loop that
// every kind of work uses.
//
// Words. A session is one conversation. A run is one piece of accepted work; its desired state outlives the process. An attempt is one
// try at executing a run by one owner. An effect is the journal record of one tool call. An owner is the instance that may execute a
// session, under a generation that rises with each change of owner.
//
// It imports usage, internal/fault and internal/proc only. Stores, models, tools and editors are interfaces declared here.
//
// Invariants:
//
//	I1: accepted input is committed before it is acknowledged.
//	I2: every write of an executor is fenced by its generation in the same transaction.
//	I3: a call is committed as planned, then as dispatched, before anything happens outside; its result is committed before the model
//	    sees it. A read-only call needs no dispatch record.
//	I4: an effect that was dispatched and whose end is not recorded is never run again by itself.
//	I5: a run has at most one running attempt, and a continuation key admits one attempt.
//	I6: a stop is committed before it is acknowledged; nothing but the user's own act makes stopped work wanted again.
//	I7: an approval is bound to what it was asked about, answered by a person and consumed once, in the transaction that dispatches.
//	    What is allowed without one, by a rule, a grant or the mode, is judged again in that transaction.
//	I8: stored history is never edited; what the model sees is a projection of it.
//	I9: while an effect of the conversation is unknown, only trusted readers run without a one-time approval.
//	I10: a step that puts files back is stored before the first file changes, touches a path only while it holds what the agent left there, and
//	    is finished before any turn of its session begins.
//	I11: no request of a run is sent, and no command of it run, by a process whose model, endpoint or key is not the one the run began with,
//	    until a person says so in a client of that process. Its commands get the environment that it began with.
package session
