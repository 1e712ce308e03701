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

// Reading on from an offset neither repeats nor skips, and leaves a character alone until all of it is there.
func TestHandle_OutputFrom(t *testing.T) {
	h := start(t, counting(newDir(t), `printf 'one \342\202'; echo > half; while [ ! -e go ]; do sleep 0.01; done; printf '\254 two'; printf '\342'`))
	eventually(t, "half a character is printed", func() bool { _, err := os.Stat(path(h.dir, "half")); return err == nil })
	v, err := h.OutputFrom(0, 100, false)
	if err != nil || string(v.Head) != "one " || v.Total != 4 {
		t.Errorf("first %q to %d, %v", v.Head, v.Total, err)
	}
	if v, err = h.OutputFrom(v.Total, 100, false); err != nil || len(v.Head) != 0 || v.Total != 4 {
		t.Errorf("nothing new: %q to %d, %v", v.Head, v.Total, err)
	}
	if err := os.WriteFile(path(h.dir, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	finished(t, h)
	if v, err = h.OutputFrom(4, 100, false); err != nil || string(v.Head) != "€ two" || v.Total != 11 {
		t.Errorf("then %q to %d, %v", v.Head, v.Total, err)
	}
	if v, err = h.OutputFrom(v.Total, 100, true); err != nil || string(v.Head) != "\xe2" || v.Total != 12 {
		t.Errorf("the rest %q to %d, %v", v.Head, v.Total, err)
	}
	if v, err = h.OutputFrom(500, 100, true); err != nil || len(v.Head) != 0 || v.From != 12 {
		t.Errorf("behind the end: %q from %d, %v", v.Head, v.From, err)
	}
	if v, err = h.OutputFrom(3, 4, true); err != nil || v.Cut != 6 || v.From != 3 || string(v.Head) != " " {
		t.Errorf("both ends of a part: %q, %q, cut %d, %v", v.Head, v.Tail, v.Cut, err)
	}
	if v, err := Open(newDir(t)).OutputFrom(0, 10, false); err != nil || v.Total != 0 {
		t.Errorf("without output: %+v, %v", v, err)
	}
}
