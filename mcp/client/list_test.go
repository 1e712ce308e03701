//go:build linux

package client

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

func raws(defs ...string) (list []json.RawMessage) {
	for _, d := range defs {
		list = append(list, json.RawMessage(d))
	}
	return list
}

// One bad definition costs nobody else anything.
func TestList_BadBesideGood(t *testing.T) {
	w := start(t, plan{"tools": raws(
		`{"name":"good","inputSchema":{"type":"object"}}`,
		`{"name":"types","inputSchema":{"type":["object","null"],"properties":{"a":{"type":["string","null"]}}}}`,
		`{"name":"text","inputSchema":{"type":"string"}}`,
		`{"name":"required","inputSchema":{"type":"object","required":{"a":true}}}`,
		`{"name":"list","inputSchema":[]}`,
		`{"name":"fetch","inputSchema":{"type":"object","properties":{"a":{"$ref":"https://example.com/a.json"}}}}`,
		`{"name":"file","inputSchema":{"$ref":"other.json"}}`,
		`{"name":"deep","inputSchema":`+strings.Repeat(`{"properties":{"a":`, 20)+`{}`+strings.Repeat(`}}`, 20)+`}`,
		`{"name":"wide","inputSchema":{"type":"object","properties":{"a":{"enum":[`+strings.Repeat("1,", 2500)+`1]}}}}`,
		`{"name":"task","inputSchema":{"type":"object"},"execution":{"taskSupport":"required"}}`,
		`{"name":7,"inputSchema":{"type":"object"}}`,
		`{"inputSchema":{"type":"object"}}`,
		`{"name":"good","description":"again","inputSchema":{"type":"object"}}`,
		`{"name":"none"}`,
		`{"name":"null","inputSchema":null}`,
		`"text"`,
	)})
	var names, aside []string
	for _, tool := range w.Tools() {
		names = append(names, tool.Name)
	}
	for _, a := range w.Aside() {
		aside = append(aside, a.Tool)
		if a.Reason == "" {
			t.Errorf("%s without a reason", a.Tool)
		}
	}
	if got, want := strings.Join(names, " "), "good none null types"; got != want {
		t.Errorf("tools %q, want %q", got, want)
	}
	if got, want := strings.Join(aside, ", "), "text, required, list, fetch, file, deep, wide, task, number 11 of the list, number 12 of the list, good, number 16 of the list"; got != want {
		t.Errorf("aside %q, want %q", got, want)
	}
	t.Logf("%+v", w.Aside())
	sl, err := w.Acquire(soon(t), w.tool("good"))
	if err != nil {
		t.Fatal(err)
	}
	defer sl.Release()
	w.wantText(sl.Call(t.Context(), "T", json.RawMessage(`{"do":"ok","text":"works"}`), nil), KindOK, "works")
}

// A tool that has changed since it was shown is not called, from the moment on at which its server has said so.
func TestList_ChangedTool(t *testing.T) {
	for _, discover := range []string{"", "modern"} {
		w := start(t, plan{"discover": discover})
		old := w.tool("act")
		changed := strings.Replace(string(old.Raw), "Does what", "Now does what", 1)
		w.wantText(w.act(map[string]any{"do": "change", "result": raws(changed)}), KindOK, "changed")
		if _, err := w.Acquire(soon(t), old); !errors.Is(err, ErrChanged) {
			t.Fatalf("the old tool: %v", err)
		}
		w.wantText(w.act(map[string]any{"do": "ok"}), KindOK, "")
		eventually(t, "the change is told", func() bool {
			w.mu.Lock()
			defer w.mu.Unlock()
			return w.changed == 2
		})
		w.wantText(w.act(map[string]any{"do": "change", "result": raws()}, "last"), KindOK, "changed")
		if _, err := w.Acquire(soon(t), old); !errors.Is(err, ErrChanged) || w.sent() != 3 {
			t.Errorf("no tool: %v, sent %d", err, w.sent())
		}
	}
}

// The same holds after a restart.
func TestList_ChangedByRestart(t *testing.T) {
	w := start(t, plan{"evolve": true})
	old := w.tool("act")
	w.wantUnknown(w.act(map[string]any{"do": "exit"}), "exited")
	if _, err := w.Acquire(soon(t), old); !errors.Is(err, ErrChanged) || w.State().Phase != Ready {
		t.Errorf("%v, %+v", err, w.State())
	}
	w.wantText(w.act(map[string]any{"do": "ok"}), KindOK, "")
}

// The server gets its own name, whatever the model was shown.
func TestList_Names(t *testing.T) {
	own := []string{"a.b/c", "ünïcode-名前", strings.Repeat("long", 23), "a_b", "a b"}
	var defs []json.RawMessage
	for _, n := range own {
		b, err := json.Marshal(map[string]any{"name": n, "inputSchema": object{"type": "object"}})
		if err != nil {
			t.Fatal(err)
		}
		defs = append(defs, b)
	}
	w := start(t, plan{"tools": defs})
	if len(w.Tools()) != len(own) {
		t.Fatalf("%d tools, aside %+v", len(w.Tools()), w.Aside())
	}
	for _, n := range own {
		tool := w.tool(n)
		if !legalName.MatchString(tool.Exposed) {
			t.Errorf("%q is exposed as %q", n, tool.Exposed)
		}
		sl, err := w.Acquire(soon(t), tool)
		if err != nil {
			t.Fatal(err)
		}
		w.wantText(sl.Call(t.Context(), n, json.RawMessage(`{"do":"name"}`), nil), KindOK, n)
		sl.Release()
	}
}
