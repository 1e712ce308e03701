// Command schemagen writes Go types for the definitions of an ACP schema.
//
//	go run ./internal/schemagen SCHEMA PACKAGE OUTPUT
//
// Its words: a definition is an entry of $defs; a union is a definition whose value takes one of several shapes, its variants; the tag is
// the member by which most unions name the variant.
//
// An object becomes a struct, a named string or number a type of its own, a list of constants constants, and a union of objects a struct
// with one pointer for each variant. What the schema says of lenient reading goes into the struct tag "acp", which the decoder of the
// target package follows. A union with variants that are no objects is written by hand there, and named in byHand.
//
// It imports nothing of ours.
//
// Invariants:
//
//	I1: the same schema gives the same bytes.
//	I2: every definition that a method needs has a type; one that cannot be written is an error, not a gap.
package main
