// Package harness drives any ACP agent from outside, as an editor does: raw JSON lines over the pipes of a real process.
//
// Every message the agent sends is checked against the definition that the official schema names for its method; the root of the schema
// accepts anything and proves nothing. It imports nothing of the product: a misspelt JSON member must not hide on both sides.
package harness
