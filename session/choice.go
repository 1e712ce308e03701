package session

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Choice is what a person chose for a session, in place of what its process would use. Work keeps the choice that it was accepted with.
type Choice struct {
	Model  string `json:"model,omitempty"`  // PROVIDER/NAME; "" is the model of the process
	Effort string `json:"effort,omitempty"` // how much it is to think, in its own levels; "" is what is set for all
}

// String is the stored form: nothing without a choice.
func (c Choice) String() string {
	if c == (Choice{}) {
		return ""
	}
	b, err := json.Marshal(c)
	if err != nil {
		panic(fmt.Sprintf("session: encode a choice: %v", err))
	}
	return string(b)
}

// ParseChoice reads the stored form.
func ParseChoice(text string) (c Choice, err error) {
	if text == "" {
		return c, nil
	}
	err = json.Unmarshal([]byte(text), &c)
	return c, err
}

// Models are what a process can ask, and how.
type Models interface {
	// Named is the model of that name, asked with the keys and addresses of this process.
	Named(name string) (Model, error)
	// Names are those that can be offered.
	Names() []string
	// Efforts are the levels of thinking of a model, "" for that of the process; none when it cannot be told.
	Efforts(name string) []string
}

// ChoiceError says what is wrong with a choice, and what there is.
type ChoiceError struct{ Message string }

func (e *ChoiceError) Error() string { return e.Message }

// modelFor is the model that a choice means in this process.
func (e *Engine) modelFor(c Choice) (Model, error) {
	if c.Model == "" || e.Models == nil {
		return e.Model()
	}
	return e.Models.Named(c.Model)
}

// HereFor is what work runs with in this process that was accepted with a choice.
func (e *Engine) HereFor(c Choice) Profile {
	if e.Passive {
		return Profile{}
	}
	p := Profile{Env: e.Environment.Digest, Chosen: c.Model, Effort: c.Effort}
	if m, err := e.modelFor(c); err == nil {
		id := m.Identity()
		p.Provider, p.Name, p.Origin, p.API, p.Credential = id.Provider, id.Name, id.Origin, id.API, id.Credential
	}
	return p
}

// Fits tells whether this process can go on with work.
func (e *Engine) Fits(p Profile) bool { return p.Fits(e.HereFor(p.Choice())) }

// ModelFor is the model of work, or why there is none here.
func (e *Engine) ModelFor(p Profile) (Model, error) { return e.modelFor(p.Choice()) }

// SetModel chooses the model of a session from its next message on; "" or the name of the process's own takes the choice back. What runs goes on
// as it began. A level of thinking stays when the new model has it.
func (e *Engine) SetModel(ctx context.Context, id SessionID, name string) error {
	own := ""
	if m, err := e.Model(); err == nil {
		own = m.Identity().Provider + "/" + m.Identity().Name
	}
	if name == own {
		name = ""
	}
	if name != "" {
		if e.Models == nil {
			return &ChoiceError{"This process has one model."}
		}
		if _, err := e.Models.Named(name); err != nil {
			return &ChoiceError{fmt.Sprintf("%s cannot be asked here: %s", name, safeText(err))}
		}
	}
	return e.choose(ctx, id, func(c *Choice) {
		if c.Model = name; c.Effort != "" && !slices.Contains(e.efforts(name), c.Effort) {
			c.Effort = ""
		}
	})
}

// SetEffort chooses how much the model of a session thinks, from its next message on; EffortDefault takes the choice back.
func (e *Engine) SetEffort(ctx context.Context, s Session, level string) error {
	if level == EffortDefault {
		level = ""
	} else if levels := e.efforts(s.Choice.Model); !slices.Contains(levels, level) {
		if len(levels) == 0 {
			return &ChoiceError{"The model of this session cannot be told how much to think."}
		}
		return &ChoiceError{fmt.Sprintf("%q is no level of this model; it takes %s, or %s", level, strings.Join(levels, ", "), EffortDefault)}
	}
	return e.choose(ctx, s.ID, func(c *Choice) { c.Effort = level })
}

func (e *Engine) efforts(name string) []string {
	if e.Models == nil {
		return nil
	}
	return e.Models.Efforts(name)
}

func (e *Engine) choose(ctx context.Context, id SessionID, change func(*Choice)) error {
	return e.Commit(ctx, "mode.set", id, func(tx Tx) error {
		s, err := tx.Session(id)
		if err != nil {
			return err
		}
		if s.Broken != CodeNone {
			return &RecordError{Code: s.Broken, Session: id, Record: "session " + string(id)}
		}
		before := s.Choice
		if change(&s.Choice); s.Choice == before {
			return nil
		}
		s.UpdatedAt = e.Now()
		return tx.UpdateSession(s)
	})
}
