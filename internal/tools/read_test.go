//go:build unix

package tools

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"image"
	"image/png"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

func pngOf(t testing.TB, w, h int) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, w, h))); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestRead_ShowsImages(t *testing.T) {
	b := newBench(t)
	small := pngOf(t, 30, 20)
	b.put("small.dat", string(small)) // what it is says the content, not the name
	out := b.must("read", args{"path": "small.dat"})
	if len(out.Images) != 1 || !bytes.Equal(out.Images[0].Data, small) || out.Images[0].MIME != "image/png" || !strings.Contains(out.Text, "30x20 pixels") ||
		!strings.Contains(out.Text, "version "+versionOf(digestOf(small))) {
		t.Errorf("got %s, %v", out.Text, out.Images)
	}
	b.put("wide.png", string(pngOf(t, 5000, 50)))
	if out = b.must("read", args{"path": "wide.png"}); len(out.Images) != 1 || out.Images[0].Width != 2000 || !strings.Contains(out.Text, "smaller") {
		t.Errorf("got %s, %v", out.Text, out.Images)
	}
	b.put("broken.png", string(small[:len(small)-20]))
	if out = b.must("read", args{"path": "broken.png"}); len(out.Images) != 0 || !strings.Contains(out.Text, "damaged") {
		t.Errorf("got %s, %v", out.Text, out.Images)
	}
	if raw, err := json.Marshal(out); err != nil || bytes.Contains(raw, []byte("IDAT")) {
		t.Error("bytes of an image are in the JSON of a result")
	}
}

func TestRead_Notebook(t *testing.T) {
	b := newBench(t)
	b.put("a.ipynb", `{"cells":[{"cell_type":"markdown","source":["# Title\n","text"]},{"cell_type":"code","source":"print(1)\n","outputs":[{"output_type":"stream","text":["1\n"]},`+
		`{"output_type":"display_data","data":{"image/png":"aGVsbG8=","text/plain":"<Figure>"}},{"output_type":"error","ename":"ValueError","evalue":"bad"},{"text":"`+
		strings.Repeat("long ", 2000)+`"}]}],"metadata":{"x":1}}`)
	out := b.must("read", args{"path": "a.ipynb"})
	for _, want := range []string{"1\t[cell 1, markdown]\n2\t# Title\n3\ttext\n", "print(1)", "[output of cell 2]", "[image/png, 8 bytes]", "<Figure>", "ValueError: bad",
		"bytes are left out", "version " + versionOf(digestOf([]byte(b.get("a.ipynb"))))} {
		if !strings.Contains(out.Text, want) {
			t.Errorf("no %q in\n%s", want, out.Text)
		}
	}
	if len(out.Text) > 4000 {
		t.Errorf("outputs are not shortened: %d bytes", len(out.Text))
	}
	if out = b.must("read", args{"path": "a.ipynb", "raw": true}); !strings.HasPrefix(out.Text, "1\t{\"cells\"") {
		t.Error(out.Text[:50])
	}
	b.put("b.ipynb", "no notebook\n")
	if out = b.must("read", args{"path": "b.ipynb"}); !strings.HasPrefix(out.Text, "1\tno notebook\n[lines 1-1 of 1") {
		t.Error(out.Text)
	}
}

func TestRead_EncodingsAndControlCharacters(t *testing.T) {
	b := newBench(t)
	for name, c := range map[string]struct{ content, want string }{
		"utf-16le":   {"\xff\xfea\x00\n\x00=\xd8\x00\xde", "1\ta\n2\t😀\n[lines 1-2 of 2, version"},
		"utf-16be":   {"\xfe\xff\x00a\x00\n\x00b", "1\ta\n2\tb\n"},
		"half pair":  {"\xff\xfe=\xd8", "1\t\ufffd\n"},
		"latin-1":    {"caf\xe9\n", `1` + "\t" + `caf\xe9` + "\n[lines 1-1 of 1, version"},
		"escapes":    {"a\x1b[31mred\x07\u009b\u202e\n", `a\x1b[31mred\x07\u009b\u202e`},
		"mark":       {"\ufeffx\r\ny\r\n", "1\tx\n2\ty\n[lines 1-2"},
		"empty":      {"", "[empty file, version"},
		"no newline": {"x", "1\tx\n[lines 1-1 of 1"},
	} {
		b.put("f", c.content)
		if out := b.must("read", args{"path": "f"}); !strings.Contains(out.Text, c.want) {
			t.Errorf("%s: %q", name, out.Text)
		}
	}
}

