package session

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// reader is the model that the projections are for.
var reader = ModelIdentity{Provider: "p", Name: "m"}

// history draws what a store may hold after any number of crashes: messages cut at any place, calls in every state, calls whose answer
// was never stored, ids that providers use again. With ambiguous, one response may use an id twice.
func history(t *rapid.T, ambiguous bool) []Item {
	var items []Item
	used := map[string]bool{}
	kinds := rapid.SampledFrom([]ItemKind{ItemUser, ItemNote, ItemAgent, ItemTool, ItemTool, ItemThought, ItemMarker, ItemGoal})
	states := rapid.SampledFrom([]ItemState{ItemOpen, ItemComplete, ItemInterrupted})
	texts := rapid.SampledFrom([]string{"", "a", "two\nlines", "ünï", "[Outcome unknown.]"})
	for i := range rapid.IntRange(0, 24).Draw(t, "items") {
		it := Item{ID: ItemID(fmt.Sprint("i", i)), Seq: int64(i), Kind: kinds.Draw(t, "kind"), State: states.Draw(t, "state")}
		it.Body.Text = texts.Draw(t, "text")
		switch it.Kind {
		case ItemUser, ItemNote:
			it.State, it.Body.Text = ItemComplete, fmt.Sprint("input ", i, it.Body.Text)
		case ItemThought, ItemAgent:
			it.Body.Response = response(t)
			if it.Kind == ItemAgent && rapid.Bool().Draw(t, "native") {
				it.Body.Native = &Native{Provider: rapid.SampledFrom([]string{"p", "q"}).Draw(t, "provider"), Model: rapid.SampledFrom([]string{"m", "n"}).Draw(t, "model"),
					Blocks: []json.RawMessage{json.RawMessage(fmt.Sprint(i))}}
			}
		case ItemTool:
			it.Body = ItemBody{Response: response(t), Tool: toolCall(t, i)}
			key := it.Body.Response + " " + it.Body.Tool.CallID
			if used[key] && !ambiguous {
				continue
			}
			used[key] = true
		}
		items = append(items, it)
	}
	return items
}

func response(t *rapid.T) string {
	return rapid.SampledFrom([]string{"r1", "r2", "r3", "r4"}).Draw(t, "response")
}

func toolCall(t *rapid.T, i int) *ToolCall {
	c := &ToolCall{
		CallID: rapid.SampledFrom([]string{"a", "b", "a-2", "a-3", "a-2-2", ""}).Draw(t, "call id"),
		Name:   fmt.Sprint("tool", i), // tells the calls apart in the result
		Args:   rapid.SampledFrom([]string{`{}`, `{"path":"x"}`, `{"command`, ``, `null`, `[1]`, `"text"`, `7`, ` {"a": {"b": 1}} `}).Draw(t, "args"),
		Status: rapid.SampledFrom([]ToolStatus{ToolPending, ToolInProgress, ToolCompleted, ToolFailed}).Draw(t, "status"),
		Fact:   rapid.SampledFrom([]Fact{FactNone, FactNotStarted, FactUnknown, FactRunning, FactCompleted}).Draw(t, "fact"),
	}
	switch rapid.IntRange(0, 2).Draw(t, "output") {
	case 1:
		c.Output = &Output{Text: fmt.Sprint("real ", i), IsError: rapid.Bool().Draw(t, "is error")}
	case 2:
		c.Output = &Output{}
	}
	return c
}

func mustProject(t *rapid.T, items []Item) []Message {
	out, err := Project(items, reader)
	if err != nil {
		t.Fatalf("%v\n%s", err, bytesOf(t, items))
	}
	return out
}

func bytesOf(t *rapid.T, v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// results pairs each call with the one message that answers it, and fails unless that one follows its answer directly.
func results(t *rapid.T, out []Message) map[string]string {
	byName, ids := map[string]string{}, map[string]bool{}
	for i := 0; i < len(out); {
		m := out[i]
		i++
		if m.Role == RoleTool {
			t.Fatalf("message %d is a result without a call right before it: %+v", i-1, m)
		}
		if m.Role == RoleAssistant && m.Text == "" && len(m.Calls) == 0 {
			t.Fatalf("message %d says nothing", i-1)
		}
		for _, c := range m.Calls {
			if i >= len(out) || out[i].Role != RoleTool || out[i].CallID != c.ID {
				t.Fatalf("call %q (%s) has no result in its place: %s", c.ID, c.Name, bytesOf(t, out))
			}
			if ids[c.ID] {
				t.Fatalf("id %q is used by two calls", c.ID)
			}
			ids[c.ID], byName[c.Name] = true, out[i].Text
			i++
		}
	}
	return byName
}

func TestProject_EachCallHasOneAdjacentResult(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		items := history(t, false)
		got := results(t, mustProject(t, items))
		calls := 0
		for _, it := range items {
			if it.Kind == ItemTool {
				calls++
				checkResult(t, it.Body.Tool, got)
			}
		}
		if calls != len(got) {
			t.Fatalf("%d calls are stored and %d were sent", calls, len(got))
		}
	})
}

