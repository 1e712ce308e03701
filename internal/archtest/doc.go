// Package archtest is the architecture as a test: which package may import which, and that every named crash point is a real one.
//
// [Load] parses the sources of a tree, [Layers] compares their imports with the table in layers.go, and [Points] collects the names of
// commits and outside actions. All of them read text only, so files for other systems and build tags are seen as well.
//
// It imports nothing of ours; its tests import internal/fault for the list of points.
package archtest
