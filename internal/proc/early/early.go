// Package early makes a program that imports it a supervisor before the packages initialise that a supervisor does not need. Go initialises
// packages by their paths as soon as their imports are ready, and this one needs little; those of model services and schemas take longer
// than a short command. A program calls proc.Main in main all the same: the order is not promised.
package early

import (
	"os"

	"holdfast/internal/proc"
)

func init() {
	if proc.Main(os.Args) {
		os.Exit(0)
	}
}
