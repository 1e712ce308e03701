//go:build !faultpoints

package fault

// Pretend returns what a faultpoints build is to take for a fact of the system. Here there is never anything.
func Pretend(string) string { return "" }
