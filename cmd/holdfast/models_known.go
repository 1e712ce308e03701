package main

import (
	"math"
	"slices"
	"strings"

	"holdfast/internal/catalogue"
	"holdfast/internal/config"
)

// knownModels is the catalogue with the figures of the user's configuration on top.
func knownModels(f config.File) *catalogue.Catalogue {
	var own []catalogue.Own
	for i, m := range f.Config.Models {
		lines := f.Lines("models", i)
		at := func(key string) catalogue.Origin {
			return catalogue.Origin{From: catalogue.FromConfig, File: f.Path, Line: lines[key]}
		}
		o := catalogue.Own{}
		o.Provider, o.Name, _ = strings.Cut(m.Name, "/")
		o.Context, o.Output, o.Images = said(m.ContextTokens, at("context_tokens")), said(m.OutputTokens, at("output_tokens")), said(m.Images, at("images"))
		if m.Reasoning != nil && *m.Reasoning != "" {
			o.Reasoning = catalogue.Is(reasoningOf(*m.Reasoning), at("reasoning"))
		}
		o.Prices = catalogue.Prices{Input: price(m.PriceInput, at("price_input")), Cached: price(m.PriceCached, at("price_cached")),
			CacheWrite: price(m.PriceCacheWrite, at("price_cache_write")), Output: price(m.PriceOutput, at("price_output"))}
		for _, p := range []catalogue.Figure[int64]{o.Prices.Input, o.Prices.Cached, o.Prices.CacheWrite, o.Prices.Output} {
			if !p.Known() {
				continue
			}
			o.Prices.Currency = catalogue.Is(or(m.Currency, config.DefaultCurrency), p.Origin)
			if m.Currency != "" {
				o.Prices.Currency.Origin = at("currency")
			}
			break
		}
		own = append(own, o)
	}
	return catalogue.Embedded().With(own)
}

func said[T any](v *T, from catalogue.Origin) catalogue.Figure[T] {
	if v == nil {
		return catalogue.Figure[T]{}
	}
	return catalogue.Is(*v, from)
}

// price is a price of the configuration in the millionths that the catalogue counts in.
func price(v *float64, from catalogue.Origin) catalogue.Figure[int64] {
	if v == nil {
		return catalogue.Figure[int64]{}
	}
	return catalogue.Is(int64(math.Round(*v*1e6)), from)
}

// reasoningOf reads a way of reasoning that was checked.
func reasoningOf(text string) catalogue.Reasoning {
	words := config.Efforts(text)
	if len(words) == 1 && slices.Contains([]string{catalogue.ReasonsNot, catalogue.ReasonsBudgets, catalogue.ReasonsEffort}, words[0]) {
		return catalogue.Reasoning{Kind: words[0]}
	}
	return catalogue.Reasoning{Kind: catalogue.ReasonsEffort, Efforts: words}
}
