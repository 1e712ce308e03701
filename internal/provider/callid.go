package provider

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"

	"holdfast/session"
)

// callIDs makes up ids for calls that have none: "call_" and the number of the call in the conversation. The same request always
// gives the same ids, and none that the request already uses.
type callIDs struct {
	used map[string]bool
	n    int
}

func newCallIDs(messages []session.Message) *callIDs {
	ids := &callIDs{used: map[string]bool{}}
	for _, m := range messages {
		for _, c := range m.Calls {
			ids.used[c.ID] = true
			ids.n++
		}
	}
	return ids
}

// next counts a call and returns an id for it.
func (c *callIDs) next() string {
	for {
		c.n++
		id := "call_" + strconv.Itoa(c.n)
		if !c.used[id] {
			c.used[id] = true
			return id
		}
	}
}

// maxID and maxName are the longest call id and tool name that OpenAI accepts.
const (
	maxID   = 40
	maxName = 64
)

// wireID is an id as the wire accepts it. Ids of another provider may be longer; call and result get the same replacement.
func wireID(id string) string {
	if len(id) <= maxID {
		return id
	}
	sum := sha256.Sum256([]byte(id))
	return "call_" + hex.EncodeToString(sum[:16])
}

// wireName is a tool name as the wire accepts it. Models call tools that do not exist; refusing the history for the odd name would
// end the session.
func wireName(name string) string {
	b := []byte(name)
	for i, c := range b {
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-') {
			b[i] = '_'
		}
	}
	if len(b) == 0 {
		return "_"
	}
	return string(b[:min(len(b), maxName)])
}
