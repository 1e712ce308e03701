// Package early makes a program that imports it the sandbox helper before the packages initialise that the helper does not need.
package early

import (
	"os"

	"holdfast/internal/sandbox"
)

func init() {
	sandbox.Main(os.Args) // ends the process when the arguments are for it
}
