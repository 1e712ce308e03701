package provider

import "holdfast/session"

// Own tells whether a model is asked at its provider's own endpoint.
func Own(id session.ModelIdentity) bool {
	base, err := parseBase(homes[id.Provider].base)
	return err == nil && id.Origin == originOf(base)
}
