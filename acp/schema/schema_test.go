package schema

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"testing"
)

func TestFiles_AreThoseOfTheReadme(t *testing.T) {
	for name, file := range map[string][]byte{"v1/schema.json": V1, "v1/meta.json": V1Meta} {
		sum := sha256.Sum256(file)
		found := false
		for line := range strings.Lines(Readme) {
			found = found || strings.Contains(line, "`"+name+"`") && strings.Contains(line, hex.EncodeToString(sum[:]))
		}
		if !found {
			t.Errorf("%s has the sum %x, which README.md does not name for it", name, sum)
		}
	}
}
