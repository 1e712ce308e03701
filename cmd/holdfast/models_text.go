package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"holdfast/internal/config"
)

const unknown = "unknown"

func (d *modelsDocument) print(w io.Writer) {
	if d.single {
		for _, p := range d.Providers {
			for _, m := range p.Models {
				m.print(w, p)
			}
		}
		return
	}
	_, _ = fmt.Fprintf(w, "in use  %s\n", d.InUse.text())
	prices, long := false, false
	for _, p := range d.Providers {
		_, _ = fmt.Fprintf(w, "\n%s\n", p.text())
		var rows [][]string
		for _, m := range p.Models {
			rows = append(rows, m.row())
			prices = prices || m.Input.Value != nil || m.Price.Value != nil
			long = long || m.UpTo.Value != nil
		}
		table(w, []string{" ", "MODEL", "CONTEXT", "OUTPUT", "IMAGES", "TOOLS", "REASONING", "IN", "CACHED", "CACHE WRITE", "OUT"}, rows)
	}
	if prices {
		_, _ = fmt.Fprintf(w, "\nPrices are for a million tokens, in USD where no other currency is named; the catalogue's are of %s and may have changed.\n", d.Catalogue.Written)
	}
	if long {
		_, _ = fmt.Fprintln(w, "+ long prompts cost more; 'holdfast models PROVIDER/NAME' says from where on.")
	}
}

func (u inUseDocument) text() string {
	if u.Problem != "" {
		return "none: " + u.Problem
	}
	from := originText(u.Origin)
	if u.Origin.From == config.FromDefault {
		from = "the default, as there is a key: " + u.Origin.Name
	}
	return line(u.Model, 200) + " (" + from + ")"
}

func (p providerDocument) text() string {
	switch {
	case !p.Configured:
		return p.Provider + "  " + p.Problem
	case p.Asked && p.Problem != "":
		return fmt.Sprintf("%s  %s was asked for its models: %s", p.Provider, p.Endpoint, p.Problem)
	case p.Asked && len(p.Models) == 0:
		return fmt.Sprintf("%s  %s says that it has none; a model may answer all the same", p.Provider, p.Endpoint)
	case p.Asked:
		return fmt.Sprintf("%s  %s says that it has", p.Provider, p.Endpoint)
	case !p.Own:
		return fmt.Sprintf("%s  %s is asked; which of these it has, and at what price, only --ask or itself can say", p.Provider, p.Endpoint)
	}
	return fmt.Sprintf("%s  %s", p.Provider, p.Endpoint)
}

func (m modelDocument) row() []string {
	mark := " "
	if m.InUse {
		mark = "*"
	}
	name := line(m.Name, 80)
	if m.Listed != nil && !*m.Listed {
		name += " (not listed)"
	}
	return []string{mark, name, tokens(m.Context), tokens(m.Output), yesNo(m.Images), yesNo(m.Tools), m.reasoning(),
		m.price(m.Input), m.price(m.Cached), m.price(m.CacheWrite), m.price(m.Price)}
}

// print shows one model, with where each figure comes from.
func (m modelDocument) print(w io.Writer, p providerDocument) {
	var rows [][]string
	row := func(what, value, from string) { rows = append(rows, []string{what, value, from}) }
	row("context", tokens(m.Context), m.Context.place())
	row("output", tokens(m.Output), m.Output.place())
	row("images", yesNo(m.Images), m.Images.place())
	row("tools", yesNo(m.Tools), m.Tools.place())
	row("reasoning", m.reasoning(), m.Reasoning.place())
	row("price in", m.price(m.Input), m.Input.place())
	row("price cached", m.price(m.Cached), m.Cached.place())
	row("price cache write", m.price(m.CacheWrite), m.CacheWrite.place())
	row("price out", m.price(m.Price), m.Price.place())
	if m.UpTo.Value != nil {
		row("prices hold", "up to "+tokens(m.UpTo)+" tokens of prompt", m.UpTo.place())
	}
	mark := ""
	if m.InUse {
		mark = " (in use)"
	}
	_, _ = fmt.Fprintf(w, "%s%s\n", line(m.Name, 200), mark)
	table(w, []string{"FIGURE", "VALUE", "FROM"}, rows)
	if m.Listed != nil {
		_, _ = fmt.Fprintf(w, "%s lists it: %s\n", p.Endpoint, map[bool]string{true: "yes", false: "no"}[*m.Listed])
	}
	if p.Problem != "" {
		_, _ = fmt.Fprintln(w, p.Problem)
	}
}

func tokens(f figure[int64]) string {
	if f.Value == nil {
		return unknown
	}
	return strconv.FormatInt(*f.Value, 10)
}

func yesNo(f figure[bool]) string {
	switch {
	case f.Value == nil:
		return unknown
	case *f.Value:
		return "yes"
	}
	return "no"
}

func (m modelDocument) reasoning() string {
	if m.Reasoning.Value == nil {
		return unknown
	}
	return line(m.Reasoning.Value.words(), 60)
}

// price writes millionths as a number, with the currency when it is not the usual one.
func (m modelDocument) price(f figure[int64]) string {
	if f.Value == nil {
		return unknown
	}
	text := fmt.Sprintf("%d.%06d", *f.Value/1_000_000, *f.Value%1_000_000)
	text = strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
	if m.UpTo.Value != nil {
		text += "+"
	}
	if c := m.Currency.Value; c != nil && *c != config.DefaultCurrency {
		text += " " + *c
	}
	return text
}
