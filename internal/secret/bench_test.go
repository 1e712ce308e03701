package secret

import (
	"strings"
	"testing"
)

// How fast the output of a command is blanked, which stands between its end and its receipt.
func BenchmarkBlank(b *testing.B) {
	for name, text := range map[string]string{
		"short lines": strings.Repeat("y\n", 1<<19), "one line": strings.Repeat("y", 1<<20), "dashes": strings.Repeat("-", 1<<20),
		"code": strings.Repeat("if err := do(ctx, a.value); err != nil { return fmt.Errorf(\"do: %w\", err) }\n", 14000),
	} {
		b.Run(name, func(b *testing.B) {
			m := New("env-7f3a9c21-Zq8Rw5Ty2Ui", "another-value-0123")
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				buf := []byte(text)
				m.Blank(buf, true)
			}
		})
	}
}
