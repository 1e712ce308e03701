package config

import (
	"slices"
	"strconv"
	"strings"
)

// Model is what the user says of the models that a pattern names. What is nil was not said.
type Model struct {
	Name            string   `toml:"name"` // PROVIDER/NAME; in NAME a * stands for any characters
	ContextTokens   *int64   `toml:"context_tokens"`
	OutputTokens    *int64   `toml:"output_tokens"`
	Images          *bool    `toml:"images"`
	Reasoning       *string  `toml:"reasoning"`
	PriceInput      *float64 `toml:"price_input"`
	PriceCached     *float64 `toml:"price_cached"`
	PriceCacheWrite *float64 `toml:"price_cache_write"`
	PriceOutput     *float64 `toml:"price_output"`
	Currency        string   `toml:"currency"` // of the prices; "" means DefaultCurrency
}

// DefaultCurrency is that of prices that name none.
const DefaultCurrency = "USD"

const (
	perMillion = "currency units for a million tokens"
	mostTokens = 1e12
	mostPrice  = 1e6
)

var figureKeys = []Key{
	{Path: "models[].name", Type: Text, Default: "must be given", Project: Never, Since: first,
		Effect: "Which models the figures beside it are for, as `PROVIDER/NAME`; `*` stands for any characters of the name", Counts: atStart,
		Example: `"openai/qwen3*"`, Check: modelPattern},
	{Path: "models[].context_tokens", Type: Whole, Unit: "tokens", Default: "the catalogue's, or unknown", Project: Never, Since: first, Min: 1, Max: mostTokens,
		Effect: "How much they hold, question and answer together", Counts: atStart, Example: "131072"},
	{Path: "models[].output_tokens", Type: Whole, Unit: "tokens", Default: "the catalogue's, or unknown", Project: Never, Since: first, Min: 1, Max: mostTokens,
		Effect: "How long one answer of theirs can be", Counts: atStart, Example: "32768"},
	{Path: "models[].images", Type: Switch, Default: "the catalogue's, or unknown", Project: Never, Since: first,
		Effect: "Whether they are shown images; without a word of anybody they are", Counts: atStart, Example: "false"},
	{Path: "models[].reasoning", Type: Text, Default: "the catalogue's, or unknown", Project: Never, Since: first,
		Effect: "How they can be told to think: `none`, `budget`, `effort`, or the levels of effort with commas, the least first", Counts: atStart,
		Example: `"low, medium, high"`, Check: reasoning},
	{Path: "models[].price_input", Type: Number, Unit: perMillion, Default: "the catalogue's, or unknown", Project: Never, Since: first, Max: mostPrice,
		Effect: "What they are asked costs", Counts: atStart, Example: "1.25"},
	{Path: "models[].price_cached", Type: Number, Unit: perMillion, Default: "the catalogue's, or unknown", Project: Never, Since: first, Max: mostPrice,
		Effect: "What of it a cache had costs", Counts: atStart, Example: "0.125"},
	{Path: "models[].price_cache_write", Type: Number, Unit: perMillion, Default: "the catalogue's, or unknown", Project: Never, Since: first, Max: mostPrice,
		Effect: "What of it a cache keeps costs", Counts: atStart, Example: "1.5625"},
	{Path: "models[].price_output", Type: Number, Unit: perMillion, Default: "the catalogue's, or unknown", Project: Never, Since: first, Max: mostPrice,
		Effect: "What they answer costs", Counts: atStart, Example: "10"},
	{Path: "models[].currency", Type: Text, Default: DefaultCurrency, Project: Never, Since: first,
		Effect: "The currency of the prices beside it, in three letters", Counts: atStart, Example: `"EUR"`, Check: currency},
}

// modelPattern checks the name of some models.
func modelPattern(v any) (wrong, write string) {
	kind, name, ok := strings.Cut(v.(string), "/")
	if !ok || kind == "" || strings.Contains(kind, "*") || strings.TrimSpace(name) == "" {
		return "is " + strconv.Quote(clip(v.(string))), `write PROVIDER/NAME, for example "openai/gpt-*"`
	}
	return "", ""
}

// reasoning checks a way of reasoning.
func reasoning(v any) (wrong, write string) {
	for _, level := range Efforts(v.(string)) {
		if level == "" || strings.Trim(level, "abcdefghijklmnopqrstuvwxyz0123456789_-") != "" {
			return "is " + strconv.Quote(clip(v.(string))), "write none, budget, effort, or levels such as low, medium, high"
		}
	}
	return "", ""
}

// level checks one level of thinking. Which ones a model has is for the one who asks it.
func level(v any) (wrong, write string) {
	if s := v.(string); strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789_-") != "" {
		return "is " + strconv.Quote(clip(s)), "write one level such as low, medium or high; 'holdfast models PROVIDER/NAME' shows those of a model"
	}
	return "", ""
}

// Efforts are the words of a way of reasoning.
func Efforts(text string) []string {
	words := strings.Split(text, ",")
	for i := range words {
		words[i] = strings.TrimSpace(words[i])
	}
	return words
}

func currency(v any) (wrong, write string) {
	if s := v.(string); len(s) != 3 || strings.Trim(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") != "" {
		return "is " + strconv.Quote(clip(s)), "write three capital letters, for example EUR"
	}
	return "", ""
}

// models looks at each table of figures as a whole.
func (c *checker) models(entries []entry) {
	type table struct {
		line  int
		given map[string]any
	}
	var order []string
	tables := map[string]*table{}
	for _, e := range entries {
		if len(e.path) == 0 || !strings.HasPrefix(e.path[0], "models[") {
			continue
		}
		if tables[e.path[0]] == nil {
			order, tables[e.path[0]] = append(order, e.path[0]), &table{line: e.line, given: map[string]any{}}
		}
	}
	for _, v := range c.values {
		if t := tables[v.seg[0]]; t != nil {
			t.given[v.Key.last()] = v.V
		}
	}
	seen := map[string]int{}
	for _, at := range order {
		t := tables[at]
		if c.reported(at) {
			continue
		}
		if wrong, write := figures(t.given, seen); wrong != "" {
			c.fault(t.line, at, wrong, write)
			continue
		}
		seen[strings.ToLower(t.given["name"].(string))] = t.line
	}
}

// figures says what is wrong with a table as a whole. seen are the names before it, with their lines.
func figures(given map[string]any, seen map[string]int) (wrong, write string) {
	name, _ := given["name"].(string)
	context, known := given["context_tokens"].(int64)
	output, _ := given["output_tokens"].(int64)
	prices := slices.ContainsFunc([]string{"price_input", "price_cached", "price_cache_write", "price_output"}, func(k string) bool { return given[k] != nil })
	switch line := seen[strings.ToLower(name)]; {
	case name == "":
		return "has no name", `write name = "PROVIDER/NAME" in it`
	case line > 0:
		return "names the models of line " + strconv.Itoa(line) + " again", "write all figures of a name in one table"
	case len(given) == 1:
		return "says nothing of its models", "write a figure in it, for example context_tokens = 131072"
	case given["currency"] != nil && !prices:
		return "has a currency and no price", "write price_input or price_output in it, or leave the currency out"
	case known && output > context:
		return "lets an answer be longer than all they hold", "write output_tokens of at most context_tokens"
	}
	return "", ""
}

// Lines says on which line each setting of an entry of a list stands.
func (f File) Lines(list string, n int) map[string]int {
	at := list + "[" + strconv.Itoa(n) + "]"
	out := map[string]int{}
	for _, v := range f.Values {
		if len(v.seg) == 2 && v.seg[0] == at {
			out[v.seg[1]] = v.Line
		}
	}
	return out
}
