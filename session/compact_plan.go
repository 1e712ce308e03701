package session

import (
	"fmt"
	"slices"
	"strings"
)

// A compaction covers history up to a place: from then on a request begins with its summary and what it keeps, and goes on with what came
// after that place. The entries that it covers stay as they are. Everything here is pure.

// Compaction is what an entry of that kind covers and keeps.
type Compaction struct {
	Covers  int64  `json:"covers"`  // entries up to here are no longer sent
	Entries int    `json:"entries"` // how many entries that are, besides an earlier summary
	Why     Cause  `json:"why"`
	Cut     bool   `json:"cut,omitempty"`    // the summary reached the limit of what the model writes
	Pinned  string `json:"pinned,omitempty"` // facts of the records, as they were when it was committed
	// Last is the user's last message when it is covered; it is sent verbatim all the same.
	Last ItemID `json:"last,omitempty"`
	// Open are calls that it covers and that had no result of their own then: they are sent as they stand now.
	Open []ItemID `json:"open,omitempty"`
}

// Cause is why history was compacted.
type Cause string

const (
	CauseLimit    Cause = "limit"    // the request would have gone beyond the known limit of the model
	CauseOverflow Cause = "overflow" // the provider refused the request as too long
	CauseUser     Cause = "user"
)

// maxCompactions is how many may follow each other without an answer or a message of the user in between.
const maxCompactions = 2

// newest finds the newest compaction; -1 without one.
func newest(items []Item) int {
	for i := len(items) - 1; i >= 0; i-- {
		if items[i].Kind == ItemCompaction && items[i].State == ItemComplete && items[i].Body.Compaction != nil && items[i].Broken == CodeNone {
			return i
		}
	}
	return -1
}

// opening is the message that a compacted history begins with, nil without a compaction, and the entries that come after what is covered.
func opening(items []Item) (*Message, []Item) {
	i := newest(items)
	if i < 0 {
		return nil, items
	}
	head := items[i].Body.Compaction.message(items[i].Body.Text, items)
	return &head, tailOf(items, items[i].Body.Compaction.Covers)
}

func tailOf(items []Item, covers int64) []Item {
	from := slices.IndexFunc(items, func(it Item) bool { return it.Seq > covers })
	if from < 0 {
		return nil
	}
	return items[from:]
}

// message is what the model gets in place of what is covered. Whatever of the records it names is exact; only the summary is somebody's words.
func (c *Compaction) message(summary string, items []Item) Message {
	var b strings.Builder
	b.WriteString("[This conversation was compacted. First comes a summary of what was said and done before, then facts from Holdfast's records. The facts are " +
		"exact and outweigh the summary. Do not repeat what is done.]\n\n" + summary)
	if c.Cut {
		b.WriteString("\n[The summary was cut here.]")
	}
	if c.Pinned != "" {
		b.WriteString("\n\n[Facts, as they were when the summary was made]\n" + c.Pinned)
	}
	m := Message{Role: RoleUser}
	last := Item{}
	var open []Item
	for _, it := range items {
		switch {
		case it.ID == "" || it.Seq > c.Covers:
		case it.ID == c.Last:
			last = it
		case it.Kind == ItemTool && it.Body.Tool != nil && slices.Contains(c.Open, it.ID):
			open = append(open, it)
		}
	}
	if len(open) > 0 {
		b.WriteString("\n\n[Calls that had no result then, as they stand now]\n")
		for _, it := range open {
			fmt.Fprintf(&b, "%s %s\n%s\n", it.Body.Tool.Name, it.Body.Tool.Args, resultText(it.Body.Tool))
		}
	}
	if last.ID != "" {
		text, images := forMessage(last.Body.Text, last.Body.Images)
		b.WriteString("\n\n[The user's last message, verbatim; what has been done about it since is in the summary]\n" + text)
		m.Images = images
	}
	m.Text = b.String()
	return m
}

// inRow counts the compactions that the history ends with: since the last answer and the last message of the user.
func inRow(items []Item) (n int) {
	for i := len(items) - 1; i >= 0; i-- {
		switch it := items[i]; it.Kind {
		case ItemCompaction:
			n++
		case ItemUser:
			if !it.Body.Aside {
				return n
			}
		case ItemAgent, ItemTool:
			if it.Kind == ItemTool || it.State == ItemComplete {
				return n
			}
		}
	}
	return n
}

// compactionPlan says what a compaction would cover.
type compactionPlan struct {
	Compaction
	head    *Message // what stands for the history before
	covered []Item   // what comes after that and is covered
}

// planCompaction leaves the last turns as they are, as far as they take at most so many bytes together, and covers everything before. It is
// false when that would leave out nothing that anybody has said or done.
func planCompaction(items []Item, keep int) (compactionPlan, bool) {
	p := compactionPlan{}
	earlier := newest(items)
	view := items
	p.head, view = opening(items)
	cut := border(view, keep)
	p.covered = view[:cut]
	if !slices.ContainsFunc(p.covered, func(it Item) bool { return it.Kind == ItemAgent || it.Kind == ItemTool }) && !p.supersedes(view, items, earlier) {
		return p, false
	}
	p.Covers = view[cut-1].Seq
	unsettled := func(it Item) bool {
		return it.Kind == ItemTool && it.Body.Tool != nil && (it.State == ItemOpen || it.Body.Tool.Output == nil)
	}
	if earlier >= 0 {
		before := items[earlier].Body.Compaction
		p.Last = before.Last
		for _, it := range items {
			if it.Seq <= before.Covers && unsettled(it) && slices.Contains(before.Open, it.ID) {
				p.Open = append(p.Open, it.ID)
			}
		}
	}
	for _, it := range p.covered {
		switch {
		case it.Kind == ItemUser && !it.Body.Aside:
			p.Last = it.ID
		case unsettled(it):
			p.Open = append(p.Open, it.ID)
		}
		if isSent(it) {
			p.Entries++
		}
	}
	if slices.ContainsFunc(view[cut:], func(it Item) bool { return it.Kind == ItemUser && !it.Body.Aside }) {
		p.Last = "" // the last one is not covered
	}
	return p, true
}

