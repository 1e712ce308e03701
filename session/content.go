package session

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// What calls carry is kept in three sizes. A history entry holds what a person reads: excerpts. The journal holds what decides: digests.
// The whole is kept once, under its digest, and fetched when somebody asks for it.

// inJournal is how many bytes of file texts a journal record holds itself. With more, they are kept under their digests.
const inJournal = 16 << 10

// Apart takes large file texts out of a plan and returns them by digest. What it returns without them is marked as kept.
func (p Plan) Apart() (Plan, map[string]string) {
	size := 0
	for _, f := range p.Files {
		size += f.size()
	}
	if size <= inJournal {
		return p, nil
	}
	texts := map[string]string{}
	files := make([]FileChange, len(p.Files))
	for i, f := range p.Files {
		if !f.Kept {
			if b := f.Old(); b != nil && f.Before != Absent {
				texts[f.Before] = string(b)
			}
			if b := f.New(); b != nil {
				texts[f.After] = string(b)
			}
		}
		f.OldText, f.NewText, f.Kept = nil, "", true
		files[i] = f
	}
	p.Files = files
	return p, texts
}

func (f FileChange) size() int {
	n := len(f.NewText)
	if f.OldText != nil {
		n += len(*f.OldText)
	}
	return n
}

// whole returns the texts of a change, from where they are kept.
func (f FileChange) whole(tx Tx) (FileChange, error) {
	if !f.Kept {
		return f, nil
	}
	f.Kept = false
	if f.After != Absent {
		b, err := tx.Content(f.After)
		if err != nil {
			return f, err
		}
		f.NewText = f.Encoding.decode([]byte(b))
	}
	if f.Before == Absent {
		return f, nil
	}
	b, err := tx.Content(f.Before)
	old := f.Encoding.decode([]byte(b))
	f.OldText = &old
	return f, err
}

// Sizes of results.
const (
	inItem    = 4 << 10 // bytes of a result that an entry holds itself
	shortForm = 1 << 10 // bytes of the short form of a longer one
	// Of the results in a conversation, a model gets the newest whole: at most fullMost bytes of them. When there are more, the oldest are
	// given in their short form until fullLeast are left, so that what a model has seen changes seldom and by a lot.
	fullMost  = 4 << 20
	fullLeast = 2 << 20
)

// Apart takes a large result out of an entry, which is left with its short form, and returns it with its digest.
func (b ItemBody) Apart() (short ItemBody, digest, text string) {
	if b.Tool == nil || b.Tool.Output == nil || b.Tool.Output.Kept != "" || len(b.Tool.Output.Text) <= inItem {
		return b, "", ""
	}
	call, out := *b.Tool, *b.Tool.Output
	sum := sha256.Sum256([]byte(out.Text))
	digest, text = "sha256:"+hex.EncodeToString(sum[:]), out.Text
	out.Kept, out.Size, out.Text = digest, len(text), brief(text, call.Effect)
	call.Output, b.Tool = &out, &call
	return b, digest, text
}

func brief(text string, id EffectID) string {
	return Shorten(text, shortForm) + fmt.Sprintf("\n[The whole: holdfast effects output %s]", id)
}

// Whole puts a result and images that were kept apart back into their entry.
func Whole(tx Tx, it *Item) error {
	if err := fetchImages(tx, it); err != nil {
		return err
	}
	if it.Body.Tool == nil || it.Body.Tool.Output == nil || it.Body.Tool.Output.Kept == "" {
		return nil
	}
	call, out := *it.Body.Tool, *it.Body.Tool.Output
	text, err := tx.Content(out.Kept)
	var broken *RecordError
	if errors.As(err, &broken) || IsNotFound(err) {
		return nil // its beginning and its end are in the entry
	}
	if err != nil {
		return err
	}
	out.Text, out.Kept, out.Size = text, "", 0
	call.Output, it.Body.Tool = &out, &call
	return nil
}

// forModel makes of a history in short form what a model gets that takes at most so many bytes of results: the newest whole, and when there
// are more than that, half of it.
func forModel(tx Tx, items []Item, most int) error {
	sizes := make([]int, len(items))
	for i, it := range items {
		sizes[i] = resultSize(it)
	}
	from := wholeFrom(sizes, most)
	for i := range items {
		if i >= from {
			if err := Whole(tx, &items[i]); err != nil {
				return err
			}
		} else {
			Short(&items[i])
		}
	}
	return nil
}

// Short gives an entry the short form of its result, also when an older version kept the whole in it.
func Short(it *Item) {
	t := it.Body.Tool
	if t == nil || t.Output == nil || t.Output.Kept != "" || len(t.Output.Text) <= inItem {
		return
	}
	call, out := *t, *t.Output
	out.Text = brief(out.Text, call.Effect)
	call.Output, it.Body.Tool = &out, &call
}

