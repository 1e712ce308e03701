package nearest

import "testing"

func TestOf(t *testing.T) {
	names := []string{"status", "stop", "shell", "write"}
	for word, want := range map[string]string{"staus": "status", "tsatus": "status", "shel": "shell", "Shell": "shell", "wrote": "write", "fetch": "", "": "", "s": ""} {
		if got := Of(word, names); got != want {
			t.Errorf("%q: %q, want %q", word, got, want)
		}
	}
}
