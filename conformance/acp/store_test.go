package acp_test

import (
	"crypto/rand"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// A state directory that cannot be used is named, with a code and what to do. initialize answers all the same, every session request says
// the same thing, and nothing is changed.
func TestStore_UnusableIsNamedAndLeftAlone(t *testing.T) {
	noise := make([]byte, 1<<16)
	if _, err := rand.Read(noise); err != nil {
		t.Fatal(err)
	}
	write := func(t *testing.T, path string, b []byte) {
		t.Helper()
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct {
		used    bool // a store was there before
		prepare func(t *testing.T, home, db string)
	}{
		"noise where no store was":  {false, func(t *testing.T, _, db string) { write(t, db, noise) }},
		"text where no store was":   {false, func(t *testing.T, _, db string) { write(t, db, []byte("not a database\n")) }},
		"noise over a store":        {true, func(t *testing.T, _, db string) { write(t, db, noise) }},
		"a hole in the first page":  {true, func(t *testing.T, _, db string) { patch(t, db, 100, make([]byte, 3000)) }},
		"a newer store":             {true, func(t *testing.T, _, db string) { patch(t, db, 60, []byte{0x7f, 0, 0, 1}) }},
		"an emptied store":          {true, func(t *testing.T, _, db string) { write(t, db, nil) }},
		"a directory as the store":  {false, func(t *testing.T, _, db string) { mkdir(t, db) }},
		"a file as state directory": {false, func(t *testing.T, home, _ string) { rmdir(t, home); write(t, home, []byte("mine\n")) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, nil)
			if c.used {
				a := w.start()
				a.Await(a.Prompt(a.NewSession(w.work), "hi"))
				if err := a.CloseInput(); err != nil {
					t.Fatal(err)
				}
			} else {
				mkdir(t, w.home)
			}
			c.prepare(t, w.home, filepath.Join(w.home, "holdfast.db"))
			before := tree(t, w.home)
			a := w.start()
			codes := map[any]bool{}
			for method, params := range map[string]map[string]any{
				"session/new":  {"cwd": w.work, "mcpServers": []any{}},
				"session/list": {},
				"get_goal":     {"sessionId": "x"},
			} {
				_, e := a.Call(method, params)
				data := refused(t, method, e, -32603, "action")
				if action, _ := data["action"].(string); action == "" || data["code"] == nil {
					t.Errorf("%s: %v", method, e)
				}
				codes[data["code"]] = true
			}
			if len(codes) != 1 {
				t.Errorf("one trouble has %d names: %v", len(codes), codes)
			}
			ended(t, a, ends["end of input"])
			after := tree(t, w.home)
			for path, content := range before {
				if now, ok := after[path]; !ok || now != content {
					t.Errorf("%s was changed", path)
				}
			}
		})
	}
}

// tree is every file under a path that is not the log or a lock, by content.
func tree(t *testing.T, root string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		if name := filepath.Base(path); name == "log.jsonl" || filepath.Ext(name) == ".lock" {
			return nil
		}
		b, err := os.ReadFile(path)
		out[path] = string(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func patch(t *testing.T, path string, at int64, b []byte) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	if _, err := f.WriteAt(b, at); err != nil {
		t.Fatal(err)
	}
}

func mkdir(t *testing.T, path string) {
	t.Helper()
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
}

func rmdir(t *testing.T, path string) {
	t.Helper()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
}
