package main

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"holdfast/goals"
	"holdfast/internal/secret"
	"holdfast/session"
)

const hostile = "end\r```\n~~~\n# Forged heading\n</pre><script>alert(1)</script>\u2028## Forged\x1b[2J````text\n<!-- "

func hostileExport() export {
	result := hostile
	code := 3
	return export{Format: exportFormat, Program: "holdfast test", ExportedAt: time.Unix(1e9, 0).UTC(),
		Session: exportSession{"s", hostile, "/w\n# Forged heading", []string{}, session.ModeAsk, "idle", time.Unix(1e9, 0).UTC(), time.Unix(1e9, 0).UTC()},
		Plan:    []session.PlanEntry{{ID: "1", Content: hostile, Priority: "high", Status: "pending"}}, Goals: []goals.View{}, Unknown: []session.EffectID{"e"},
		Entries: []exportEntry{
			{Seq: 1, Kind: session.ItemUser, State: session.ItemComplete, Text: hostile, Content: json.RawMessage("null")},
			{Seq: 2, Kind: session.ItemTool, State: session.ItemOpen, Content: json.RawMessage("null"), Call: &exportCall{EffectID: "e", Tool: "shell", Title: hostile,
				Arguments: hostile, Fact: session.FactUnknown, Note: hostile, Result: &result, ExitCode: &code,
				Files: []exportFile{{"a`b", "absent", "sha256:0", "", hostile}}, Settlements: []session.SettlementView{}}},
			{Seq: 3, Kind: session.ItemAgent, State: session.ItemComplete, Text: hostile, Content: json.RawMessage("null")},
		}, Usage: exportUsage{Costs: []session.CostView{}, Models: []string{}}}
}

// outside returns the lines of a document that are neither quoted nor in a code block.
func outside(doc string) (lines []string) {
	fence := ""
	for _, l := range strings.Split(doc, "\n") {
		ticks := l[:len(l)-len(strings.TrimLeft(l, "`"))]
		switch {
		case fence != "":
			if len(ticks) >= len(fence) && strings.TrimSpace(l[len(ticks):]) == "" {
				fence = ""
			}
		case len(ticks) >= 3 && !strings.Contains(l[len(ticks):], "`"):
			fence = ticks
		case !strings.HasPrefix(l, ">"):
			lines = append(lines, l)
		}
	}
	return lines
}

// Whatever a text holds, it stays in its block: no line of it stands for itself, and nothing of it is HTML or a terminal's command.
func TestExport_MarkdownKeepsHostileTextInside(t *testing.T) {
	x := hostileExport()
	doc := x.markdown()
	for _, l := range outside(doc) {
		if strings.HasPrefix(strings.TrimSpace(l), "# Forged") || strings.HasPrefix(strings.TrimSpace(l), "## Forged") || strings.HasPrefix(l, "~~~") {
			t.Errorf("stands for itself: %q", l)
		}
	}
	if strings.Count(doc, "Forged heading") < 5 || len(outside(doc)) < 10 {
		t.Fatalf("the document is\n%s", doc)
	}
	if strings.ContainsAny(doc, "\x1b\r\u2028") {
		t.Error("a control character is left")
	}
	for l := range strings.Lines(doc) {
		if strings.HasPrefix(l, ">") && strings.Contains(l, "<script") {
			t.Errorf("raw HTML: %q", l)
		}
	}
	if !strings.Contains(doc, "OUTCOME UNKNOWN") || !strings.Contains(doc, "The outcome of 1 call is unknown") {
		t.Error("the unknown outcome is not named")
	}
}

// The document is what its schema says, and the schema is closed: a new member is written down there.
func TestExport_Schema(t *testing.T) {
	b, err := os.ReadFile("../../docs/session-export.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	var s jsonschema.Schema
	if err := json.Unmarshal(b, &s); err != nil {
		t.Fatal(err)
	}
	r, err := s.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	check := func(x export) error {
		var v any
		b, err := json.Marshal(x)
		if err == nil {
			err = json.Unmarshal(b, &v)
		}
		if err != nil {
			t.Fatal(err)
		}
		return r.Validate(v)
	}
	x := hostileExport()
	if err := x.mask(strings.NewReplacer("hidden words", "x").Replace); err != nil {
		t.Fatal(err)
	}
	if err := check(x); err != nil {
		t.Error(err)
	}
	x.Format = "holdfast.session/2"
	if check(x) == nil {
		t.Error("another version passes")
	}
}

// What this process knows as a secret, or what looks like one, is in no member of the document.
func TestExport_MasksKeys(t *testing.T) {
	x := hostileExport()
	x.Entries[1].Call.Arguments, x.Session.Title = `{"k":"sk-12345678"}`, "sk-12345678"
	x.Entries[0].Content = json.RawMessage(`[{"type":"text","text":"sk-12345678"}]`)
	if err := x.mask(secret.New("sk-12345678").Text); err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(x)
	if err != nil || strings.Contains(string(b), "sk-1234") || strings.Count(string(b), secret.Mask) != 3 {
		t.Errorf("%v %s", err, b)
	}
}
