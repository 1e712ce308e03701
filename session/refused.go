package session

import (
	"errors"
	"slices"
)

// Refused names a model that did not take back what it gave.
type Refused struct {
	Provider string `json:"provider"`
	Model    string `json:"model"`
}

func (r *Refused) by(id ModelIdentity) bool {
	return r != nil && r.Provider == id.Provider && r.Model == id.Name
}

// textRefused says why the model may seem to have forgotten what it thought.
const textRefused = "The model's endpoint no longer takes back the reasoning that it gave earlier. It is asked again without it; what was said and done stays."

// holdsNative tells whether a request holds an answer in its native form.
func holdsNative(messages []Message) bool {
	return slices.ContainsFunc(messages, func(m Message) bool { return m.Native != nil })
}

// refusedNative tells whether a request failed for the native form that it held. There is one more request then, without: a marker is stored with
// the failed one's end, behind which no request holds it, so that the same refusal is final the next time, also for the process after this one.
func (s *stream) refusedNative(err error) bool {
	var me *ModelError
	return s.native && errors.As(err, &me) && me.Native
}

// forget stores that marker.
func (s *stream) forget(tx Tx) error {
	id := s.t.model.Identity()
	it := Item{Kind: ItemMarker, State: ItemComplete, Thread: s.t.setup.Thread, Body: ItemBody{Text: textRefused, Refused: &Refused{id.Provider, id.Name}}}
	return s.t.insert(tx, &it, s.t.run, s.t.att)
}
