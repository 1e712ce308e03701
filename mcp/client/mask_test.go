package client

import (
	"bytes"
	"strings"
	"testing"

	"github.com/rs/zerolog"
)

// However a secret falls on the pieces that are written, and on the place where the kept end begins, no part of it is shown.
func TestTail_HidesSecrets(t *testing.T) {
	const secret = "sk-0123456789-abcdefghij"
	m := newMask([]string{secret, "abc", "line one\nline two", `quo"te`})
	for pad := tailBytes - 60; pad < tailBytes+60; pad++ {
		tl := &tail{mask: m}
		text := "before " + secret + strings.Repeat(".", pad)
		for len(text) > 0 {
			n := min(len(text), 1000)
			_, _ = tl.Write([]byte(text[:n])) // never fails
			text = text[n:]
		}
		got := tl.String()
		for i := 0; i+8 <= len(secret); i++ {
			if strings.Contains(got, secret[i:i+8]) {
				t.Fatalf("with %d behind it, %q is shown", pad, got[:40])
			}
		}
		if len(got) > tailBytes+100 || len(got) < tailBytes-200 {
			t.Fatalf("with %d behind it, %d bytes are kept", pad, len(got))
		}
	}
	if got := m.hide("abc line two quo\\\"te " + secret); got != "abc [secret hidden by holdfast] [secret hidden by holdfast] [secret hidden by holdfast]" {
		t.Errorf("hidden: %q", got)
	}
}

func TestTail_IsBounded(t *testing.T) {
	tl := &tail{mask: newMask(nil)}
	for range 1000 {
		_, _ = tl.Write(bytes.Repeat([]byte("é"), 5000)) // never fails
	}
	_, _ = tl.Write([]byte("the end"))
	if got := tl.String(); cap(tl.buf) > 1<<20 || len(got) > tailBytes || !strings.HasSuffix(got, "éthe end") || strings.Contains(got, "\uFFFD") {
		t.Errorf("cap %d, length %d, ends with %q", cap(tl.buf), len(got), got[len(got)-20:])
	}
}

func TestStderrLog_LinesAndLimit(t *testing.T) {
	var b bytes.Buffer
	l := newStderrLog(zerolog.New(&b), newMask([]string{"hush-hush"}))
	for _, part := range []string{"one hu", "sh-hush two\nth", "ree\n", strings.Repeat("x", 10000) + "\n"} {
		_, _ = l.Write([]byte(part)) // never fails
	}
	for range 1000 {
		_, _ = l.Write([]byte("again\n"))
	}
	got := b.String()
	if !strings.Contains(got, "one [secret hidden by holdfast] two") || !strings.Contains(got, `"three"`) || strings.Contains(got, "hush-hush") || strings.Count(got, "\n") > 2*linesPerSecond || len(got) > 20000 {
		t.Errorf("%d lines: %.500s", strings.Count(got, "\n"), got)
	}
}
