package session

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestShownLine(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"make test", "make test"},
		{"echo 'größe' 👩‍💻", "echo 'größe' 👩‍💻"},
		{"rm -rf x\rls", `rm -rf x\rls`},
		{"rm x\x1b[2K\x1b[1Gls", `rm x\x1b[2K\x1b[1Gls`},
		{"a\nb\tc", `a\nb\tc`},
		{"run \u202egpj.sh", `run \u{202e}gpj.sh`},
		{"a\u200bb\u2066c\u00adc", `a\u{200b}b\u{2066}c\xadc`},
		{"\u2028\U000e0041", `\u{2028}\u{e0041}`},
		{"\x9b31m\x7f", "\uFFFD31m\\x7f"},
	} {
		if got := shownLine(c.in); got != c.want {
			t.Errorf("%q is shown as %q, want %q", c.in, got, c.want)
		}
	}
	if got := shownName(strings.Repeat("ä", 100_000)); utf8.RuneCountInString(got) != longestName+1 {
		t.Errorf("a long name has %d characters", utf8.RuneCountInString(got))
	}
}
