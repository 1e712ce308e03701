package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"holdfast/session"
)

func put(t testing.TB, s Store, items ...*session.Item) {
	t.Helper()
	commit(t, s, func(tx session.Tx) error {
		for _, it := range items {
			it.Session, it.Run = "s", "r"
			if err := tx.InsertItem(it); err != nil {
				return err
			}
		}
		return nil
	})
}

// Pages hold about what was asked for, a large item at most with those before it, and together they are the thread, in order.
func TestPage_IsBoundedByBytes(t *testing.T) {
	s, _ := journal(t)
	var want []session.ItemID
	for i := range 60 {
		size := 1000
		if i%20 == 7 {
			size = 3 << 20
		}
		it := &session.Item{ID: session.ItemID(fmt.Sprintf("i%02d", i)), Kind: session.ItemAgent, State: session.ItemComplete, Body: session.ItemBody{Text: strings.Repeat("x", size)}}
		put(t, s, it, &session.Item{ID: it.ID + "r", Thread: "review", Kind: session.ItemAgent, State: session.ItemComplete})
		want = append(want, it.ID)
	}
	var got []session.ItemID
	after, pages := int64(0), 0
	for {
		var page []session.Item
		read(t, s, func(tx session.Tx) (err error) { page, err = tx.Page("s", "", after, 10_000); return err })
		if len(page) == 0 {
			break
		}
		size := 0
		for i, it := range page {
			if n := len(it.Body.Text); i < len(page)-1 {
				size += n
			}
			got, after = append(got, it.ID), it.Seq
		}
		if size >= 10_000 {
			t.Errorf("a page of %d items holds %d bytes before its last", len(page), size)
		}
		pages++
	}
	if !reflect.DeepEqual(got, want) || pages < 7 {
		t.Errorf("%d pages: %v", pages, got)
	}
}

func read(t testing.TB, s Store, fn func(session.Tx) error) {
	t.Helper()
	if err := s.Read(context.Background(), fn); err != nil {
		t.Fatal(err)
	}
}

// A history for the model is the stored one without diffs and blocks, byte for byte, whatever the texts are.
func TestHistory_IsTheItemsWithoutDiffs(t *testing.T) {
	s, _ := journal(t)
	odd := "\u2028 \\u0041 é 😀 </script> \"q\" \t \x00 1e5 " + strings.Repeat("y", 9000)
	user := &session.Item{ID: "u", Kind: session.ItemUser, State: session.ItemComplete, Body: session.ItemBody{Text: odd, Blocks: json.RawMessage(`[{"type":"text"}]`)}}
	agent := &session.Item{ID: "a", Kind: session.ItemAgent, State: session.ItemComplete, Body: session.ItemBody{Text: odd, Response: "q",
		Native: &session.Native{Provider: "p", Model: "m", Blocks: []json.RawMessage{json.RawMessage(`{"n":1.50e3,"s":"\u00e9\/","a":[]}`)}}}}
	call := &session.Item{ID: "c", Kind: session.ItemTool, State: session.ItemComplete, Body: session.ItemBody{Response: "q", Tool: &session.ToolCall{CallID: "1", Name: "edit",
		Args: `{"x":1.0}`, Files: []session.FileChange{{Path: "/f", OldText: &odd, NewText: odd}}, Output: &session.Output{Text: odd}}}}
	put(t, s, user, agent, call)
	var full, got, latest []session.Item
	read(t, s, func(tx session.Tx) (err error) {
		if full, err = tx.Items("s", "", 0, 0); err != nil {
			return err
		}
		if got, err = tx.History("s", "", 0, 0); err != nil {
			return err
		}
		latest, err = tx.Latest("s", "", 0, 2)
		return err
	})
	if full[0].Body.Blocks == nil || full[2].Body.Tool.Files == nil {
		t.Fatal("the items themselves have lost something")
	}
	full[0].Body.Blocks, full[2].Body.Tool.Files = nil, nil
	if out := got[2].Body.Tool.Output; len(out.Text) > 2000 || out.Size != len(odd) || out.Kept == "" {
		t.Errorf("a result of %d bytes is given in %d", out.Size, len(out.Text))
	}
	read(t, s, func(tx session.Tx) error {
		return errors.Join(session.Whole(tx, &got[2]), session.Whole(tx, &latest[0]))
	})
	for i := range full {
		if !reflect.DeepEqual(got[i], full[i]) {
			t.Errorf("item %d differs: %.300s", i, fmt.Sprintf("%+v %+v", got[i], got[i].Body.Tool))
		}
	}
	if len(latest) != 2 || !reflect.DeepEqual(latest[0], full[2]) || !reflect.DeepEqual(latest[1], full[1]) {
		t.Errorf("the latest are %.300s", fmt.Sprintf("%+v", latest))
	}
}

// A text that two calls share is stored once, a plan is read without it, and a row of an older binary that holds it stays as it is.
func TestContents_KeptOnceUnderTheirDigests(t *testing.T) {
	s, _ := journal(t)
	old, text := strings.Repeat("old\n", 1<<18), strings.Repeat("new\n", 1<<18)
	change := session.FileChange{Path: "/f", Before: session.Digest("old"), After: session.Digest("new"), OldText: &old, NewText: text}
	commit(t, s, func(tx session.Tx) error {
		for _, id := range []string{"e", "f", "g"} {
			if err := plan(tx, id); err != nil {
				return err
			}
			ef, err := tx.Effect(session.EffectID(id))
			if err != nil {
				return err
			}
			ef.Plan.Files = []session.FileChange{change}
			if id == "f" {
				ef.Plan.Files[0].Before, ef.Plan.Files[0].After = change.After, session.Digest("third")
			}
			if err := tx.UpdateEffect(ef); err != nil {
				return err
			}
		}
		return nil
	})
	inline, err := json.Marshal(session.Plan{Files: []session.FileChange{change}})
	must(t, err)
	must(t, s.DB.Commit(context.Background(), "effect.settled", func(tx *sql.Tx) error {
		_, err := tx.Exec(`UPDATE effects SET plan = ? WHERE id = 'g'`, string(inline))
		return err
	}))
	must(t, s.DB.Read(context.Background(), func(tx *sql.Tx) error {
		var rows, most int
		must(t, tx.QueryRow(`SELECT count(*), (SELECT max(length(plan)) FROM effects WHERE id <> 'g') FROM contents`).Scan(&rows, &most))
		if rows != 3 || most > 2000 {
			t.Errorf("%d contents, plans of up to %d bytes", rows, most)
		}
		return nil
	}))
	read(t, s, func(tx session.Tx) error {
		e, err := tx.Effect("e")
		must(t, err)
		if f := e.Plan.Files[0]; !f.Kept || f.NewText != "" || f.OldText != nil {
			t.Errorf("the plan holds %d bytes", len(f.NewText))
		}
		for digest, want := range map[string]string{change.Before: old, change.After: text} {
			if got, err := tx.Content(digest); err != nil || got != want {
				t.Errorf("%d bytes, %v", len(got), err)
			}
		}
		g, err := tx.Effect("g")
		must(t, err)
		if f := g.Plan.Files[0]; f.Kept || f.NewText != text || *f.OldText != old {
			t.Error("an old row reads differently")
		}
		if _, err := tx.Content("sha256:none"); !session.IsNotFound(err) {
			t.Errorf("a content that is not there: %v", err)
		}
		return nil
	})
	if err := s.DB.Commit(context.Background(), "effect.settled", func(tx *sql.Tx) error {
		_, err := tx.Exec(`UPDATE contents SET body = x'00'`)
		return err
	}); err == nil {
		t.Error("a content can be changed")
	}
}
