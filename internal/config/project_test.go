package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// tree makes files in a new directory, whose path has no links.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		put(t, filepath.Join(dir, name), text)
	}
	return dir
}

func put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
}

const starts = "[mcp.servers.x]\ncommand = \"./tools/run\"\nargs = [\"--script=lib/a.js\", \"nothing\", \"/etc/passwd\"]\n"

func TestFindProject_NearestUpToTheRepository(t *testing.T) {
	dir := tree(t, map[string]string{".holdfast/config.toml": "", "repo/.git/HEAD": "", "repo/a/b/c": "", "repo/a/.holdfast/config.toml": ""})
	for cwd, want := range map[string]string{"": "", "repo": "", "repo/a": "repo/a", "repo/a/b": "repo/a"} {
		p, err := FindProject(filepath.Join(dir, cwd))
		if err != nil {
			t.Fatal(err)
		}
		if cwd == "repo" { // the file above the repository is none of its business
			if p.Exists() || p.Dir != filepath.Join(dir, "repo") {
				t.Errorf("in the repository: %+v", p)
			}
		} else if !p.Exists() || p.Dir != filepath.Join(dir, want) || p.Digest == "" {
			t.Errorf("in %q: %+v", cwd, p)
		}
	}
	if err := os.Symlink(filepath.Join(dir, "repo"), filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	if p, err := FindProject(filepath.Join(dir, "link", "a")); err != nil || p.Dir != filepath.Join(dir, "repo", "a") {
		t.Errorf("through a link: %+v, %v", p, err)
	}
}

// Whatever could change what is started changes the digest, and nothing else does.
func TestProject_DigestIsOfWhatIsStarted(t *testing.T) {
	dir := tree(t, map[string]string{ProjectFile: starts, "tools/run": "one", "lib/a.js": "one", "other": "one"})
	before := ReadProject(dir)
	if before.Err != nil || strings.Join(before.Programs, " ") != "lib/a.js tools/run" {
		t.Fatalf("%+v", before)
	}
	for name, changes := range map[string]bool{"other": false, "tools/run": true, "lib/a.js": true, "nothing": true, ProjectFile: true} {
		old, _ := os.ReadFile(filepath.Join(dir, name)) // absent is fine
		put(t, filepath.Join(dir, name), string(old)+"\n")
		if now := ReadProject(dir); now.Err != nil || (now.Digest != before.Digest) != changes {
			t.Errorf("a change of %s: the digest changed is %v, %v", name, now.Digest != before.Digest, now.Err)
		}
		if old == nil {
			_ = os.Remove(filepath.Join(dir, name))
		} else {
			put(t, filepath.Join(dir, name), string(old))
		}
	}
	if ReadProject(dir).Digest != before.Digest {
		t.Error("the same files have another digest")
	}
}

// A link that leads out is not followed, and what is no file is not opened.
func TestProject_StaysInside(t *testing.T) {
	outside := tree(t, map[string]string{"config.toml": starts, "secret": "x"})
	dir := tree(t, map[string]string{"a": ""})
	if err := os.Mkdir(filepath.Join(dir, ".holdfast"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(outside, "config.toml"), filepath.Join(dir, ProjectFile)); err != nil {
		t.Fatal(err)
	}
	if p := ReadProject(dir); p.Err == nil || p.Digest != "" || !strings.Contains(p.Err.Error(), "no link out of it") {
		t.Errorf("a link out: %+v", p)
	}
	_ = os.Remove(filepath.Join(dir, ProjectFile))
	if err := os.Mkdir(filepath.Join(dir, ProjectFile), 0o755); err != nil {
		t.Fatal(err)
	}
	if p := ReadProject(dir); p.Err == nil || p.Digest != "" {
		t.Errorf("a directory: %+v", p)
	}
	dir = tree(t, map[string]string{ProjectFile: "[mcp.servers.x]\ncommand = \"cat\"\nargs = [\"link\"]\n"})
	if err := os.Symlink(filepath.Join(outside, "secret"), filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	if p := ReadProject(dir); p.Err != nil || len(p.Programs) > 0 {
		t.Errorf("an argument that is a link out: %+v", p)
	}
}
