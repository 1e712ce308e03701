package main

import (
	"errors"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"
)

// What a request that panicked leaves in the log holds no known secret, in whatever form the panic has it. It is the one place where a panic
// is told of: the rest is the runtime's.
func TestLog_APanicHoldsNoSecret(t *testing.T) {
	const key = `pan"c-4b1d7e90\Xy7Zw3`
	t.Setenv("PANICKING_TOKEN", key)
	t.Setenv("HOLDFAST_KEYRING", "off")
	home := t.TempDir()
	log, f := openLog(home)
	for _, value := range []any{"value " + key, errors.New("error " + key), struct{ A []string }{[]string{key}}, map[string]any{"k": []byte(key)}} {
		func() {
			defer func() {
				log.Error().Interface("panic", recover()).Bytes("stack", debug.Stack()).Msg("a request panicked")
			}()
			panic(value)
		}()
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(filepath.Join(home, "log.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	if got := string(b); strings.Contains(got, "4b1d7e90") || strings.Contains(got, "NGIxZDdl") || strings.Count(got, "secret hidden by holdfast") < 3 {
		t.Errorf("the log is %s", got)
	}
}
