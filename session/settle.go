package session

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"
)

// Lookup is what could still tell the outcome of a call that is unknown.
type Lookup string

const (
	LookupFile    Lookup = "file"        // the file could not be looked at; it is looked at again before anybody is asked
	LookupAnswer  Lookup = "late_answer" // the server that has the call lives, and so does the process that would read its answer
	LookupNothing Lookup = "nothing"     // unqueryable: only a person can say what happened
)

// lookups says it in words.
var lookups = map[Lookup]string{
	LookupFile:    "It is looked at again before anything else is asked.",
	LookupAnswer:  "A late answer of the server may still tell.",
	LookupNothing: "Nothing will tell it by itself.",
}

// Settlement is one thing that was found out about a call. They are appended and never changed; the journal record shows the newest.
type Settlement struct {
	Effect   EffectID
	Seq      int64 // from 1; one to be appended has 1 when it is known to be the first, else 0
	Fact     Fact
	By       SettledBy
	Note     string
	Evidence string // digest of what proves it: the result, the answer, the file
	At       time.Time
	Instance InstanceID
}

func settlement(ef Effect, f Finding, s Session, now time.Time) Settlement {
	out := Settlement{Effect: ef.ID, Fact: f.Fact, By: cmp.Or(f.By, SettledByRecovery), Note: f.Note, Evidence: f.Evidence, At: now,
		Instance: cmp.Or(f.Instance, s.Owner)}
	if out.Evidence == "" && f.Output != nil {
		out.Evidence = ef.ResultDigest
	}
	return out
}

// overrules tells whether a finding is what really came of a call that a person's word has settled.
func overrules(ef Effect, f Finding) bool {
	real := f.By == SettledByResult || f.By == SettledByReceipt || f.By == SettledByProbe
	return ef.SettledBy == SettledByPerson && real && (f.Fact == FactCompleted || f.Fact == FactNotStarted)
}

// tellOverruled says once, to the model and to the user, that a call did not end as the person had said, or that its result is there after
// all. The ids come from the call, so that it cannot be said twice.
func tellOverruled(tx Tx, word, ef Effect, it Item, now time.Time) error {
	text := Overruled(word, ef)
	for _, told := range []Item{
		{ID: it.ID + "-note", Kind: ItemNote, Thread: it.Thread, Body: ItemBody{Text: "[" + text + " The result of that call, further up, is the real one now.]"}},
		{ID: it.ID + "-marker", Kind: ItemMarker, Body: ItemBody{Text: text}},
	} {
		told.Session, told.Run, told.Attempt, told.State, told.CreatedAt = it.Session, it.Run, it.Attempt, ItemComplete, now
		if err := tx.InsertItem(&told); err != nil {
			return err
		}
	}
	return nil
}

// Overruled puts a person's word and what really came of a call side by side.
func Overruled(word, ef Effect) string {
	said, says := "it did not happen", "it was answered"
	if word.Fact == FactCompleted {
		said = "it happened"
	}
	switch {
	case ef.Fact == FactNotStarted:
		says = "it never began"
	case ef.ExitCode != nil:
		says = fmt.Sprintf("exit %d", *ef.ExitCode)
	}
	return fmt.Sprintf("About the call %q: the user said that %s; a %s says: %s.", cmp.Or(ef.Plan.Title, ef.Tool), said, ef.SettledBy, says)
}

// Unsure says of an unknown outcome why it is unknown, and what could still tell.
func (t *ToolCall) Unsure() string { return Unsure(t.Why, t.Lookup) }

// Unsure says why an outcome is unknown, and what could still tell.
func Unsure(why string, l Lookup) string {
	if why == "" {
		why = "The call was started and its end was never recorded."
	}
	return strings.TrimSpace("Outcome unknown. " + why + " " + lookups[l])
}

// LookupOf is what could still tell the outcome of a call now: an answer can only come to the process that sent the call.
func LookupOf(tx Tx, e Effect) (Lookup, error) {
	if e.Lookup != LookupAnswer {
		return e.Lookup, nil
	}
	all, err := tx.Settlements(e.ID)
	if err != nil || len(all) == 0 {
		return LookupNothing, err
	}
	_, err = tx.Instance(all[len(all)-1].Instance)
	if IsNotFound(err) {
		return LookupNothing, nil
	}
	return e.Lookup, err
}

// lookAgain looks at the files of writes whose outcome could not be seen before. What is certain now is settled.
func (t *turn) lookAgain(ctx context.Context) error {
	var open []Effect
	if err := t.e.Store.Read(ctx, func(tx Tx) (err error) { open, err = tx.OpenEffects(t.a.id); return err }); err != nil {
		return fmt.Errorf("look for what is unknown: %w", err)
	}
	for _, ef := range open {
		if ef.Fact != FactUnknown || ef.Lookup != LookupFile {
			continue
		}
		for _, tool := range t.e.Tools {
			p, probes := tool.(Prober)
			if !probes || tool.Spec().Name != ef.Tool {
				continue
			}
			f, err := p.Probe(ctx, t.env(ef.ID), ef.Plan)
			if err != nil {
				return fmt.Errorf("look at call %s again: %w", ef.ID, err)
			}
			if f.Lookup == LookupFile {
				continue
			}
			err = t.commit(ctx, "effect.looked_up", func(tx Tx) error {
				if err := SettleFinding(tx, ef.ID, f, t.e.Now()); err != nil || f.Fact == FactUnknown {
					return err
				}
				return voidNaming(tx, t.a.id, ef.ID, t.e.Now())
			})
			if err != nil {
				return err
			}
		}
	}
	return nil
}
