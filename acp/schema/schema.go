// Package schema holds the official schema of the Agent Client Protocol as data; README.md has its origin. It imports nothing of ours.
//
// Invariants:
//
//	I1: the files are those that README.md names, byte for byte.
package schema

import _ "embed"

// V1 is the schema of protocol version 1, stable. Every definition stands under "$defs".
//
//go:embed v1/schema.json
var V1 []byte

// V1Meta has the names of the methods of protocol version 1: "agentMethods", "clientMethods" and "protocolMethods".
//
//go:embed v1/meta.json
var V1Meta []byte

// Readme says where the files come from.
//
//go:embed README.md
var Readme string
