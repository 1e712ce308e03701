package tools

import (
	"encoding/json"
	"maps"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
)

// A member that the schema requires is missed, not taken for empty: an edit without "new" must not delete, a write without "content" must
// not create an empty file.
func TestArgs_RequiredMembersAreMissed(t *testing.T) {
	b := newBench(t)
	b.put("a.txt", "one\ntwo\n")
	for name, c := range map[string]struct {
		tool string
		args any
		want string
	}{
		"write without content":    {"write", args{"path": "new.txt"}, `"content"`},
		"write with null content":  {"write", args{"path": "new.txt", "content": nil}, `"content"`},
		"edit without new":         {"edit", args{"path": "a.txt", "edits": []args{{"old": "one"}}}, `"new"`},
		"second edit without new":  {"edit", args{"path": "a.txt", "edits": []args{{"old": "one", "new": "1"}, {"old": "two"}}}, `"new"`},
		"read without path":        {"read", args{}, `"path"`},
		"arguments that are null":  {"read", nil, "JSON object"},
		"half of a surrogate pair": {"write", json.RawMessage(`{"path":"new.txt","content":"\ud83d"}`), "surrogate"},
		"edit with a wrong nested": {"edit", args{"path": "a.txt", "edits": []args{{"old": 1, "new": "x"}}}, "old"},
	} {
		if msg := b.refused(c.tool, c.args); !strings.Contains(msg, c.want) {
			t.Errorf("%s: %q does not hold %s", name, msg, c.want)
		}
	}
	if _, err := os.Stat(b.path("new.txt")); err == nil || b.get("a.txt") != "one\ntwo\n" {
		t.Error("something was written")
	}
	if out := b.must("write", json.RawMessage(`{"path":"pair.txt","content":"\ud83d\ude00"}`)); b.get("pair.txt") != "😀" {
		t.Errorf("a whole pair became %q (%s)", b.get("pair.txt"), out.Text)
	}
}

func TestArgs_LargeLimitShowsTheFile(t *testing.T) {
	b := newBench(t)
	b.put("a.txt", "one\n")
	if out := b.must("read", args{"path": "a.txt", "limit": math.MaxInt64}); !strings.Contains(out.Text, "1\tone") {
		t.Error(out.Text)
	}
}

// Every schema is one, is closed, and says the same about required members as the tool does.
func TestBuiltin_SchemasAreClosedAndTrue(t *testing.T) {
	b := newBench(t)
	for _, tool := range Builtin(b.opt) {
		spec := tool.Spec()
		var s jsonschema.Schema
		if err := json.Unmarshal(spec.Schema, &s); err != nil {
			t.Fatalf("%s: %v", spec.Name, err)
		}
		if _, err := s.Resolve(nil); err != nil {
			t.Fatalf("%s: %v", spec.Name, err)
		}
		if s.AdditionalProperties == nil {
			t.Errorf("%s lets unknown members pass", spec.Name)
		}
		all := args{}
		for _, name := range s.Required {
			all[name] = "x"
			if name == "edits" {
				all[name] = []args{{"old": "x", "new": "y"}}
			}
		}
		for name := range all {
			less := maps.Clone(all)
			delete(less, name)
			if msg := b.refused(spec.Name, less); !strings.Contains(msg, `needs the argument "`+name+`"`) {
				t.Errorf("%s without %s: %s", spec.Name, name, msg)
			}
		}
	}
}
