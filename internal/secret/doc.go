// Package secret hides secrets: values that are known (keys in use, values of the environments of MCP servers, of variables that are named like
// a secret, keys that the user gave to setup) and texts that have the shape of a key. One Masker belongs to a process and is used at each of
// its borders: what goes to a model and comes from it, what is stored, shown, logged and read from the output of a command.
//
// Invariants:
//
//	I1: what a Stream gives for any cut of a text into pieces is what Text gives for the whole.
//	I2: a mask is never longer lived than its border: nothing here writes to a user's file, and Masked finds every mask, so that a call
//	    which would carry one into a file can be refused.
//	I3: masking what is masked changes nothing.
//	I4: Blank keeps the length, so that offsets into an output stay what they were.
//	I5: ids, hashes and digests have no shape of a key: a shape needs a name that key issuers have reserved, or words before it that say so.
package secret
