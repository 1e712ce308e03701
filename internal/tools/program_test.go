package tools

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"holdfast/session"
)

// The files that a command names as what it runs, and no others.
func TestShell_Programs(t *testing.T) {
	b := newBench(t)
	cwd, err := filepath.EvalSymlinks(b.env.Cwd)
	if err != nil {
		t.Fatal(err)
	}
	outside := filepath.Join(t.TempDir(), "outside.sh")
	for _, f := range []string{"x.sh", "sub/y.sh", "Makefile", "sub/Makefile", "package.json", "data.csv", "run.py"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(cwd, f)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(cwd, f), []byte(f), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(outside, nil, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(cwd, "x.sh"), filepath.Join(cwd, "link.sh")); err != nil {
		t.Fatal(err)
	}
	for command, want := range map[string]string{
		"./x.sh":                          "x.sh",
		"sh x.sh":                         "x.sh",
		"./link.sh":                       "x.sh",
		"bash -x ./x.sh data.csv":         "x.sh data.csv",
		"python3 run.py":                  "run.py",
		"sudo env A=b python3 run.py":     "run.py",
		"cat data.csv":                    "",
		"cat data.csv | sh x.sh":          "x.sh",
		"cd sub && ./y.sh":                "sub/y.sh",
		"cd sub; cd ..; ./x.sh":           "x.sh",
		"cd '" + cwd + "/sub' && sh y.sh": "sub/y.sh",
		"make all":                        "-GNUmakefile -makefile Makefile",
		"make -C sub":                     "-GNUmakefile -makefile Makefile -sub/GNUmakefile -sub/makefile sub/Makefile",
		"make -f sub/Makefile":            "-GNUmakefile -makefile Makefile sub/Makefile",
		"npm test":                        "package.json",
		"echo $(sh x.sh)":                 "x.sh",
		"./missing.sh":                    "-missing.sh",
		"sh missing.sh":                   "",
		outside:                           "",
		"sh " + outside:                   "",
		"go test ./...":                   "",
		"echo x.sh":                       "",
		"":                                "",
	} {
		var got []string
		for _, f := range (shellTool{}).Programs(b.env, session.Plan{Command: command}) {
			rel, err := filepath.Rel(cwd, f.Path)
			if err != nil {
				t.Fatal(err)
			}
			if f.Digest == "absent" {
				rel = "-" + rel
			} else if f.Digest != digestOf([]byte(strings.TrimPrefix(rel, "-"))) {
				t.Errorf("%q: %s has the digest %s", command, rel, f.Digest)
			}
			got = append(got, rel)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%q: %q, want %q", command, strings.Join(got, " "), want)
		}
	}
}
