package session

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// parts draws one history after another, each compacted with what came before it, as a store holds it in the end.
func compactedHistory(t *rapid.T) (items []Item, plans []compactionPlan) {
	for part := range rapid.IntRange(1, 4).Draw(t, "parts") {
		attempt := 0
		for _, it := range history(t, false) {
			if rapid.IntRange(0, 4).Draw(t, "next attempt") == 0 {
				attempt++
			}
			it.ID, it.Seq = ItemID(fmt.Sprintf("p%d-%s", part, it.ID)), int64(len(items)+1)
			it.Attempt = AttemptID(fmt.Sprint(part, attempt))
			it.Body.Aside = it.Kind == ItemUser && rapid.IntRange(0, 3).Draw(t, "aside") == 0
			if it.Body.Response != "" {
				it.Body.Response = fmt.Sprint(part, it.Body.Response)
			}
			if it.Body.Tool != nil {
				it.Body.Tool.Name = fmt.Sprint(part, it.Body.Tool.Name)
			}
			items = append(items, it)
		}
		p, ok := planCompaction(items, rapid.SampledFrom([]int{0, 50, 200, 1 << 20}).Draw(t, "keep"))
		if !ok {
			continue
		}
		c := p.Compaction
		c.Pinned = fmt.Sprint("pinned facts ", part)
		plans = append(plans, p)
		items = append(items, Item{ID: ItemID(fmt.Sprint("c", part)), Seq: int64(len(items) + 1), Kind: ItemCompaction, State: ItemComplete,
			Body: ItemBody{Text: fmt.Sprint("summary ", part), Compaction: &c}})
	}
	return items, plans
}

// needed is the part of a history that a request depends on: what the newest compaction keeps, and what it does not cover.
func needed(items []Item) []Item {
	i := newest(items)
	if i < 0 {
		return items
	}
	c := items[i].Body.Compaction
	tail := tailOf(items, c.Covers)
	var kept []Item
	for _, it := range items[:len(items)-len(tail)] {
		if it.ID == c.Last && c.Last != "" || slices.Contains(c.Open, it.ID) {
			kept = append(kept, it)
		}
	}
	return append(kept, tail...)
}

// A request begins with the newest compaction and goes on with what it does not cover, exactly as that would be sent alone.
func TestProject_BeginsWithTheNewestCompaction(t *testing.T) {
	seen := 0
	rapid.Check(t, func(t *rapid.T) {
		items, plans := compactedHistory(t)
		out := mustProject(t, items)
		results(t, out)
		i := newest(items)
		if i < 0 {
			return
		}
		seen++
		c := items[i].Body.Compaction
		head := out[0]
		if head.Role != RoleUser || !strings.Contains(head.Text, items[i].Body.Text) || !strings.Contains(head.Text, c.Pinned) {
			t.Fatalf("the request begins with %s", bytesOf(t, head))
		}
		if last := plans[len(plans)-1]; last.Covers != c.Covers {
			t.Fatalf("not the newest compaction counts")
		}
		var tail []Item
		for _, it := range items {
			if it.Seq > c.Covers {
				tail = append(tail, it)
			}
		}
		alone := slices.DeleteFunc(slices.Clone(tail), func(it Item) bool { return it.Kind == ItemCompaction })
		if got, want := bytesOf(t, out[1:]), bytesOf(t, append([]Message{}, mustProject(t, alone)...)); got != want {
			t.Fatalf("after the summary is sent\n%s\nwant\n%s", got, want)
		}
	})
	if seen == 0 {
		t.Fatal("no history was compacted")
	}
}

// The last thing that the user said is sent word by word, whatever covers it.
func TestProject_TheLastMessageStays(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		items, _ := compactedHistory(t)
		last := ""
		for _, it := range items {
			if it.Kind == ItemUser && !it.Body.Aside {
				last = it.Body.Text
			}
		}
		if all := bytesOf(t, mustProject(t, items)); last != "" && !strings.Contains(all, strings.Trim(bytesOf(t, last), `"`)) {
			t.Fatalf("%q is not in %s", last, all)
		}
	})
}

