package provider

import (
	"fmt"
	"slices"
	"strings"

	"github.com/anthropics/anthropic-sdk-go/v2"

	"holdfast/internal/catalogue"
	"holdfast/session"
)

// What the wires have for models of which the levels are not known.
var (
	openAIEfforts    = []string{"none", "minimal", "low", "medium", "high", "xhigh", "max"}
	anthropicEfforts = []string{"low", "medium", "high", "xhigh", "max"}
)

// budgets are the levels of models that are told how many tokens they may think, the least first.
var budgets = []struct {
	level  string
	tokens int64
}{{"low", 4096}, {"medium", 16384}, {"high", 32768}}

// minBudget is the least that the wire takes.
const minBudget = 1024

// effort is how a model can be told how much to think.
type effort struct {
	levels  []string // none when it cannot
	budget  bool     // a level stands for a number of tokens
	model   string   // for errors
	unasked string   // the level of requests that name none; "" leaves it to the model
}

// effortOf is what a provider's wire and the catalogue say of a model. What is not known can be asked for, as far as the wire has it.
func effortOf(kind, name string, known catalogue.Entry) effort {
	e := effort{model: kind + "/" + name}
	r := known.Reasoning.Value
	switch {
	case known.Reasoning.Known() && r.Kind == catalogue.ReasonsNot, kind == "scripted":
	case known.Reasoning.Known() && r.Kind == catalogue.ReasonsBudgets, kind == "anthropic" && !known.Reasoning.Known() && !adapts(name):
		e.budget = kind == "anthropic"
		for _, b := range budgets {
			e.levels = append(e.levels, b.level)
		}
	case len(r.Efforts) > 0:
		e.levels = r.Efforts
	case kind == "anthropic":
		e.levels = anthropicEfforts
	case kind == "openai" && (known.Reasoning.Known() || reasons(name)):
		e.levels = openAIEfforts
	}
	return e
}

// take makes a level that of every request. A model that cannot reason gets none, whatever was said of models in general.
func (e *effort) take(what, level string) error {
	level = strings.ToLower(strings.TrimSpace(level))
	if level == "" || level == session.EffortDefault || len(e.levels) == 0 {
		return nil
	}
	if !slices.Contains(e.levels, level) {
		return fmt.Errorf("%s is %q: %s takes %s", what, clip(oneLine(level), 60), e.model, strings.Join(e.levels, ", "))
	}
	e.unasked = level
	return nil
}

// of is the level of a request, "" for the model's own. One that the model does not have is not sent.
func (e *effort) of(req session.ModelRequest) string {
	if slices.Contains(e.levels, req.Effort) {
		return req.Effort
	}
	return e.unasked
}

// Efforts are the levels of thinking that can be asked of the model that a configuration names, the least first; none when it cannot be told.
func Efforts(c Config) []string {
	id, err := Check(c)
	if err != nil {
		return nil
	}
	known, _ := c.known().Find(id.Provider, id.Name)
	return effortOf(id.Provider, id.Name, known).levels
}

// think says how much to think. The number of tokens is at most three quarters of what the answer may have, because the wire counts both
// together; what is less than the wire takes is not asked for. A model that is told a number wants to see its thought in front of the calls whose
// results it gets: without it nothing is said this time.
func (m *Anthropic) think(p *anthropic.MessageNewParams, t *thread, level string) {
	if level == "" {
		return
	}
	if !m.config.effort.budget {
		p.OutputConfig.Effort = anthropic.OutputConfigEffort(level)
		return
	}
	for _, b := range budgets {
		if n := min(b.tokens, p.MaxTokens*3/4); b.level == level && n >= minBudget && !t.thoughtless() {
			p.Thinking = anthropic.ThinkingConfigParamUnion{OfEnabled: &anthropic.ThinkingConfigEnabledParam{BudgetTokens: n}}
		}
	}
}

// thoughtless tells whether results are at the end whose calls come without the thought in front of them.
func (t *thread) thoughtless() bool {
	if len(t.turns) < 2 {
		return false
	}
	last, before := t.turns[len(t.turns)-1], t.turns[len(t.turns)-2]
	return kindOf(last.Content[0]) == "tool_result" && !strings.Contains(kindOf(before.Content[0]), "thinking")
}