// checkResult says what a call's result must be, without using the projection's own choice.
func checkResult(t *rapid.T, c *ToolCall, got map[string]string) {
	text, sent := got[c.Name]
	if !sent || text == "" {
		t.Fatalf("call %s is missing or has an empty result", c.Name)
	}
	placeholder := !strings.HasPrefix(text, "real ")
	switch {
	case c.Output != nil && c.Output.Text != "":
		if text != c.Output.Text {
			t.Fatalf("a real result is not sent: want %q, got %q", c.Output.Text, text)
		}
	case !placeholder:
		t.Fatalf("call %s has no result and got somebody else's: %q", c.Name, text)
	case c.Output != nil:
		if text != "[No output.]" {
			t.Fatalf("an empty real result became %q", text)
		}
	case c.Fact == FactUnknown && !strings.HasPrefix(text, "[Outcome unknown."),
		c.Fact == FactNotStarted && c.Status != ToolInProgress && !strings.HasPrefix(text, "[Not started."),
		c.Fact == FactRunning && !strings.HasPrefix(text, "[Still running"):
		t.Fatalf("a call that is %q has the result %q", c.Fact, text)
	}
}

func TestProject_InputKeepsOrderAndContent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		items := history(t, false)
		var want, got []string
		for _, it := range items {
			if it.Kind == ItemUser || it.Kind == ItemNote {
				want = append(want, it.Body.Text)
			}
		}
		for _, m := range mustProject(t, items) {
			if m.Role == RoleUser {
				got = append(got, m.Text)
			}
		}
		if !slices.Equal(want, got) {
			t.Fatalf("stored %q, sent %q", want, got)
		}
	})
}

func TestProject_AnswersAreMarkedWhenCut(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		items := history(t, false)
		var want, got []string
		for _, it := range items {
			if it.Kind == ItemAgent && it.Body.Text != "" {
				text := it.Body.Text
				if it.State != ItemComplete {
					text += textInterrupted
				}
				want = append(want, text)
			}
		}
		for _, m := range mustProject(t, items) {
			if m.Role == RoleAssistant && m.Text != "" {
				got = append(got, m.Text)
			}
		}
		if !slices.Equal(want, got) {
			t.Fatalf("stored %q, sent %q", want, got)
		}
	})
}

func TestProject_ArgumentsAreObjects(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		items := history(t, false)
		stored := map[string]string{}
		for _, it := range items {
			if it.Kind == ItemTool {
				stored[it.Body.Tool.Name] = it.Body.Tool.Args
			}
		}
		for _, m := range mustProject(t, items) {
			for _, c := range m.Calls {
				var obj map[string]any
				if err := json.Unmarshal([]byte(c.Args), &obj); err != nil || obj == nil {
					t.Fatalf("arguments %q are sent as %q, which is no object", stored[c.Name], c.Args)
				}
				if was, wrapped := obj["invalid_arguments"]; c.Args != stored[c.Name] && (!wrapped || was != stored[c.Name]) {
					t.Fatalf("arguments %q are sent as %q", stored[c.Name], c.Args)
				}
			}
		}
	})
}

func TestProject_PureAndRepeatable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		items := history(t, false)
		var copied []Item
		if err := json.Unmarshal([]byte(bytesOf(t, items)), &copied); err != nil {
			t.Fatal(err)
		}
		first := bytesOf(t, mustProject(t, items))
		if !reflect.DeepEqual(items, copied) && bytesOf(t, items) != bytesOf(t, copied) {
			t.Fatalf("the stored history was changed")
		}
		if again := bytesOf(t, mustProject(t, items)); again != first {
			t.Fatalf("the same history projects to\n%s\nand to\n%s", first, again)
		}
		if other := bytesOf(t, mustProject(t, copied)); other != first {
			t.Fatalf("a copy of the history projects to\n%s\nand the original to\n%s", other, first)
		}
	})
}

// A result that arrives late takes the place of its placeholder, and nothing else of the history moves.
func TestProject_LateResultReplacesItsPlaceholderOnly(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		items := history(t, false)
		open := slices.IndexFunc(items, func(it Item) bool { return it.Kind == ItemTool && it.Body.Tool.Output == nil })
		if open < 0 {
			t.Skip("no call without a result was drawn")
		}
		before := mustProject(t, items)
		items[open].Body.Tool.Output = &Output{Text: "late"}
		after := mustProject(t, items)
		if len(before) != len(after) {
			t.Fatalf("%d messages became %d", len(before), len(after))
		}
		changed := 0
		for i := range before {
			if !reflect.DeepEqual(before[i], after[i]) {
				changed++
				if after[i].Role != RoleTool || after[i].Text != "late" {
					t.Fatalf("message %d changed: %+v, %+v", i, before[i], after[i])
				}
			}
		}
		if changed != 1 {
			t.Fatalf("%d messages changed", changed)
		}
	})
}

