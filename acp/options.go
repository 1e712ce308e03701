package acp

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"holdfast/acp/rpc"
	v1 "holdfast/acp/v1"
	"holdfast/session"
)

// Options of a session that a client can set. The mode is one of them because clients that know options look at nothing else.
const (
	optionMode  = "mode"
	optionModel = "model"
	optionThink = "thought_level"
)

// configOptions are a session's as they are now. A model that cannot be told how much to think has no option for that.
func configOptions(b *Backend, s session.Session) []v1.SessionConfigOption {
	e := b.Engine
	var modes []v1.SessionConfigSelectOption
	for _, m := range session.Modes {
		modes = append(modes, v1.SessionConfigSelectOption{Value: v1.SessionConfigValueID(m), Name: modeNames[m][0], Description: new(modeNames[m][1])})
	}
	out := []v1.SessionConfigOption{selection(optionMode, v1.SessionConfigOptionCategoryMode, "Mode", string(s.Mode), modes)}
	model := session.Choice{}.Model
	if m, err := e.Model(); err == nil {
		model = m.Identity().Provider + "/" + m.Identity().Name
	}
	own := model
	if s.Choice.Model != "" {
		model = s.Choice.Model
	}
	if model == "" || e.Models == nil {
		return out
	}
	var models []v1.SessionConfigSelectOption
	for _, name := range withOwn(e.Models.Names(), own, model) {
		models = append(models, v1.SessionConfigSelectOption{Value: v1.SessionConfigValueID(name), Name: name})
	}
	out = append(out, selection(optionModel, v1.SessionConfigOptionCategoryModel, "Model", model, models))
	if levels := e.Models.Efforts(s.Choice.Model); len(levels) > 0 {
		now, all := session.EffortDefault, []v1.SessionConfigSelectOption{{Value: session.EffortDefault, Name: "Default"}}
		for _, l := range levels {
			all = append(all, v1.SessionConfigSelectOption{Value: v1.SessionConfigValueID(l), Name: strings.ToUpper(l[:1]) + l[1:]})
		}
		if s.Choice.Effort != "" {
			now = s.Choice.Effort
		}
		if !slices.ContainsFunc(all, func(o v1.SessionConfigSelectOption) bool { return string(o.Value) == now }) { // another process knows more
			all = append(all, v1.SessionConfigSelectOption{Value: v1.SessionConfigValueID(now), Name: now})
		}
		out = append(out, selection(optionThink, v1.SessionConfigOptionCategoryThoughtLevel, "Reasoning effort", now, all))
	}
	return out
}

// withOwn are the names with those that are in use, which may be on no list.
func withOwn(names []string, more ...string) []string {
	for _, name := range more {
		if name != "" && !slices.Contains(names, name) {
			names = append([]string{name}, names...)
		}
	}
	return names
}

func selection(id v1.SessionConfigID, category v1.SessionConfigOptionCategory, name, now string, all []v1.SessionConfigSelectOption) v1.SessionConfigOption {
	return v1.SessionConfigOption{ID: id, Category: category, Name: name,
		Select: &v1.SessionConfigSelect{CurrentValue: v1.SessionConfigValueID(now), Options: v1.SessionConfigSelectOptions{Ungrouped: all}}}
}

func optionsUpdate(b *Backend, s session.Session) update {
	return update{ConfigOptionUpdate: &v1.ConfigOptionUpdate{ConfigOptions: configOptions(b, s)}}
}

// setOption changes one option and answers with all: another one may have changed with it. What is not offered changes nothing.
func (a *Agent) setOption(ctx context.Context, b *Backend, req *rpc.Request) error {
	p, err := parse[v1.SetSessionConfigOptionRequest](req)
	if err != nil {
		return err
	}
	s, err := a.stored(ctx, b, session.SessionID(p.SessionID))
	if err != nil {
		return err
	}
	all := configOptions(b, s)
	i := slices.IndexFunc(all, func(o v1.SessionConfigOption) bool { return o.ID == p.ConfigID })
	switch {
	case i < 0:
		return &invalid{"configId", fmt.Sprintf("%q is no option of this session; there are %s", p.ConfigID, strings.Join(ids(all), ", "))}
	case p.ValueID == nil:
		return &invalid{"value", "this option takes the id of one of its values"}
	}
	value := string(p.ValueID.Value)
	offered := values(all[i])
	if !slices.Contains(offered, value) {
		return &invalid{"value", fmt.Sprintf("%q is not offered; the values are %s", value, strings.Join(offered, ", "))}
	}
	f := a.follower(s.ID)
	switch p.ConfigID {
	case optionMode:
		if f != nil {
			f.post(func() { f.mode = session.Mode(value) }) // the client knows what it set
		}
		err = b.Engine.SetMode(ctx, s.ID, session.Mode(value))
	case optionModel:
		err = b.Engine.SetModel(ctx, s.ID, value)
	case optionThink:
		err = b.Engine.SetEffort(ctx, s, value)
	}
	var wrong *session.ChoiceError
	if errors.As(err, &wrong) {
		return &invalid{"value", wrong.Message}
	}
	if err != nil {
		return err
	}
	if s, err = a.stored(ctx, b, s.ID); err != nil {
		return err
	}
	if f != nil {
		f.post(func() { f.choice = s.Choice })
	}
	req.Reply(v1.SetSessionConfigOptionResponse{ConfigOptions: configOptions(b, s)})
	return nil
}

func ids(all []v1.SessionConfigOption) (out []string) {
	for _, o := range all {
		out = append(out, string(o.ID))
	}
	return out
}

func values(o v1.SessionConfigOption) (out []string) {
	for _, v := range o.Select.Options.Ungrouped {
		out = append(out, string(v.Value))
	}
	return out
}
