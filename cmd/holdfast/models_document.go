package main

import (
	"strings"

	"holdfast/internal/catalogue"
	"holdfast/internal/config"
	"holdfast/internal/provider"
)

// modelsDocument is what 'holdfast models' prints.
type modelsDocument struct {
	Catalogue catalogueDocument  `json:"catalogue"`
	InUse     inUseDocument      `json:"inUse"`
	Providers []providerDocument `json:"providers"`

	single bool // one model was asked for
}

type catalogueDocument struct {
	Written string            `json:"written"`
	Sources map[string]string `json:"sources"`
}

// inUseDocument is the model that new sessions get here, and what chose it. Of a default, the origin's name is the variable of the key that is set.
type inUseDocument struct {
	Model   string        `json:"model"` // "" when there is none
	Origin  config.Origin `json:"origin"`
	Problem string        `json:"problem"`
}

type providerDocument struct {
	Provider   string          `json:"provider"`
	Configured bool            `json:"configured"` // it can be asked: there is a key, or it is on this machine
	Endpoint   string          `json:"endpoint"`
	Own        bool            `json:"own"` // the endpoint is the provider's own
	Key        bool            `json:"key"`
	Asked      bool            `json:"asked"`
	Problem    string          `json:"problem"` // what to set, or why it did not answer
	Models     []modelDocument `json:"models"`
}

type modelDocument struct {
	Name       string                    `json:"name"`
	InUse      bool                      `json:"inUse"`
	Known      bool                      `json:"known"`  // there is anything at all
	Listed     *bool                     `json:"listed"` // by the endpoint; null when it was not asked
	Released   string                    `json:"released"`
	Context    figure[int64]             `json:"contextTokens"`
	Output     figure[int64]             `json:"outputTokens"`
	Images     figure[bool]              `json:"images"`
	Tools      figure[bool]              `json:"tools"`
	Reasoning  figure[reasoningDocument] `json:"reasoning"`
	Currency   figure[string]            `json:"currency"`
	Input      figure[int64]             `json:"priceInput"`
	Cached     figure[int64]             `json:"priceCached"`
	CacheWrite figure[int64]             `json:"priceCacheWrite"`
	Price      figure[int64]             `json:"priceOutput"`
	UpTo       figure[int64]             `json:"pricesUpToTokens"`
}

type reasoningDocument struct {
	Kind    string   `json:"kind"`
	Efforts []string `json:"efforts"`
}

// figure is a figure with where it comes from; null is unknown.
type figure[T any] struct {
	Value *T     `json:"value"`
	From  string `json:"from"`
	Date  string `json:"date"`
	File  string `json:"file"`
	Line  int    `json:"line"`
}

func figureOf[T any](f catalogue.Figure[T]) figure[T] {
	if !f.Known() {
		return figure[T]{}
	}
	return figure[T]{&f.Value, f.From, f.Date, f.File, f.Line}
}

func newModelDocument(e catalogue.Entry, known bool) modelDocument {
	d := modelDocument{Name: e.Provider + "/" + e.Name, Known: known, Released: e.Released, Context: figureOf(e.Context), Output: figureOf(e.Output),
		Images: figureOf(e.Images), Tools: figureOf(e.Tools), Currency: figureOf(e.Prices.Currency), Input: figureOf(e.Prices.Input), Cached: figureOf(e.Prices.Cached),
		CacheWrite: figureOf(e.Prices.CacheWrite), Price: figureOf(e.Prices.Output), UpTo: figureOf(e.Prices.UpTo)}
	r := e.Reasoning
	d.Reasoning = figureOf(catalogue.Figure[reasoningDocument]{Value: reasoningDocument{r.Value.Kind, append([]string{}, r.Value.Efforts...)}, Origin: r.Origin})
	return d
}

// hear takes what the endpoint itself says of a model, unless the user said otherwise.
func (d *modelDocument) hear(l provider.Listed) {
	for _, f := range []struct {
		to *figure[int64]
		n  int64
	}{{&d.Context, l.Context}, {&d.Output, l.Output}} {
		if f.n > 0 && f.to.From != catalogue.FromConfig {
			*f.to, d.Known = figure[int64]{Value: &f.n, From: catalogue.FromEndpoint}, true
		}
	}
}

// mark marks the model that is in use.
func (d *modelsDocument) mark() {
	for i := range d.Providers {
		for j := range d.Providers[i].Models {
			m := &d.Providers[i].Models[j]
			m.InUse = m.Name == d.InUse.Model
		}
	}
}

// place is where a figure comes from, in words.
func (f figure[T]) place() string {
	switch f.From {
	case catalogue.FromCatalogue:
		return "catalogue of " + f.Date
	case catalogue.FromConfig:
		return placeText(f.File, f.Line)
	case catalogue.FromEndpoint:
		return "the endpoint"
	}
	return ""
}

func placeText(file string, at int) string {
	return originText(config.Origin{From: config.FromUser, File: file, Line: at})
}

// words of a way of reasoning.
func (r reasoningDocument) words() string {
	if len(r.Efforts) == 0 {
		return r.Kind
	}
	return strings.Join(r.Efforts, ",")
}
