// Package goals pursues an objective over many turns until an independent review accepts it.
//
// A Goal runs on the ordinary turn loop: one run of kind "goal" for its whole life, one attempt per turn, and a run of kind
// "verification" for each review. [Next] decides what follows a turn; it is pure. A review only reads, in a thread of its own, and cites
// stored evidence; code decides command and file requirements.
//
// It imports session and usage.
//
// Invariants:
//
//	I1: the objective is stored in the user's words and never changed within a revision; it is always a requirement.
//	I2: every control names the version it saw; a stale one changes nothing.
//	I3: a Goal is achieved only in the transaction that ends a review, once, when every requirement that binds is met or waived, no
//	    todo item is open, no effect is unknown, and nothing was changed since the review began.
//	I4: the model can offer a candidate, name a blocker and point at evidence. It cannot change the objective, a requirement or a state.
//	    Its todo keeps a Goal open and never achieves one. What it read out of the objective binds once the user has confirmed it.
//	I5: a paused or ended Goal has no run that is wanted.
package goals