// A file that is larger than memory should hold is read as far as it is shown.
func TestRead_LargeFilesTakeNoMemory(t *testing.T) {
	b := newBench(t)
	b.put("sparse", "")
	if err := os.Truncate(b.path("sparse"), 5<<30); err != nil {
		t.Fatal(err)
	}
	b.put("text", "first\nsecond\n"+strings.Repeat("x", 1<<20))
	if err := os.Truncate(b.path("text"), 5<<30); err != nil {
		t.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if out := b.must("read", args{"path": "sparse"}); !strings.Contains(out.Text, "binary file, 5368709120 bytes") {
		t.Error(out.Text)
	}
	if out := b.must("read", args{"path": "text", "offset": 2, "limit": 1}); !strings.HasPrefix(out.Text, "2\tsecond\n[lines 2-2 of a file of 5368709120 bytes") {
		t.Error(out.Text)
	}
	if out := b.must("grep", args{"pattern": "^$"}); !strings.HasPrefix(out.Text, "[no match]") {
		t.Error(out.Text)
	}
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > 32<<20 {
		t.Errorf("%d bytes were allocated", n)
	}
}

func TestRead_RefusesWhatIsNoFile(t *testing.T) {
	b := newBench(t)
	if err := syscall.Mkfifo(b.path("pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	if msg := b.refused("read", args{"path": "pipe"}); !strings.Contains(msg, "a pipe") {
		t.Error(msg)
	}
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Close(fd) }()
	t.Chdir(b.env.Cwd) // the name of a socket is short
	if err := unix.Bind(fd, &unix.SockaddrUnix{Name: "sock"}); err != nil {
		t.Fatal(err)
	}
	if msg := b.refused("read", args{"path": "sock"}); !strings.Contains(msg, "a socket") {
		t.Error(msg)
	}
	b.env.Cwd, b.env.Roots = "/dev", []string{"/dev"}
	if msg := b.refused("read", args{"path": "zero"}); !strings.Contains(msg, "a device") {
		t.Error(msg)
	}
	if msg := b.refused("read", args{"path": "."}); !strings.Contains(msg, "folder") {
		t.Error(msg)
	}
}

func TestNames_NeverCommandATerminal(t *testing.T) {
	b := newBench(t)
	for _, name := range []string{"new\nline", "esc\x1b[2Jape", "bad\xffutf8", "turn\u202eed", "tab\there", "end "} {
		if err := os.WriteFile(b.path(name), []byte("needle\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("to\x1bwhere", b.path("link")); err != nil {
		t.Fatal(err)
	}
	for name, a := range map[string]args{"list": {}, "glob": {"pattern": "*"}, "grep": {"pattern": "needle"}} {
		out := b.must(name, a)
		if lines := strings.Count(out.Text, "\n") + 1; lines > 7 || hiddenAt(strings.ReplaceAll(out.Text, "\n", "")) >= 0 {
			t.Errorf("%s shows %q", name, out.Text)
		}
		for _, want := range []string{`new\nline`, `esc\x1b[2Jape`, `bad\xffutf8`, `turn\u202eed`, `tab\there`, `end\x20`} {
			if !strings.Contains(out.Text, want) {
				t.Errorf("%s does not show %s: %q", name, want, out.Text)
			}
		}
	}
	pl, err := b.tool("read").Plan(b.env, json.RawMessage(`{"path":"esc\u001b[2Jape"}`))
	if err != nil || hiddenAt(pl.Title) >= 0 {
		t.Errorf("the title is %q, %v", pl.Title, err)
	}
}

func TestRead_EditorAndDisk(t *testing.T) {
	b := newBench(t)
	b.put("same.txt", "\ufeffone\r\ntwo\r\n")
	b.put("differs.txt", "on disk\n")
	b.put("silent.txt", "on disk\n")
	var asked []string
	b.env.Buffer = func(_ context.Context, path string) (string, bool) {
		asked = append(asked, path)
		switch filepath.Base(path) {
		case "same.txt":
			return "one\ntwo\n", true
		case "differs.txt":
			return "in the editor\n", true
		case "new.txt":
			return "never saved\n", true
		}
		return "", false
	}
	if out := b.must("read", args{"path": "same.txt"}); !strings.Contains(out.Text, "; the same in the editor]") || !strings.Contains(out.Text, "version ") {
		t.Error(out.Text)
	}
	out := b.must("read", args{"path": "differs.txt"})
	if !strings.HasPrefix(out.Text, "1\tin the editor\n") || !strings.Contains(out.Text, "The file on disk differs") || strings.Contains(out.Text, "version") {
		t.Error(out.Text)
	}
	// Nothing is written on the strength of it: it names no version, and the text is not on disk.
	b.refused("write", args{"path": "differs.txt", "content": "in the editor, changed\n"})
	b.refused("write", args{"path": "differs.txt", "content": "in the editor, changed\n", "version": versionOf(digestOf([]byte("in the editor\n")))})
	b.refused("edit", args{"path": "differs.txt", "edits": []args{{"old": "in the editor", "new": "x"}}})
	if out = b.must("read", args{"path": "differs.txt", "from": "disk"}); !strings.HasPrefix(out.Text, "1\ton disk\n") || !strings.Contains(out.Text, "version ") {
		t.Error(out.Text)
	}
	b.must("write", args{"path": "differs.txt", "content": "x\n", "version": versionOf(digestOf([]byte("on disk\n")))})
	if out = b.must("read", args{"path": "silent.txt"}); !strings.Contains(out.Text, "; as it is on disk, the editor did not say what it has]") {
		t.Error(out.Text)
	}
	if out = b.must("read", args{"path": "new.txt"}); !strings.Contains(out.Text, "not on disk") || !strings.HasPrefix(out.Text, "1\tnever saved\n") {
		t.Error(out.Text)
	}
	b.refused("read", args{"path": "none.txt"})
	for _, path := range asked {
		if filepath.Dir(path) != b.env.Cwd {
			t.Errorf("the editor was asked for %s", path)
		}
	}
}

func TestComparison_IsTheSameInAnyPieces(t *testing.T) {
	text := "\ufeffa\r\nb\rc\r\n\r\n"
	for size := 1; size <= len(text); size++ {
		c := &comparison{want: normal(text)}
		for i := 0; i < len(text); i += size {
			fmt.Fprint(c, text[i:min(i+size, len(text))])
		}
		if !c.same() {
			t.Errorf("in pieces of %d a text differs from itself", size)
		}
		for _, other := range []string{text + "x", text[:len(text)-1], "x" + text} {
			c := &comparison{want: normal(other)}
			fmt.Fprint(c, text)
			if c.same() && !bytes.Equal(normal(other), normal(text)) {
				t.Errorf("%q is taken for %q", text, other)
			}
		}
	}
}
