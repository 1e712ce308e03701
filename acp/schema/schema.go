// Package schema holds the official schema of the Agent Client Protocol as data; see README.md for its origin.
package schema

import _ "embed"

// V1 is the schema of protocol version 1, stable.
//
//go:embed v1/schema.json
var V1 []byte
