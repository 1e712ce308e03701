//go:build faultpoints

package fault

import "os"

var noWall = func() bool {
	defer func() { _ = os.Unsetenv("HOLDFAST_NO_WALL") }()
	return os.Getenv("HOLDFAST_NO_WALL") != ""
}()

// NoWall tells whether a faultpoints build shall behave as where nothing can confine commands: HOLDFAST_NO_WALL is set.
func NoWall() bool { return noWall }
