package tools

import (
	"bytes"
	"testing"
)

// Only the letters of ASCII change, wherever they stand.
func TestLowerASCII_ChangesLettersOnly(t *testing.T) {
	all := make([]byte, 0, 256*3)
	for i := range 256 * 3 {
		all = append(all, byte(i*7))
	}
	for from := range 20 {
		text := all[from : len(all)-from]
		want := bytes.Clone(text)
		for i, c := range want {
			if 'A' <= c && c <= 'Z' {
				want[i] = c + 32
			}
		}
		if got := lowerASCII([]byte("AB")[:1], text); got[0] != 'A' || !bytes.Equal(got[1:], want) {
			t.Fatalf("from %d: %q, want %q", from, got, want)
		}
	}
}
