// Package v1 has the wire types of the Agent Client Protocol, version 1, generated from the official schema, and their decoder.
//
// A union is a struct with one pointer for each variant, of which exactly one is set:
//
//	v1.SessionUpdate{AgentMessageChunk: &v1.ContentChunk{Content: v1.Text("hello")}}
//
// A member that may be missing is left out when it is nil or zero; new("text") makes a pointer where the zero value may be meant.
//
// [Decode] reads as leniently as the schema's own hints ask: a bad optional member becomes its default, a bad item of a list is skipped
// where the schema says so, null counts as missing, and an empty array where an object belongs (or the reverse) is empty, because some
// clients cannot write anything else. What encoding/json is given to read into a message or a union is read by the same rules.
//
// It imports nothing of ours.
//
// Invariants:
//
//	I1: what cannot be used is named by its path: "params.cwd: want a string, got a number".
//	I2: a list that the schema requires is never written as null.
//	I3: a union without exactly one variant is not written.
//	I4: a variant that is not known is kept as it came, in Unknown.
//	I5: member names are matched exactly, not as encoding/json does by ignoring case.
package v1

//go:generate go run ../../internal/schemagen ../schema/v1/schema.json v1 types_gen.go
