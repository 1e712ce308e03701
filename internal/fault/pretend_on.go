//go:build faultpoints

package fault

import (
	"os"
	"strings"
)

var pretended = func() map[string]string {
	defer func() { _ = os.Unsetenv("HOLDFAST_PRETEND") }()
	out := map[string]string{}
	for _, s := range strings.Split(os.Getenv("HOLDFAST_PRETEND"), ",") {
		name, value, _ := strings.Cut(s, "=")
		out[name] = value
	}
	return out
}()

// Pretend returns what HOLDFAST_PRETEND says of this fact of the system; see the package comment.
func Pretend(fact string) string { return pretended[fact] }
