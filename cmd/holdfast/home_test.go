package main

import (
	"path/filepath"
	"slices"
	"testing"

	"holdfast/internal/config"
)

// Wherever the configuration is read from, the tools keep away from it.
func TestOwnPlaces_CoverTheConfiguration(t *testing.T) {
	if userHome() == "" {
		t.Skip("the user database names no home directory here; as a user who has one: go test -run OwnPlaces ./cmd/holdfast")
	}
	if path := config.Path(t.TempDir(), userHome()); !slices.Contains(ownPlaces(), filepath.Dir(path)) {
		t.Errorf("the configuration is %s, kept are %v", path, ownPlaces())
	}
}
