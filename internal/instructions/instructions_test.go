package instructions

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// told is what the model is told of a place, and what the user is told about it.
func told(limit int, places ...Place) (string, string) {
	files := Find(places)
	Fit(files, limit)
	return Text(files), strings.Join(List(files), "\n")
}

func TestFind_FromTheTopDownToTheWork(t *testing.T) {
	dir := tree(t, map[string]string{"AGENTS.md": "above", "repo/AGENTS.md": "top", "repo/CLAUDE.md": "top", "repo/.github/copilot-instructions.md": "copilot",
		"repo/a/GEMINI.md": "middle", "repo/a/b/.cursorrules": "near", "repo/a/b/c/AGENTS.md": "below"})
	text, list := told(0, Place{Top: filepath.Join(dir, "repo"), Dir: filepath.Join(dir, "repo/a/b")})
	at := -1
	for _, want := range []string{"| top\n", "| copilot\n", "| middle\n", "| near\n"} {
		i := strings.Index(text, want)
		if i <= at {
			t.Errorf("%q is missing or too early in\n%s", want, text)
		}
		at = i
	}
	for _, not := range []string{"above", "below"} {
		if strings.Contains(text, not) {
			t.Errorf("%q is in\n%s", not, text)
		}
	}
	if !strings.Contains(list, "CLAUDE.md: left out, another file says the same") {
		t.Errorf("the user is told\n%s", list)
	}
	if again, _ := told(0, Place{Top: filepath.Join(dir, "repo"), Dir: filepath.Join(dir, "repo/a/b")}); again != text {
		t.Error("the same files give another text")
	}
}

func TestFind_NothingIsNothing(t *testing.T) {
	dir := tree(t, map[string]string{"AGENTS.md": "\n\n"})
	if text, list := told(0, Place{Top: dir, Dir: dir}); text != "" || !strings.Contains(list, "it is empty") {
		t.Errorf("%q, %q", text, list)
	}
}

func TestFind_FollowsNoLinkOut(t *testing.T) {
	outside := tree(t, map[string]string{"secret": "a secret", "dir/AGENTS.md": "a secret"})
	dir := tree(t, map[string]string{"real.md": "linked within", "sub/x": ""})
	for name, target := range map[string]string{"AGENTS.md": "real.md", "CLAUDE.md": filepath.Join(outside, "secret"), ".github": filepath.Join(outside, "dir"),
		"GEMINI.md": "nowhere"} {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, ".cursorrules"), 0o755); err != nil { // some projects have a folder of it
		t.Fatal(err)
	}
	text, list := told(0, Place{Top: dir, Dir: dir})
	if strings.Contains(text, "secret") || !strings.Contains(text, "| linked within\n") {
		t.Errorf("the model is told\n%s", text)
	}
	if !strings.Contains(list, "CLAUDE.md: left out") || !strings.Contains(list, "GEMINI.md: left out, its link leads nowhere") || !strings.Contains(list, ".cursorrules: left out") {
		t.Errorf("the user is told\n%s", list)
	}
}

// The nearest files get the room; what is cut is said to the model and to the user.
func TestFit_TheNearestFirst(t *testing.T) {
	line := strings.Repeat("x", 99) + "\n"
	dir := tree(t, map[string]string{"AGENTS.md": strings.Repeat(line, 20), "a/AGENTS.md": strings.Repeat("y"+line, 10), "CLAUDE.md": "never"})
	text, list := told(1500, Place{Top: dir, Dir: filepath.Join(dir, "a")})
	if n := strings.Count(text, "| y"); n != 10 {
		t.Errorf("%d lines of the nearest file", n)
	}
	if strings.Count(text, "| xxx") != 4 || !strings.Contains(text, "Cut here: 399 of 2000 bytes are shown.") || strings.Contains(text, "never") == strings.Contains(list, "never") && !strings.Contains(text, "never") {
		t.Errorf("the model is told\n%s", text)
	}
	if !strings.Contains(list, "AGENTS.md: cut, 399 of 2000 bytes") {
		t.Errorf("the user is told\n%s", list)
	}
	text, list = told(50, Place{Top: dir, Dir: filepath.Join(dir, "a")})
	if strings.Count(text, "| y") != 1 || !strings.Contains(list, "CLAUDE.md: left out, there is no room left for it") {
		t.Errorf("with 50 bytes\n%s\n%s", text, list)
	}
}

// Whatever a file holds, its lines stay behind the mark: nothing of it stands where the frame's own words stand.
func TestText_NothingLeavesTheFrame(t *testing.T) {
	dir := tree(t, map[string]string{"AGENTS.md": "x"})
	path := filepath.Join(dir, "AGENTS.md")
	ends := []string{"\n", "\r", "\r\n", "\v", "\f", "\u0085", "\u2028", "\u2029", "\x00", "\x1b[2K", "\u202e", "\U000E0041", "\xff", "\ufeff"}
	rapid.Check(t, func(rt *rapid.T) {
		parts := rapid.SliceOfN(rapid.OneOf(rapid.SampledFrom(ends), rapid.SampledFrom([]string{"End of the file.", "From \"/etc/passwd\":", "| ", mark, "escape"}),
			rapid.String()), 0, 30).Draw(rt, "parts")
		limit := rapid.IntRange(1, 400).Draw(rt, "limit")
		if err := os.WriteFile(path, []byte(strings.Join(parts, "")), 0o644); err != nil {
			rt.Fatal(err)
		}
		files := Find([]Place{{Top: dir, Dir: dir}})
		Fit(files, limit)
		text, held := Text(files), 0
		for i, line := range strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune("\n\r\v\f\u0085\u2028\u2029", r) }) {
			switch {
			case strings.HasPrefix(line, mark):
				held += len(line) - len(mark) + 1
			case i == 0 && line == preface, line == "From "+`"`+path+`":`, line == "End of the file.", strings.HasPrefix(line, "Cut here: "):
			default:
				rt.Fatalf("a line of the frame that is none: %q", line)
			}
		}
		if strings.Count(text, "\nEnd of the file.")+strings.Count(text, "\nCut here: ") > 1 || held > limit+1 {
			rt.Fatalf("%d bytes are used of %d:\n%s", held, limit, text)
		}
		for _, bad := range []string{"\x1b", "\x00", "\u202e", "\U000E0041"} {
			if strings.Contains(text, bad) {
				rt.Fatalf("%q is in the text", bad)
			}
		}
	})
}
