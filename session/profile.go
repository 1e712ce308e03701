package session

import (
	"cmp"
	"fmt"
	"net/url"
	"time"
)

// Profile is what work runs with. Provider, name, origin, API and credential decide whether another process may go on with it; Env is the
// digest of the environment for its commands, which any process can give them. How a server wants to be asked (its dialect) is not in it:
// it is the same server.
type Profile struct {
	Provider   string `json:"provider,omitempty"`
	Name       string `json:"name,omitempty"`
	Origin     string `json:"origin,omitempty"`
	API        string `json:"api,omitempty"` // "" in what was stored before it was kept: it may be any
	Credential string `json:"credential,omitempty"`
	Env        string `json:"env,omitempty"`
	// Chosen and Effort are the choice that it was accepted with; see [Choice].
	Chosen string `json:"chosen,omitempty"`
	Effort string `json:"effort,omitempty"`
}

// Choice is what a person had chosen when the work was accepted.
func (p Profile) Choice() Choice { return Choice{Model: p.Chosen, Effort: p.Effort} }

// Fits tells whether a process that has here may go on with work that runs with p. Work that has nothing yet goes on with any model.
func (p Profile) Fits(here Profile) bool {
	if p.Provider == "" || here.Provider == "" {
		return here.Provider != ""
	}
	if p.API == "" || here.API == "" {
		p.API, here.API = "", ""
	}
	return p.endpoint() == here.endpoint()
}

func (p Profile) endpoint() Profile {
	p.Env, p.Chosen, p.Effort = "", "", ""
	return p
}

// FitsThere tells whether the process with that profile can go on with work. A model that a person chose is asked wherever the same key is for
// the same address.
func (p Profile) FitsThere(there Profile) bool {
	if p.Chosen != "" && p.Provider == there.Provider {
		there.Name = p.Name
	}
	return p.Fits(there)
}

// Or fills in what p does not say.
func (p Profile) Or(q Profile) Profile {
	env := cmp.Or(p.Env, q.Env)
	if p.Provider == "" {
		p = q
	}
	p.Env = env
	return p
}

// String names the model and the host of its endpoint; never the key.
func (p Profile) String() string {
	if p.Provider == "" {
		return "no model"
	}
	text := p.Provider + "/" + p.Name
	if u, err := url.Parse(p.Origin); err == nil && u.Host != "" {
		text += " at " + u.Host
	}
	if p.API == "responses" { // the other one is what everybody takes for granted
		text += " by responses"
	}
	return text
}

// against is p for somebody who knows here: it says so when only the key differs.
func (p Profile) against(here Profile) string {
	if p.Credential != here.Credential && p.String() == here.String() {
		return p.String() + " and another key"
	}
	return p.String()
}

// Differs says for what work waits that cannot go on here.
func Differs(work, here Profile) string {
	return fmt.Sprintf("%s It began with %s; here is %s.", Diagnostics[CodeEnvironment].Sentence, work.against(here), here)
}

// Here is what work runs with that begins in this process. Without a model only the environment is set; a passive instance has nothing.
func (e *Engine) Here() Profile { return e.HereFor(Choice{}) }

// Bring is HereFor, with the environment on record: whoever stores the profile calls it in the same transaction.
func (e *Engine) Bring(tx Tx, c Choice, now time.Time) (Profile, error) {
	p := e.HereFor(c)
	if p.Env == "" {
		return p, nil
	}
	return p, tx.PutEnvironment(e.Environment, now)
}

// GoOnHere makes a run go on with what this process has, because a person says so in its client. One line tells when that is something else.
// A passive instance and one without a model change nothing.
func (e *Engine) GoOnHere(tx Tx, id RunID, now time.Time) error {
	r, err := tx.Run(id)
	if err != nil {
		return err
	}
	s, err := tx.Session(r.Session)
	if err != nil {
		return err
	}
	here, err := e.Bring(tx, s.Choice, now)
	if err != nil || here.Provider == "" {
		return err
	}
	before := r.Profile
	r.Profile, r.Client = here, e.Self.ID
	if before.Provider != "" && !before.Fits(here) && !r.LimitedUntil(now).IsZero() { // the limit is another endpoint's
		if r.limited() {
			r.Phase, r.ReasonCode, r.Reason = PhaseQueued, CodeNone, ""
		}
		r.AskNow()
	}
	if err := tx.UpdateRun(r, now); err != nil || before.Provider == "" || before.Fits(here) {
		return err
	}
	text := fmt.Sprintf("It goes on with %s here; it began with %s.", here, before.against(here))
	return tx.InsertItem(&Item{ID: ItemID(e.NewID()), Session: r.Session, Kind: ItemMarker, State: ItemComplete, Body: ItemBody{Text: text}, CreatedAt: now})
}