// A call that a compaction covers without a result is sent as it stands: its late result reaches the model.
func TestProject_LateResultOfACoveredCall(t *testing.T) {
	seen := 0
	rapid.Check(t, func(t *rapid.T) {
		items, plans := compactedHistory(t)
		if len(plans) == 0 {
			return
		}
		for i, it := range items {
			if it.Seq > plans[len(plans)-1].Covers || it.Kind != ItemTool || it.Body.Tool.Output != nil {
				continue
			}
			seen++
			head := mustProject(t, items)[0].Text
			if !strings.Contains(head, it.Body.Tool.Name+" "+it.Body.Tool.Args+"\n"+resultText(it.Body.Tool)) {
				t.Fatalf("the open call %s is not in %s", it.Body.Tool.Name, head)
			}
			call := *it.Body.Tool
			call.Output = &Output{Text: "late but real"}
			items[i].Body.Tool = &call
			if head := mustProject(t, items)[0].Text; !strings.Contains(head, call.Name+" "+call.Args+"\nlate but real") {
				t.Fatalf("the late result of %s is not in %s", call.Name, head)
			}
			return
		}
	})
	if seen == 0 {
		t.Fatal("no open call was covered")
	}
}

// What a request does not depend on need not be there; nothing stored changes; the same history gives the same bytes.
func TestProject_CompactedPureAndRepeatable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		items, _ := compactedHistory(t)
		var copied []Item
		if err := json.Unmarshal([]byte(bytesOf(t, items)), &copied); err != nil {
			t.Fatal(err)
		}
		first := bytesOf(t, mustProject(t, items))
		if !reflect.DeepEqual(items, copied) && bytesOf(t, items) != bytesOf(t, copied) {
			t.Fatal("the stored history was changed")
		}
		if other := bytesOf(t, mustProject(t, copied)); other != first {
			t.Fatalf("a copy of the history projects to\n%s\nand the original to\n%s", other, first)
		}
		if short := bytesOf(t, mustProject(t, needed(items))); short != first {
			t.Fatalf("what is needed projects to\n%s\nand the whole to\n%s", short, first)
		}
	})
}

// A compaction never separates the parts of an answer, leaves turns whole, and covers something that was said or done.
func TestPlanCompaction_EndsAtABorder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		_, plans := compactedHistory(t)
		for _, p := range plans {
			if len(p.covered) == 0 || p.Covers != p.covered[len(p.covered)-1].Seq {
				t.Fatalf("%d entries are covered, up to %d", len(p.covered), p.Covers)
			}
		}
		items, _ := compactedHistory(t)
		_, view := opening(items)
		cut := border(view, rapid.SampledFrom([]int{0, 20, 100, 1 << 20}).Draw(t, "room"))
		before := map[string]bool{}
		for _, it := range view[:cut] {
			before[it.Body.Response] = it.Body.Response != ""
		}
		for _, it := range view[cut:] {
			if before[it.Body.Response] {
				t.Fatalf("the answer %s lies on both sides", it.Body.Response)
			}
		}
		if cut < len(view) && view[cut].Kind != ItemUser && view[cut].Kind != ItemNote {
			t.Fatalf("the rest begins with %s", view[cut].Kind)
		}
	})
}

