// Package keys keeps the keys of model providers that the user gave to setup: in the system's keyring, or in a private file where there is none.
// The file keys.json in the state directory says which keys there are and where; of a key in the keyring it holds no part.
//
// Invariants:
//
//	I1: a key is never in an error, and never in a name.
//	I2: a file with keys belongs to the user and is closed to others; another one is not read.
//	I3: the keyring is asked only for keys that were put there: a process of somebody without any never starts a dialog.
package keys

// Places where a key may be.
const (
	InKeyring = "keyring"
	InFile    = "file"
)

// Variables are the providers a key can be kept for, with the variable that holds the key otherwise, which goes first.
var Variables = map[string]string{"openai": "OPENAI_API_KEY", "anthropic": "ANTHROPIC_API_KEY"}
