package proc

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
)

// encodeReceipt keeps a receipt inside the space that was set aside.
func encodeReceipt(r Result) []byte {
	if len(r.Failure) > 1000 {
		r.Failure = r.Failure[:1000]
	}
	b, err := json.Marshal(r)
	if err != nil {
		panic(fmt.Sprintf("proc: encode a receipt: %v", err))
	}
	return b
}

// supervisorEnv is what a supervisor gets of our environment: nothing secret, and what a faultpoints build reads.
func supervisorEnv() []string {
	env := []string{"PATH=" + os.Getenv("PATH")}
	for _, kv := range os.Environ() {
		if name, value, ok := strings.Cut(kv, "="); ok && strings.HasPrefix(name, "HOLDFAST_SUPERVISOR_CRASH") {
			env = append(env, strings.Replace(name, "_SUPERVISOR", "", 1)+"="+value)
		}
	}
	return env
}