func TestPlanCompaction_KeepsWhatFits(t *testing.T) {
	say := func(kind ItemKind, seq int64, text string) Item {
		return Item{ID: ItemID(fmt.Sprint("i", seq)), Seq: seq, Kind: kind, State: ItemComplete, Body: ItemBody{Text: text}}
	}
	long := strings.Repeat("x", 1000)
	items := []Item{say(ItemUser, 1, long), say(ItemAgent, 2, long), say(ItemUser, 3, long), say(ItemAgent, 4, "short"), say(ItemUser, 5, "last")}
	for _, c := range []struct {
		keep   int
		covers int64
		last   ItemID
		ok     bool
	}{{0, 5, "i5", true}, {100, 4, "", true}, {1500, 2, "", true}, {5000, 0, "", false}} {
		p, ok := planCompaction(items, c.keep)
		if ok != c.ok || ok && (p.Covers != c.covers || p.Last != c.last) {
			t.Errorf("with %d bytes to keep it covers up to %d (%v) and pins %q, want %d (%v) and %q", c.keep, p.Covers, ok, p.Last, c.covers, c.ok, c.last)
		}
	}
	if _, ok := planCompaction([]Item{say(ItemUser, 1, long)}, 0); ok {
		t.Error("a message alone is compacted, though it has to stay as it is")
	}
}

// A message that is too long for any answer is sent verbatim while it is the last one, and not once another has come.
func TestPlanCompaction_LongMessage(t *testing.T) {
	say := func(seq int64, text string) Item {
		return Item{ID: ItemID(fmt.Sprint("i", seq)), Seq: seq, Kind: ItemUser, State: ItemComplete, Body: ItemBody{Text: text}}
	}
	long := strings.Repeat("x", 100_000)
	kept := Item{ID: "c", Seq: 2, Kind: ItemCompaction, State: ItemComplete, Body: ItemBody{Text: "the summary", Compaction: &Compaction{Covers: 1, Last: "i1"}}}
	for name, c := range map[string]struct {
		items []Item
		keep  int
	}{"itself": {[]Item{say(1, long), say(3, "short")}, 100}, "kept by a compaction": {[]Item{say(1, long), kept, say(3, "short")}, 0}} {
		p, ok := planCompaction(c.items, c.keep)
		if text := p.transcript(8 << 10); !ok || len(text) > 9<<10 {
			t.Errorf("%s: it is planned (%v) from %d bytes", name, ok, len(text))
		}
		done := append(c.items, Item{ID: "d", Seq: 4, Kind: ItemCompaction, State: ItemComplete, Body: ItemBody{Text: "it was long", Compaction: &p.Compaction}})
		if n := requestSize(done); n > 2000 {
			t.Errorf("%s: the next request has %d bytes", name, n)
		}
		if text := fmt.Sprint(Project(done, ModelIdentity{})); !strings.Contains(text, "short") {
			t.Errorf("%s: the last message is not sent: %s", name, text)
		}
	}
	if _, ok := planCompaction([]Item{say(1, long), kept}, 0); ok {
		t.Error("a message that is the last one is given up")
	}
}

func TestInRow(t *testing.T) {
	c := Item{Kind: ItemCompaction}
	user, aside, agent := Item{Kind: ItemUser}, Item{Kind: ItemUser, Body: ItemBody{Aside: true}}, Item{Kind: ItemAgent, State: ItemComplete}
	cut, note, tool := Item{Kind: ItemAgent, State: ItemInterrupted}, Item{Kind: ItemNote}, Item{Kind: ItemTool}
	for _, x := range []struct {
		items []Item
		want  int
	}{{nil, 0}, {[]Item{c}, 1}, {[]Item{agent, c, c}, 2}, {[]Item{c, agent, c}, 1}, {[]Item{c, user, c}, 1}, {[]Item{c, aside, c}, 2}, {[]Item{c, cut, c}, 2},
		{[]Item{c, note, c}, 2}, {[]Item{c, tool}, 0}, {[]Item{c, c, agent}, 0}} {
		if got := inRow(x.items); got != x.want {
			t.Errorf("%+v: %d in a row, want %d", x.items, got, x.want)
		}
	}
}

