package ident

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"strings"
	"sync"
)

var host = sync.OnceValue(func() string {
	id := machineID()
	if id == "" {
		id, _ = os.Hostname() // the weakest of all; empty is a name too
	}
	return hashed(id)
})

// Host is a stable name for this machine. It does not tell the machine's id.
func Host() string { return host() }

// hashed keeps the id private: the key makes it differ from what other programs derive.
func hashed(id string) string {
	mac := hmac.New(sha256.New, []byte("holdfast machine"))
	mac.Write([]byte(strings.TrimSpace(id)))
	return hex.EncodeToString(mac.Sum(nil))[:32]
}
