package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"holdfast/internal/config"
	"holdfast/internal/provider"
	"holdfast/internal/secret"
	"holdfast/session"
)

// askFor is how long an endpoint may take to list its models.
const askFor = 15 * time.Second

func modelsCommand(model *string) *cobra.Command {
	m := models{}
	cmd := &cobra.Command{Use: "models [PROVIDER/NAME]", Short: "Show the models that are known, what is known of each, and which one is in use",
		Long: "Show the models of each provider that has a key or a base URL, from the catalogue that is built in and the figures of your config.toml.\n" +
			"With a name it shows that model, and where each figure comes from. With --ask the endpoints are asked which models they have; no model runs.",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usageError{fmt.Errorf("it takes one model at most; %s given", given(len(args)))}
			}
			return nil
		}}
	cmd.Flags().BoolVar(&m.ask, "ask", false, "ask the endpoints which models they have")
	cmd.Flags().DurationVar(&m.within, "within", askFor, "how long an endpoint may take to answer")
	jsonFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		home, err := homeDir()
		if err != nil {
			return err
		}
		if m.within <= 0 {
			return usageError{errors.New("--within takes a time above 0, such as 15s")}
		}
		c := &cli{home: home, out: cmd.OutOrStdout(), errs: cmd.ErrOrStderr()}
		c.json, _ = cmd.Flags().GetBool("json") // it is there
		if m.config, err = modelConfig(home, *model, nil); err != nil {
			return err
		}
		m.mask, m.only = secretsOf(home).mask, strings.Join(args, "")
		d, err := m.document(cmd.Context())
		if err != nil {
			return err
		}
		d.InUse = m.inUse(home, cmd.Flags().Changed("model"))
		d.mark()
		if err := c.show(d, d.print); err != nil {
			return err
		}
		if m.failed {
			return exitError{exitFailed}
		}
		return nil
	}
	return cmd
}

// models is one run of the command.
type models struct {
	ask    bool
	within time.Duration
	only   string // PROVIDER/NAME, or "" for all
	config provider.Config
	mask   *secret.Masker
	failed bool // somebody should have been asked and did not answer
}

// document gathers what there is to show.
func (m *models) document(ctx context.Context) (*modelsDocument, error) {
	d := &modelsDocument{Catalogue: catalogueDocument{Written: m.config.Catalogue.Written, Sources: m.config.Catalogue.Sources}, Providers: []providerDocument{},
		single: m.only != ""}
	kinds := provider.Kinds()
	kind, name, _ := strings.Cut(m.only, "/")
	if m.only != "" {
		kind = strings.ToLower(kind)
		if !slices.Contains(kinds, kind) || name == "" {
			return nil, fmt.Errorf("%q is no model of a provider; write %s/NAME", line(m.only, 60), strings.Join(kinds, "/NAME or "))
		}
		kinds = []string{kind}
	}
	d.Providers = make([]providerDocument, len(kinds))
	var wg sync.WaitGroup
	for i, kind := range kinds {
		wg.Go(func() { d.Providers[i] = m.provider(ctx, kind, name) })
	}
	wg.Wait()
	asked := slices.ContainsFunc(d.Providers, func(p providerDocument) bool { return p.Asked })
	m.failed = m.ask && !asked || slices.ContainsFunc(d.Providers, func(p providerDocument) bool { return p.Asked && p.Problem != "" })
	return d, nil
}

// provider is what is known of one provider, and of the one model that only names, if it does.
func (m *models) provider(ctx context.Context, kind, only string) providerDocument {
	p := providerDocument{Provider: kind, Models: []modelDocument{}}
	place, err := provider.Where(m.config, kind)
	if err != nil {
		p.Problem = m.mask.Text(line(err.Error(), 300))
	}
	p.Configured, p.Endpoint, p.Own, p.Key = err == nil, place.Origin, place.Own, place.Key
	var listed map[string]provider.Listed
	if m.ask && p.Configured {
		p.Asked = true
		if listed, err = m.listed(ctx, kind); err != nil {
			p.Problem = m.mask.Text(line(plainModel(err), 600))
		}
	}
	for _, name := range m.names(kind, only, p, listed) {
		e, known := m.config.Catalogue.Find(kind, name)
		if p.Configured && !p.Own {
			e = e.Elsewhere()
		}
		doc := newModelDocument(e, known)
		if listed != nil {
			l, has := listed[name]
			doc.Listed = &has
			doc.hear(l)
		}
		doc.Name = m.mask.Text(doc.Name)
		p.Models = append(p.Models, doc)
	}
	return p
}

// names are the models to show of a provider, the one in use among them.
func (m *models) names(kind, only string, p providerDocument, listed map[string]provider.Listed) (names []string) {
	switch {
	case only != "":
		return []string{only}
	case !p.Configured || p.Asked && listed == nil:
		return nil
	case p.Asked:
		for name := range listed {
			names = append(names, name)
		}
		slices.Sort(names)
	default:
		names = m.config.Catalogue.Names(kind)
	}
	if id, err := provider.Check(m.config); err == nil && id.Provider == kind && !slices.Contains(names, id.Name) {
		names = append([]string{id.Name}, names...)
	}
	return names
}

func (m *models) listed(ctx context.Context, kind string) (map[string]provider.Listed, error) {
	ctx, cancel := context.WithTimeout(ctx, m.within)
	defer cancel()
	all, err := provider.List(ctx, m.config, kind)
	if err != nil {
		return nil, err
	}
	out := map[string]provider.Listed{}
	for _, l := range all {
		out[l.Name] = l
	}
	return out, nil
}

// plainModel leaves out how errors of models are sorted.
func plainModel(err error) string {
	var me *session.ModelError
	if errors.As(err, &me) {
		return me.Message
	}
	return err.Error()
}

// inUse is the model that a session begun here and now would have, and what chose it.
func (m *models) inUse(home string, flag bool) inUseDocument {
	d := inUseDocument{Origin: config.Origin{From: config.FromDefault}}
	id, err := provider.Check(m.config)
	if err != nil {
		d.Problem = m.mask.Text(line(err.Error(), 300))
	} else {
		d.Model = id.Provider + "/" + id.Name
	}
	file, err := userFile(home)
	if err != nil {
		file = config.File{}
	}
	given := config.Given{Getenv: os.LookupEnv}
	if flag {
		given.Flags = map[string]string{"--model": m.config.Model}
	}
	for _, s := range config.Settings(file, config.File{}, given) {
		if s.Path == "model.name" {
			d.Origin = s.Origin
		}
	}
	if d.Origin.From == config.FromDefault && d.Model != "" { // whose key is set
		d.Origin.Name = strings.ToUpper(id.Provider) + "_API_KEY"
	}
	return d
}
