package provider

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/anthropics/anthropic-sdk-go/v2"
	anthropicoption "github.com/anthropics/anthropic-sdk-go/v2/option"
	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

	"holdfast/session"
)

// Kinds are the providers behind HTTP, in the order in which they are listed.
func Kinds() []string { return []string{"openai", "anthropic"} }

// homes are where each provider is asked when nobody says otherwise, and how the names of its variables begin.
var homes = map[string]struct{ owner, base string }{"openai": {"OPENAI", openAIBase}, "anthropic": {"ANTHROPIC", anthropicBase}}

// Place is where a provider is asked.
type Place struct {
	Origin string // scheme, host and port
	Own    bool   // it is the provider's own endpoint
	Key    bool   // there is a key for it
}

// Where says where a provider is asked, without asking. Like Resolve it fails with NotConfiguredError when it needs a key.
func Where(c Config, kind string) (Place, error) {
	home := homes[kind]
	at, err := reach(c, home.owner, home.base, "provider "+kind)
	if err != nil {
		return Place{}, err
	}
	u, err := parseBase(at.base)
	if err != nil {
		return Place{}, err
	}
	own, err := parseBase(home.base)
	if err != nil {
		return Place{}, err
	}
	return Place{Origin: originOf(u), Own: originOf(u) == originOf(own), Key: at.key != ""}, nil
}

// Listed is a model that an endpoint says it has. What it does not say is 0.
type Listed struct {
	Name            string
	Context, Output int64
}

// Bounds of a list.
const (
	mostListed = 10_000
	pagesAsked = 20
	listLen    = 8 << 20 // bytes of one page
)

// List asks an endpoint which models it has. It runs no model. The context bounds how long it may take.
func List(ctx context.Context, c Config, kind string) ([]Listed, error) {
	home := homes[kind]
	at, err := reach(c, home.owner, home.base, "provider "+kind)
	if err != nil {
		return nil, err
	}
	e, err := newEndpoint(kind, home.base, EndpointConfig{Model: "list", BaseURL: at.base, Key: at.key, Token: at.token, CredKey: []byte("list"), Limits: c.Limits, Now: c.Now})
	if err != nil {
		return nil, fmt.Errorf("ask %s: %w", kind, err)
	}
	defer e.Close()
	ask := e.listOpenAI
	if kind == "anthropic" {
		ask = e.listAnthropic
	}
	all, err := ask(ctx)
	if err != nil {
		return nil, e.unlisted(ctx, err)
	}
	return e.listed(all), nil
}

func (e *endpoint) listOpenAI(ctx context.Context) (all []Listed, err error) {
	opts := []option.RequestOption{option.WithBaseURL(e.base), option.WithMaxRetries(0), option.WithHTTPClient(e.client()), option.WithMiddleware(e.onePage)}
	if e.config.Key != "" {
		opts = append(opts, option.WithAPIKey(e.config.Key))
	}
	service := openai.NewModelService(opts...)
	page, err := service.List(ctx) // this wire has one page
	if err != nil {
		return nil, err
	}
	for _, m := range page.Data {
		all = append(all, Listed{Name: m.ID})
	}
	return all, nil
}

func (e *endpoint) listAnthropic(ctx context.Context) (all []Listed, err error) {
	opts := []anthropicoption.RequestOption{anthropicoption.WithBaseURL(e.base), anthropicoption.WithMaxRetries(0), anthropicoption.WithHTTPClient(e.client()),
		anthropicoption.WithoutOpenTelemetry(), anthropicoption.WithMiddleware(e.onePage)}
	service := anthropic.NewModelService(append(opts, e.anthropicKey()...)...)
	page, err := service.List(ctx, anthropic.ModelListParams{Limit: anthropic.Int(1000)})
	for range pagesAsked { // an endpoint that always has more would never end
		if err != nil || page == nil {
			break
		}
		for _, m := range page.Data {
			all = append(all, Listed{Name: m.ID, Context: max(m.MaxInputTokens, 0), Output: max(m.MaxTokens, 0)})
		}
		page, err = page.GetNextPage()
	}
	return all, err
}

// onePage looks at an answer before the SDK does: a refusal becomes our error, and what is no list is not taken for an empty one.
func (e *endpoint) onePage(req *http.Request, next func(*http.Request) (*http.Response, error)) (*http.Response, error) {
	res, err := next(req)
	if err != nil {
		return res, err
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode != http.StatusOK {
		return nil, e.refused(res)
	}
	body, err := io.ReadAll(io.LimitReader(res.Body, listLen+1))
	if err != nil {
		return nil, err
	}
	var list struct {
		Data []json.RawMessage `json:"data"`
	}
	bad := &session.ModelError{Kind: session.ModelBadRequest, Status: res.StatusCode}
	switch {
	case len(body) > listLen:
		bad.Message = "the endpoint's list of models is too long"
	case isMarkup(body):
		bad.Message = "the endpoint answered with a web page instead of its models; check the base URL"
	case json.Unmarshal(body, &list) != nil || list.Data == nil:
		bad.Message = "the endpoint answered with something that is no list of models"
	default:
		res.Body = io.NopCloser(bytes.NewReader(body))
		res.Header.Set("Content-Type", "application/json") // it is, whatever it is called
		return res, nil
	}
	return nil, bad
}

// listed is a list fit to be shown: no name twice, none that is empty, none that holds a key.
func (e *endpoint) listed(all []Listed) []Listed {
	out := []Listed{}
	seen := map[string]bool{}
	for _, m := range all {
		m.Name = clip(e.safe(m.Name), 200)
		if m.Name == "" || seen[m.Name] || len(out) == mostListed {
			continue
		}
		seen[m.Name] = true
		out = append(out, m)
	}
	slices.SortFunc(out, func(a, b Listed) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// unlisted says plainly why there is no list.
func (e *endpoint) unlisted(ctx context.Context, err error) error {
	var refusal *session.ModelError
	switch {
	case errors.As(err, &refusal):
		return refusal
	case errors.Is(ctx.Err(), context.Canceled):
		return ctx.Err()
	case ctx.Err() != nil:
		return &session.ModelError{Kind: session.ModelNetwork, Message: e.identity.Origin + " did not answer in time"}
	}
	return &session.ModelError{Kind: session.ModelNetwork, Message: e.describe(err)}
}
