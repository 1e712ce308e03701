// Package recovery decides how work goes on whose owner was lost, or which waited.
//
// [Decide] is pure and total: its facts are small enums and booleans, a test lists all of them, and the golden table folds them by rule.
// Around it [Runner] gathers the facts and turns the decision into a session.Verdict, which the session stores in one transaction with
// the admission it leads to.
//
// Order of the rules: user stop, pending approval, resources, crash loop, stalls, live commands, unknown outcomes, then continue. Work that was
// cut off goes on in the work tree as it is; only a stall or a person's word puts files back first.
//
// It imports session.
//
// Invariants:
//
//	I1: exactly one of reconnect, checkpoint and new turn is chosen for a lost attempt.
//	I2: no decision runs a dispatched call again.
//	I3: what the user stopped is left alone, whatever else is true.
package recovery