func TestProject_AmbiguousCallsAreRefused(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		items := history(t, true)
		seen, twice := map[string]bool{}, false
		for _, it := range items {
			if it.Kind == ItemTool {
				key := it.Body.Response + " " + it.Body.Tool.CallID
				twice, seen[key] = twice || seen[key], true
			}
		}
		out, err := Project(items, reader)
		if twice != errors.Is(err, ErrAmbiguousCall) {
			t.Fatalf("an id used twice in one response: %v; the projection says %v", twice, err)
		}
		if err != nil && out != nil {
			t.Fatalf("an ambiguous history still projects to %s", bytesOf(t, out))
		}
	})
}

// An answer goes back in its own form only to the model that gave it, whole, and with the ids that it used itself.
func TestProject_NativeOnlyToItsOwnModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		items := history(t, false)
		own := map[string]Item{}   // by the one block
		ids := map[string]string{} // stored id of a call by its name
		for _, it := range items {
			if it.Kind == ItemTool {
				ids[it.Body.Tool.Name] = it.Body.Tool.CallID
			}
			if n := it.Body.Native; n != nil {
				own[string(n.Blocks[0])] = it
			}
		}
		sent := map[string]bool{}
		for _, m := range mustProject(t, items) {
			if m.Native == nil {
				continue
			}
			key := string(m.Native.Blocks[0])
			it := own[key]
			if sent[key] || m.Role != RoleAssistant || it.State != ItemComplete || m.Native.Provider != reader.Provider || m.Native.Model != reader.Name || m.Text != it.Body.Text {
				t.Fatalf("%+v was sent as %s", it, bytesOf(t, m))
			}
			sent[key] = true
			for _, c := range m.Calls {
				if c.ID != ids[c.Name] {
					t.Fatalf("call %q has the id %q in its own form and %q in the request", c.Name, ids[c.Name], c.ID)
				}
			}
		}
	})
}

func TestProject_NativeComesBack(t *testing.T) {
	native := &Native{Provider: "p", Model: "m", Blocks: []json.RawMessage{json.RawMessage(`{"x":1}`)}}
	agent := func(response string, state ItemState) Item {
		return Item{Kind: ItemAgent, State: state, Body: ItemBody{Text: "t", Response: response, Native: native}}
	}
	call := func(response string) Item {
		return Item{Kind: ItemTool, State: ItemComplete, Body: ItemBody{Response: response, Tool: &ToolCall{CallID: "a", Name: "n", Args: "{}", Output: &Output{Text: "e", IsError: true}}}}
	}
	items := []Item{agent("r1", ItemComplete), call("r1"), agent("r2", ItemComplete), call("r2"), agent("r3", ItemInterrupted), agent("r4", ItemComplete)}
	for name, c := range map[string]struct {
		to      ModelIdentity
		want    string
		refused *Refused // behind all but the last answer
		twice   bool
	}{
		"same model":              {to: ModelIdentity{Provider: "p", Name: "m", Origin: "elsewhere"}, want: "yes,no,no,yes"}, // r2 uses an id again, r3 was cut
		"other model":             {to: ModelIdentity{Provider: "p", Name: "n"}, want: "no,no,no,no"},
		"other provider":          {to: ModelIdentity{Provider: "q", Name: "m"}, want: "no,no,no,no"},
		"refused before the last": {to: reader, refused: &Refused{"p", "m"}, want: "no,no,no,yes"},
		"refused twice":           {to: reader, refused: &Refused{"p", "m"}, twice: true, want: "no,no,no,no"},
		"refused by another":      {to: reader, refused: &Refused{"p", "n"}, want: "yes,no,no,yes"},
	} {
		items := slices.Clone(items)
		for i := range items {
			items[i].Seq = int64(i)
		}
		if c.refused != nil {
			items = slices.Insert(items, len(items)-1, Item{Kind: ItemMarker, State: ItemComplete, Seq: 5, Body: ItemBody{Text: "x", Refused: c.refused}})
		}
		if c.twice {
			items = slices.Insert(items, 1, items[len(items)-2])
		}
		out, err := Project(items, c.to)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, m := range out {
			if m.Role == RoleTool && !m.IsError {
				t.Errorf("%s: a failed call is not marked", name)
			}
			if m.Role == RoleAssistant {
				got = append(got, map[bool]string{true: "yes", false: "no"}[m.Native == native])
			}
		}
		if strings.Join(got, ",") != c.want {
			t.Errorf("%s: got %v, want %s", name, got, c.want)
		}
	}
}
