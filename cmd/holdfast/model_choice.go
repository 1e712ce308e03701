package main

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"holdfast/internal/config"
	"holdfast/internal/provider"
	"holdfast/session"
)

// choices are the models that sessions of a process can have instead of the process's own. It implements session.Models.
type choices struct {
	home, own string // own names the process's model as it was given, "" for that of the configuration
	key       []byte
	hide      *secrets

	mu    sync.Mutex
	found map[string]session.Model
}

func newChoices(home, own string, key []byte, hide *secrets) *choices {
	return &choices{home: home, own: own, key: key, hide: hide, found: map[string]session.Model{}}
}

// Named finds a model once. A script is none that a session could choose: its name is a file's.
func (c *choices) Named(name string) (session.Model, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if m := c.found[name]; m != nil {
		return m, nil
	}
	if provider.IsScripted(name) {
		return nil, fmt.Errorf("a script is chosen with --model or HOLDFAST_MODEL")
	}
	conf, err := modelConfig(c.home, name, c.key)
	if err != nil {
		return nil, err
	}
	conf.Chosen = true
	m, err := provider.Resolve(conf)
	if err != nil {
		return nil, err
	}
	c.found[name] = provider.Hidden(m, c.hide.mask)
	return c.found[name], nil
}

// Names are the models of each provider that can be asked: of its own endpoint those of the catalogue, and those that the configuration names.
func (c *choices) Names() (names []string) {
	conf, err := modelConfig(c.home, c.own, nil)
	if err != nil {
		return nil
	}
	f, _ := userFile(c.home) // of one that cannot be used nothing counts
	for _, kind := range provider.Kinds() {
		place, err := provider.Where(conf, kind)
		if err != nil {
			continue
		}
		known := []string{}
		if place.Own {
			known = conf.Catalogue.Names(kind)
		}
		for _, m := range f.Config.Models {
			if named := ownName(m, kind); named != "" && !slices.Contains(known, named) {
				known = append(known, named)
			}
		}
		for _, name := range known {
			names = append(names, kind+"/"+name)
		}
	}
	return names
}

// ownName is the one model of a provider that a table of figures is for, "" when it is for several or for another provider's.
func ownName(m config.Model, kind string) string {
	p, name, _ := strings.Cut(m.Name, "/")
	if !strings.EqualFold(p, kind) || strings.Contains(name, "*") {
		return ""
	}
	return name
}

// Efforts are the levels of thinking of a model.
func (c *choices) Efforts(name string) []string {
	conf, err := modelConfig(c.home, or(name, c.own), nil)
	if err != nil || provider.IsScripted(conf.Model) {
		return nil
	}
	conf.Chosen = name != ""
	return provider.Efforts(conf)
}
