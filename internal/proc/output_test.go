//go:build linux

package proc

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"
)

func sum(b []byte) string {
	s := sha256.Sum256(b)
	return hex.EncodeToString(s[:])
}

// printing runs a command whose output is the content given.
func printing(t *testing.T, content []byte) *Handle {
	t.Helper()
	dir := newDir(t)
	file := filepath.Join(filepath.Dir(dir), "content")
	if err := os.WriteFile(file, content, 0o600); err != nil {
		t.Fatal(err)
	}
	h := start(t, counting(dir, "cat ../content"))
	if r := finished(t, h); !exited(r, 0) || r.OutputBytes != int64(len(content)) {
		t.Fatalf("receipt %v", r)
	}
	return h
}

func TestHandle_OutputKeepsBothEndsWhole(t *testing.T) {
	content := strings.Repeat("é€😀", 2000)
	h := printing(t, []byte(content))
	for limit := range 120 {
		v, err := h.Output(limit, false)
		if err != nil {
			t.Fatal(err)
		}
		if !utf8.Valid(v.Head) || !utf8.Valid(v.Tail) {
			t.Fatalf("limit %d cuts inside a character: %q and %q", limit, v.Head, v.Tail)
		}
		if !strings.HasPrefix(content, string(v.Head)) || !strings.HasSuffix(content, string(v.Tail)) || len(v.Head)+len(v.Tail) > limit {
			t.Fatalf("limit %d: not the two ends: %q and %q", limit, v.Head, v.Tail)
		}
		if lost := limit - len(v.Head) - len(v.Tail); lost > 2*(utf8.UTFMax-1)+1 {
			t.Fatalf("limit %d: %d bytes were given away", limit, lost)
		}
		if v.Cut+int64(len(v.Head)+len(v.Tail)) != v.Total || v.Total != int64(len(content)) || v.Digest != "" {
			t.Fatalf("limit %d: sizes do not add up: %+v", limit, v)
		}
	}
	if v, err := h.Output(-5, false); err != nil || len(v.Head)+len(v.Tail) != 0 {
		t.Errorf("a limit below nothing gives %+v, %v", v, err)
	}
	if v, err := h.Output(len(content), false); err != nil || string(v.Head) != content || v.Cut != 0 || len(v.Tail) != 0 {
		t.Errorf("a limit of exactly the whole cuts %d, %v", v.Cut, err)
	}
}

func TestHandle_BinaryOutput(t *testing.T) {
	content := make([]byte, 5000)
	for i := range content {
		content[i] = byte(i * 7)
	}
	h := printing(t, content)
	v, err := h.Output(10000, true)
	if err != nil || !bytes.Equal(v.Head, content) || v.Digest != "sha256:"+sum(content) {
		t.Errorf("binary output came back as %d bytes, %s, %v", len(v.Head), v.Digest, err)
	}
	v, err = h.Output(100, false)
	if err != nil || !bytes.HasPrefix(content, v.Head) || !bytes.HasSuffix(content, v.Tail) || len(v.Head) < 46 || len(v.Tail) < 46 {
		t.Errorf("the ends of binary output: %d and %d bytes, %v", len(v.Head), len(v.Tail), err)
	}
}

func TestHandle_LargeOutput(t *testing.T) {
	line := []byte("the quick brown fox jumps over the lazy dog\n")
	content := bytes.Repeat(line, 10<<20/len(line)+1)
	h := printing(t, content)
	v, err := h.Output(2000, true)
	if err != nil || v.Total != int64(len(content)) || v.Digest != "sha256:"+sum(content) || len(v.Head) != 1000 || len(v.Tail) != 1000 {
		t.Errorf("%d bytes, %s, ends of %d and %d, %v", v.Total, v.Digest, len(v.Head), len(v.Tail), err)
	}
}

func TestHandle_OutputBeforeTheEnd(t *testing.T) {
	if v, err := Open(newDir(t)).Output(100, true); err != nil || v.Total != 0 {
		t.Errorf("without a folder: %+v, %v", v, err)
	}
	h := start(t, counting(newDir(t), "echo early; sleep 60"))
	eventually(t, "output of a live command", func() bool {
		v, err := h.Output(100, false)
		if err != nil {
			t.Fatal(err)
		}
		return string(v.Head) == "early\n"
	})
}