// supersedes tells whether a message of the user was sent verbatim and would be no longer, as another came after it: one that was too long for any
// answer must not stand in the way of all that follow.
func (p compactionPlan) supersedes(view, items []Item, earlier int) bool {
	says := func(it Item) bool { return it.Kind == ItemUser && !it.Body.Aside }
	n := 0
	for _, it := range p.covered {
		if says(it) {
			n++
		}
	}
	kept := earlier >= 0 && items[earlier].Body.Compaction.Last != ""
	return n > 0 && (kept || n > 1 || slices.ContainsFunc(view[len(p.covered):], says))
}

// isSent tells whether a model gets an entry.
func isSent(it Item) bool {
	switch it.Kind {
	case ItemUser, ItemNote:
		return !it.Body.Aside
	case ItemAgent, ItemTool:
		return true
	}
	return false
}

// border is where the last turns begin that take at most so many bytes; the end of the history when not even the last one does. It never lies
// between the parts of an answer, nor between a call and its result.
func border(view []Item, keep int) int {
	last := map[string]int{} // where the last part of each answer is
	for i, it := range view {
		if it.Body.Response != "" {
			last[it.Body.Response] = i
		}
	}
	var starts []int
	reach, attempt := -1, AttemptID("")
	for i, it := range view {
		begins := it.Kind == ItemUser && !it.Body.Aside || it.Kind == ItemNote && it.Attempt != attempt
		if begins && reach < i {
			starts = append(starts, i)
		}
		if isSent(it) {
			attempt = it.Attempt
		}
		if end, ok := last[it.Body.Response]; ok {
			reach = max(reach, end)
		}
	}
	cut := len(view)
	size := 0
	for at := len(view); len(starts) > 0; starts = starts[:len(starts)-1] {
		begin := starts[len(starts)-1]
		if size += sizeOf(view[begin:at]); size > keep {
			break
		}
		cut, at = begin, begin
	}
	return cut
}

// imageBytes is what an image counts for, in bytes of text.
const imageBytes = 5 << 10

// sizeOf is about how many bytes of text entries are in a request.
func sizeOf(items []Item) (n int) {
	for _, it := range items {
		if !isSent(it) {
			continue
		}
		n += 20 + len(it.Body.Text) + imageBytes*len(it.Body.Images)
		if c := it.Body.Tool; c != nil {
			n += len(c.Name) + len(c.Args)
			if c.Output != nil {
				n += len(c.Output.Text) + imageBytes*len(c.Output.Images)
			}
		}
		if it.Body.Native != nil {
			own := 0
			for _, block := range it.Body.Native.Blocks {
				own += len(block)
			}
			n += max(0, own-len(it.Body.Text))
		}
	}
	return n
}

// requestSize is sizeOf for a whole history with its compaction.
func requestSize(items []Item) int {
	head, tail := opening(items)
	n := sizeOf(tail)
	if head != nil {
		n += len(head.Text) + imageBytes*len(head.Images)
	}
	return n
}

// coarse is how much of old results, of new ones and of words a transcript holds.
type coarse struct{ old, new, words int }

// newResults is how many of the last results a transcript holds in full.
const newResults = 6

// transcript is what a plan covers as one text of at most so many bytes. What does not fit is left out in this order: the middle of old
// results, of all results, of long messages, and in the end of the whole. An earlier summary stays, as far as there is room.
func (p compactionPlan) transcript(most int) string {
	head := ""
	if p.head != nil {
		head = Shorten(p.head.Text, most*3/4) + "\n\n" // the summary comes first in it; a message that is kept can be of any length
	}
	room := max(most-len(head), most/4)
	text := ""
	for _, c := range []coarse{{shortForm, 64 << 10, 1 << 30}, {256, 4 << 10, 8 << 10}, {128, 512, 1 << 10}} {
		if text = render(p.covered, c); len(text) <= room {
			return head + text
		}
	}
	return head + Shorten(text, room)
}

func render(items []Item, c coarse) string {
	results := 0
	for _, it := range items {
		if it.Kind == ItemTool {
			results++
		}
	}
	var b strings.Builder
	for _, it := range items {
		switch {
		case !isSent(it):
		case it.Kind == ItemTool:
			limit := c.old
			if results--; results < newResults {
				limit = c.new
			}
			if call := it.Body.Tool; call != nil {
				fmt.Fprintf(&b, "CALL %s %s\nRESULT %s\n\n", call.Name, Shorten(call.Args, limit), Shorten(resultText(call), limit))
			}
		case it.Kind == ItemAgent && it.Body.Text == "":
		default:
			who := map[ItemKind]string{ItemUser: "USER", ItemNote: "NOTE", ItemAgent: "AGENT"}[it.Kind]
			text := Shorten(it.Body.Text, c.words)
			if it.Kind == ItemAgent && it.State != ItemComplete {
				text += textInterrupted
			}
			fmt.Fprintf(&b, "%s %s\n\n", who, text)
		}
	}
	return b.String()
}
