// Package v1 has the wire types of the Agent Client Protocol, version 1, generated from the official schema, and their decoder.
//
// [Decode] reads as leniently as the schema's own hints ask: a bad optional member becomes its default, a bad item of a list is skipped,
// and an empty array where an object belongs is an empty object, because some clients cannot write anything else.
package v1

//go:generate go run ../../internal/schemagen ../schema/v1/schema.json v1 types_gen.go
