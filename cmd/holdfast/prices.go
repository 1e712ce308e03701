package main

import (
	"holdfast/internal/catalogue"
	"holdfast/internal/provider"
	"holdfast/session"
	"holdfast/usage"
)

// modelPrices says what the tokens of a model cost now, as far as that is known: by the user's figures, and by the catalogue for a provider's own
// endpoint.
func modelPrices(home string) func(session.ModelIdentity) usage.Price {
	f, _ := userFile(home) // of one that cannot be used nothing counts
	models := knownModels(f)
	return func(id session.ModelIdentity) usage.Price {
		e, _ := models.Find(id.Provider, id.Name)
		if !provider.Own(id) {
			e = e.Elsewhere()
		}
		p := e.Prices
		if !p.Currency.Known() {
			return usage.Price{}
		}
		from := catalogue.FromCatalogue + " " + models.Written
		for _, f := range []catalogue.Figure[int64]{p.Input, p.Cached, p.CacheWrite, p.Output} {
			if f.From == catalogue.FromConfig {
				from = catalogue.FromConfig
			}
		}
		return usage.Price{Currency: p.Currency.Value, Input: priceCount(p.Input), CacheRead: priceCount(p.Cached), CacheWrite: priceCount(p.CacheWrite),
			Output: priceCount(p.Output), UpTo: priceCount(p.UpTo), From: from}
	}
}

func priceCount(f catalogue.Figure[int64]) usage.Count {
	return usage.Count{N: f.Value, Known: f.Known()}
}

// longestAnswer says how long an answer of a model is at most: what the user limits it to, else what it can write. 0 is unknown.
func longestAnswer(home string) func(session.ModelIdentity) int64 {
	f, _ := userFile(home)
	models, most := knownModels(f), answerMost(home)
	return func(id session.ModelIdentity) int64 {
		if most > 0 {
			return most
		}
		e, _ := models.Find(id.Provider, id.Name)
		return e.Output.Value
	}
}
