package tools

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
	"testing/iotest"
)

// reference finds matching lines as slowly and plainly as can be.
func reference(pattern, text string) (out []int) {
	re := regexp.MustCompile(pattern)
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	for i, l := range lines {
		if text != "" && re.MatchString(strings.TrimSuffix(l, "\r")) {
			out = append(out, i+1)
		}
	}
	return out
}

// searched finds them as grep does.
func searched(t testing.TB, a grepArgs, text string, chopped bool) (out []int) {
	t.Helper()
	m, err := newMatch(a)
	if err != nil {
		t.Fatal(err)
	}
	s := Options{}.newFileSearch(m, a, 1<<30)
	s.out = &hits{}
	var r = bytes.NewReader([]byte(text))
	if chopped {
		s.scan(context.Background(), iotest.OneByteReader(r), func() string { return "f" })
	} else {
		s.run(context.Background(), r, func() string { return "f" })
	}
	for _, row := range s.out.rows {
		if row.kind == rowMatch {
			n := 0
			if _, err := fmt.Sscanf(row.text, "f:%d:", &n); err != nil {
				t.Fatal(err)
			}
			out = append(out, n)
		}
	}
	return out
}

var somePatterns = []string{`a`, `ab`, `a.c`, `^a`, `a$`, `^$`, `^`, `\bab\b`, `\Bb`, `(ab|ba)+c`, `[a-c]{3}`, `(?i)AbC`, `(?i)k`, `é`, `a|é`, `[^a]$`, `\s`, `a\s*b`, `\w\W\w`, `(?s)a.b`,
	`\Aab`, `b\z`, `x*`, `a{2,4}c?$`, `(?:)`, `\x{212a}`, `(?i)straße`, `[[:upper:]]`, `\.`, `.\r`, `a\nb`, `(?m)^b$`, `c(a|b*)c`}

func TestMatch_AgreesWithTheExpression(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	alphabet := []string{"a", "b", "c", "A", "B", "k", "K", "s", " ", "\t", "\n", "\n", "\r\n", "\r", ".", "é", "\u212a", "ß", "x", "\xff", "_", "-"}
	for range 3000 {
		var text strings.Builder
		for range rnd.IntN(60) {
			text.WriteString(alphabet[rnd.IntN(len(alphabet))])
		}
		pattern := somePatterns[rnd.IntN(len(somePatterns))]
		want := fmt.Sprint(reference(pattern, text.String()))
		for _, chopped := range []bool{false, true} {
			if got := fmt.Sprint(searched(t, grepArgs{Pattern: pattern}, text.String(), chopped)); got != want {
				t.Fatalf("%q in %q: lines %s, want %s", pattern, text.String(), got, want)
			}
		}
		if got := fmt.Sprint(searched(t, grepArgs{Pattern: pattern, IgnoreCase: true}, text.String(), false)); got != fmt.Sprint(reference("(?i:"+pattern+")", text.String())) {
			t.Fatalf("%q in any case in %q: lines %s", pattern, text.String(), got)
		}
	}
}

// Blocks end anywhere in a file that is longer than one.
func TestMatch_OverBlocks(t *testing.T) {
	rnd := rand.New(rand.NewPCG(5, 6))
	var text strings.Builder
	for text.Len() < 5*firstRead {
		text.WriteString(strings.Repeat("filler ", rnd.IntN(300)))
		if rnd.IntN(20) == 0 {
			text.WriteString("needle")
		}
		text.WriteByte('\n')
	}
	for _, pattern := range []string{"needle", "n[e]+dle", "(?i)NEEDLE", "[n]eed.*$"} {
		for _, around := range []int{0, 3} {
			if got, want := fmt.Sprint(searched(t, grepArgs{Pattern: pattern, Context: around}, text.String(), false)), fmt.Sprint(reference(pattern, text.String())); got != want {
				t.Errorf("%s with context %d: %s, want %s", pattern, around, got, want)
			}
		}
	}
}

func FuzzMatch(f *testing.F) {
	for _, p := range somePatterns {
		f.Add(p, "ab\nbca\r\n\u212a\n")
	}
	f.Fuzz(func(t *testing.T, pattern, text string) {
		if _, err := regexp.Compile(pattern); err != nil || pattern == "" || strings.ContainsRune(text, 0) || len(pattern) > 100 {
			return // no expression to compare
		}
		text = strings.TrimPrefix(text, "\ufeff")
		if got, want := fmt.Sprint(searched(t, grepArgs{Pattern: pattern}, text, false)), fmt.Sprint(reference(pattern, text)); got != want {
			t.Errorf("%q in %q: lines %s, want %s", pattern, text, got, want)
		}
	})
}