// A transcript is bounded; old results are shortened before new ones, those before what was said, and an earlier summary is never.
func TestTranscript_LeavesOutOldResultsFirst(t *testing.T) {
	var items []Item
	for i := range 40 {
		items = append(items, Item{Seq: int64(2*i + 1), Kind: ItemUser, Body: ItemBody{Text: fmt.Sprintf("question %d.", i)}},
			Item{Seq: int64(2*i + 2), Kind: ItemTool, State: ItemComplete, Body: ItemBody{Response: fmt.Sprint(i), Tool: &ToolCall{Name: "read", Args: "{}",
				Output: &Output{Text: fmt.Sprintf("result %d %s end %d.", i, strings.Repeat("y", 3000), i)}}}})
	}
	p := compactionPlan{covered: items, head: &Message{Text: "EARLIER " + strings.Repeat("z", 2000) + " EARLIER END"}}
	for _, most := range []int{1 << 20, 60 << 10, 16 << 10, 8 << 10} {
		text := p.transcript(most)
		if len(text) > most+200 || !strings.Contains(text, "EARLIER END") {
			t.Errorf("%d bytes where %d may be; the earlier summary is there: %v", len(text), most, strings.Contains(text, "EARLIER END"))
		}
		if text != p.transcript(most) {
			t.Error("the same transcript is not the same")
		}
		if most >= 16<<10 && strings.Count(text, "question ") != 40 {
			t.Errorf("at %d bytes, %d of 40 messages are there", most, strings.Count(text, "question "))
		}
	}
	whole := p.transcript(1 << 20)
	if !strings.Contains(whole, strings.Repeat("y", 3000)+" end 39.") || strings.Contains(whole, strings.Repeat("y", 3000)+" end 0.") {
		t.Error("the newest result is not whole, or the oldest is")
	}
}

// Unknown limits refuse nothing, a window of zero is unknown, and the room is never more than the window.
func TestRoom(t *testing.T) {
	for _, c := range []struct{ window, output, want int64 }{{200_000, 8192, 172627}, {200_000, 0, 172627}, {8000, 0, 6300}, {8000, 100_000, 3600}} {
		if got := Room(c.window, c.output); got != c.want {
			t.Errorf("a window of %d with %d for the answer has room for %d, want %d", c.window, c.output, got, c.want)
		}
	}
	if n := (counting{}).tokens(3500); n != 1000 {
		t.Errorf("3500 bytes are %d tokens", n)
	}
	if n := (counting{sent: 3500, reported: 1500}).tokens(3500); n != 1500 {
		t.Errorf("what the provider said does not count: %d", n)
	}
	if n := (counting{sent: 3500, reported: 1}).tokens(3500); n != 800 {
		t.Errorf("a report that cannot be is believed: %d", n)
	}
}

// BenchmarkProject projects a history of 10,000 entries, compacted or not.
func BenchmarkProject(b *testing.B) {
	var items []Item
	for i := 0; len(items) < 10_000; i++ {
		r := fmt.Sprint("r", i)
		items = append(items, Item{Kind: ItemUser, State: ItemComplete, Body: ItemBody{Text: strings.Repeat("question ", 20)}},
			Item{Kind: ItemAgent, State: ItemComplete, Body: ItemBody{Text: strings.Repeat("answer ", 50), Response: r}})
		for k := range 3 {
			items = append(items, Item{Kind: ItemTool, State: ItemComplete, Body: ItemBody{Response: r, Tool: &ToolCall{CallID: fmt.Sprint("call_", i, "_", k), Name: "read",
				Args: `{"path":"internal/store/items.go"}`, Output: &Output{Text: strings.Repeat("line of a file\n", 60)}}}})
		}
	}
	for i := range items {
		items[i].ID, items[i].Seq = ItemID(fmt.Sprint("i", i)), int64(i+1)
	}
	compacted := slices.Clone(items)
	compacted = append(compacted, Item{ID: "c", Seq: int64(len(items) + 1), Kind: ItemCompaction, State: ItemComplete,
		Body: ItemBody{Text: "summary", Compaction: &Compaction{Covers: 8000, Last: "i7995", Pinned: "facts"}}})
	for name, items := range map[string][]Item{"whole": items, "compacted": compacted} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, err := Project(items, reader); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
