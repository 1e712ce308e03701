package main

import (
	"slices"
	"testing"

	"holdfast/internal/config"
	"holdfast/internal/provider"
)

// What a file may say of the way to ask is what there is: neither package imports the other.
func TestModelKeys_NameWhatThereIs(t *testing.T) {
	want := map[string][]string{"model.openai_api": provider.APIs, "model.openai_dialect": provider.Dialects()}
	for _, k := range config.Keys() {
		if names, ok := want[k.Path]; ok && !slices.Equal(k.OneOf, names) {
			t.Errorf("%s takes %v, the provider %v", k.Path, k.OneOf, names)
		}
		delete(want, k.Path)
	}
	if len(want) > 0 {
		t.Errorf("there are no keys for %v", want)
	}
}
