package ident

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"strings"
	"sync"
)

// Host is a stable name for this machine.
var Host = sync.OnceValue(func() string {
	id := machineID()
	if id == "" {
		id, _ = os.Hostname() // the weakest of all; empty is a name too
	}
	mac := hmac.New(sha256.New, []byte("holdfast machine"))
	mac.Write([]byte(strings.TrimSpace(id)))
	return hex.EncodeToString(mac.Sum(nil))[:32]
})
