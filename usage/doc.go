// Package usage holds what one provider request cost: tokens, and later money and time. It does no I/O.
//
// Invariants:
//
//	I1: an unknown count is never a zero; Known says which it is.
//	I2: a receipt counts once; a repeated snapshot of one request moves a watermark, it is not added.
package usage
