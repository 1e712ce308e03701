package session

import "testing"

func TestModelError_Final(t *testing.T) {
	for _, c := range []struct{ kind, want string }{
		{string(ModelBadRequest), "model: x"},
		{string(ModelNotFound), "model: x. There is no such model for this key, or the base URL is not the right one: 'holdfast models --ask' lists what is there."},
		{string(ModelAuth), "model: x. The endpoint does not accept the key for this: see to it with 'holdfast setup', in the variable that holds it, or at the provider."},
	} {
		if got := (&ModelError{Kind: ModelErrorKind(c.kind), Message: "model: x"}).final(); got != c.want {
			t.Errorf("%s: %q, want %q", c.kind, got, c.want)
		}
	}
}