// resultSize is how long a result is as a whole, images and those of a prompt included.
func resultSize(it Item) int {
	if t := it.Body.Tool; t != nil && t.Output != nil {
		return max(len(t.Output.Text), t.Output.Size) + imageSize(it)
	}
	return imageSize(it)
}

// WholeSince is the place from which on a replay shows results whole: the newest, about as many as a model gets.
func WholeSince(tx Tx, id SessionID) (seq int64, err error) {
	for total := 0; ; {
		items, err := tx.Latest(id, "", seq, 200)
		if err != nil || len(items) == 0 {
			return 0, err
		}
		for _, it := range items {
			if seq = it.Seq; total > fullLeast {
				return seq, nil
			}
			total += resultSize(it)
		}
	}
}

// wholeFrom is where the results begin that are given whole. It depends on the sizes alone and never moves back as more are added.
func wholeFrom(sizes []int, most int) (from int) {
	total := 0
	for i, n := range sizes {
		if total += n; total <= most {
			continue
		}
		for ; total > most/2 && from < i; from++ {
			total -= sizes[from]
		}
	}
	return from
}

// Sizes of what a person is shown of a file change.
const (
	inEntry  = 64 << 10 // bytes of both texts that are shown whole
	inSide   = 16 << 10 // bytes of either side of a longer one
	lineMost = 2 << 10  // bytes of such a line
)

// Excerpts is what a person is shown of file changes: of a large one, the lines that differ and some around them. It is its own excerpt.
func Excerpts(files []FileChange) []FileChange {
	out := files
	for i, f := range files {
		if f.size() <= inEntry {
			continue
		}
		if &out[0] == &files[0] {
			out = append([]FileChange(nil), files...)
		}
		out[i] = f.excerpt()
	}
	return out
}

func (f FileChange) excerpt() FileChange {
	f.OldSize, f.NewSize = f.Sizes()
	if f.Encoding == EncodingBinary { // never shown
		f.OldText, f.NewText = nil, ""
		return f
	}
	if f.OldText == nil {
		f.NewText = Shorten(f.NewText, inSide)
		return f
	}
	from, oldTo, newTo := differing(*f.OldText, f.NewText)
	f.FromLine = 1 + strings.Count((*f.OldText)[:from], "\n")
	old := Shorten((*f.OldText)[from:oldTo], inSide)
	f.OldText, f.NewText = &old, Shorten(f.NewText[from:newTo], inSide)
	return f
}

// differing finds the lines in which two texts differ, with some around them: where they begin in both, and where they end in each.
func differing(old, text string) (from, oldTo, newTo int) {
	n := min(len(old), len(text))
	for from < n && old[from] == text[from] {
		from++
	}
	same := 0
	for same < n-from && old[len(old)-1-same] == text[len(text)-1-same] {
		same++
	}
	oldTo, newTo = len(old)-same, len(text)-same
	start := linesBack(old, from)
	more := linesOn(old[oldTo:])
	return start, oldTo + more, newTo + more
}

// linesBack is where the lines before a place begin. A line that has no beginning nearby begins at a character.
func linesBack(s string, at int) int {
	start := at
	for range around + 1 {
		i := strings.LastIndexByte(s[max(0, start-lineMost):start], '\n')
		if i < 0 {
			if start <= lineMost {
				return 0
			}
			start -= lineMost
			for start < at && !utf8.RuneStart(s[start]) {
				start++
			}
			return start
		}
		start = max(0, start-lineMost) + i
	}
	return start + 1
}

// linesOn is how far the line that goes on reaches, and the lines after it.
func linesOn(s string) int {
	end := 0
	for range around + 1 {
		i := strings.IndexByte(s[end:min(len(s), end+lineMost)], '\n')
		if i < 0 {
			end = min(len(s), end+lineMost)
			for end < len(s) && !utf8.RuneStart(s[end]) {
				end--
			}
			return end
		}
		end += i + 1
	}
	return end
}

// fetchable says of a result that was cut how to get the whole.
func (o *Output) fetchable(id EffectID) *Output {
	if o.Cut == 0 {
		return o
	}
	said := *o
	said.Text += fmt.Sprintf("\n[%d bytes are left out above. The whole: holdfast effects output %s]", o.Cut, id)
	return &said
}

// Shorten leaves out the middle of a text that is too long, in whole characters, and says how much.
func Shorten(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	head, tail := limit*7/10, len(s)-limit*3/10
	for head > 0 && !utf8.RuneStart(s[head]) {
		head--
	}
	for tail < len(s) && !utf8.RuneStart(s[tail]) {
		tail++
	}
	return fmt.Sprintf("%s\n[... %d bytes are left out here ...]\n%s", s[:head], tail-head, s[tail:])
}
