//go:build faultpoints

package fault

import (
	"os"
	"slices"
	"strings"
)

var without = func() []string {
	defer func() { _ = os.Unsetenv("HOLDFAST_WITHOUT") }()
	return strings.Split(os.Getenv("HOLDFAST_WITHOUT"), ",")
}()

// Without tells whether HOLDFAST_WITHOUT names this workaround; see the package comment.
func Without(name string) bool {
	if !slices.Contains(Workarounds, name) {
		panic("fault: workaround is not listed: " + name)
	}
	return slices.Contains(without, name)
}
