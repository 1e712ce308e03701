package session

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

func TestUnified_ReadsLikeGits(t *testing.T) {
	for name, c := range map[string]struct{ old, now, want string }{
		"same":        {"a\n", "a\n", ""},
		"new file":    {"", "a\nb\n", "@@ -0,0 +1,2 @@\n+a\n+b\n"},
		"emptied":     {"a\n", "", "@@ -1,1 +0,0 @@\n-a\n"},
		"in between":  {"1\n2\n3\n4\n5\n6\n7\n8\n9\n", "1\n2\n3\n4\nx\n6\n7\n8\n9\n", "@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+x\n 6\n 7\n 8\n"},
		"no newline":  {"a", "b\n", "@@ -1,1 +1,1 @@\n-a\n\\ No newline at end of file\n+b\n"},
		"binary":      {"a\x00", "b", "(2 bytes became 1, not shown)\n"},
		"line ends":   {"a\r\n", "a\n", "@@ -1,1 +1,1 @@\n-a\r\n+a\n"},
		"far apart":   {"a\n" + strings.Repeat("=\n", 9) + "b\n", "A\n" + strings.Repeat("=\n", 9) + "B\n", "@@ -1,4 +1,4 @@\n-a\n+A\n =\n =\n =\n@@ -8,4 +8,4 @@\n =\n =\n =\n-b\n+B\n"},
		"close by":    {"a\n=\n=\nb\n", "A\n=\n=\nB\n", "@@ -1,4 +1,4 @@\n-a\n+A\n =\n =\n-b\n+B\n"},
		"inserted in": {"a\nb\n", "a\nx\nb\n", "@@ -1,2 +1,3 @@\n a\n+x\n b\n"},
	} {
		if got := unified([]byte(c.old), []byte(c.now)); got != c.want {
			t.Errorf("%s:\n%s\nwant\n%s", name, got, c.want)
		}
	}
}

// A comparison holds both texts, whatever they are.
func TestCompare_HoldsBothTexts(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	for range 500 {
		var text [2][]string
		for i := range text {
			for range r.IntN(12) {
				text[i] = append(text[i], string(rune('a'+r.IntN(4)))+"\n")
			}
		}
		var old, now []string
		for _, e := range compare(text[0], text[1]) {
			if e.sign != '+' {
				old = append(old, e.line)
			}
			if e.sign != '-' {
				now = append(now, e.line)
			}
		}
		if !slices.Equal(old, text[0]) || !slices.Equal(now, text[1]) {
			t.Fatalf("%q and %q became %q and %q", text[0], text[1], old, now)
		}
	}
}
