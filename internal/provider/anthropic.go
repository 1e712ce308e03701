package provider

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/anthropics/anthropic-sdk-go/v2"
	"github.com/anthropics/anthropic-sdk-go/v2/option"

	"holdfast/session"
)

// anthropicBase is the endpoint when none is configured. The version is part of the path that the SDK adds.
const anthropicBase = "https://api.anthropic.com/"

// anthropicMaxTokens is sent when nobody chose a limit, because the wire demands one. Every model since the fourth generation takes
// it, and one answer with its reasoning, which counts as well, seldom needs more.
const anthropicMaxTokens = 32_000

// AnthropicConfig says which endpoint to talk to. Its base URL ends before the version part of the path.
type AnthropicConfig = EndpointConfig

// Anthropic answers through the messages wire. It may be used by several goroutines at once.
type Anthropic struct {
	*endpoint
	service anthropic.MessageService
}

// NewAnthropic checks the configuration. It makes no request.
func NewAnthropic(config AnthropicConfig) (*Anthropic, error) {
	e, err := newEndpoint("anthropic", anthropicBase, config)
	if err != nil {
		return nil, err
	}
	if e.config.MaxTokens <= 0 {
		e.config.MaxTokens = anthropicMaxTokens
	}
	opts := []option.RequestOption{option.WithBaseURL(e.base), option.WithMaxRetries(0), option.WithHTTPClient(e.client()), option.WithoutOpenTelemetry()}
	// The service, not the client: the client would read addresses, keys and profiles from the environment and from files.
	return &Anthropic{endpoint: e, service: anthropic.NewMessageService(append(opts, e.anthropicKey()...)...)}, nil
}

// anthropicKey says how the endpoint is shown the key. The provider itself gets it as the SDK sends it; others are asked as the wire is
// documented, with a header for keys and another one for tokens, because many know only one of them.
func (e *endpoint) anthropicKey() []option.RequestOption {
	own, err := parseBase(anthropicBase)
	switch {
	case e.config.Key == "":
		return nil
	case e.config.Token:
		return []option.RequestOption{option.WithAuthToken(e.config.Key)}
	case err == nil && e.identity.Origin == originOf(own):
		return []option.RequestOption{option.WithAPIKey(e.config.Key)}
	}
	return []option.RequestOption{option.WithHeader("X-Api-Key", e.config.Key)}
}

// Stream implements session.Model.
func (m *Anthropic) Stream(ctx context.Context, req session.ModelRequest, onDelta func(session.Delta) error) (session.ModelResponse, error) {
	if err := ctx.Err(); err != nil {
		return session.ModelResponse{}, err
	}
	params, before, err := m.encode(req)
	if err != nil {
		return session.ModelResponse{}, err
	}
	dog := newWatchdog(ctx)
	defer dog.stop()
	dog.arm(m.config.Limits.Header, "sent no response")
	var x exchange
	stream := m.service.NewStreaming(dog.ctx, params, option.WithMiddleware(func(r *http.Request, next option.MiddlewareNext) (*http.Response, error) {
		return m.check(&x, r, next)
	}))
	defer func() { _ = stream.Close() }()

	a := newBlocks()
	err = m.read(dog, &x, reading{next: stream.Next, ended: a.ended, take: func() ([]session.Delta, error) { return a.add(stream.Current()) }}, onDelta)
	if err != nil {
		return session.ModelResponse{}, err
	}
	if !a.ended() {
		return session.ModelResponse{}, m.broken(ctx, dog, x, stream.Err(), anthropicEvent(stream.Err()))
	}
	resp, err := a.response(newCallIDs(req.Messages))
	if resp.Native != nil {
		resp.Native.Provider, resp.Native.Model, resp.Native.Before = m.identity.Provider, m.identity.Name, before
	}
	return resp, err
}

// anthropicEvent is the data of an error that came inside a stream; nil for other errors.
func anthropicEvent(err error) []byte {
	var event *anthropic.Error
	if errors.As(err, &event) {
		return []byte(event.RawJSON())
	}
	return nil
}

// fixedThinking are the beginnings of the names of models from before adaptive reasoning, which refuse to be asked for it.
var fixedThinking = []string{"claude-2", "claude-3", "claude-instant", "claude-opus-4-0", "claude-opus-4-1", "claude-opus-4-2", "claude-opus-4-5",
	"claude-sonnet-4-0", "claude-sonnet-4-2", "claude-sonnet-4-5", "claude-haiku-4-5"}

// adapts tells whether a model takes the request to think as much as it finds right and to show a summary of that. Left out, newer
// models think all the same and show nothing, which to the user looks like a stall. Models of others that speak this wire are not
// asked.
func adapts(model string) bool {
	if !strings.HasPrefix(model, "claude-") {
		return false
	}
	for _, old := range fixedThinking {
		if strings.HasPrefix(model, old) {
			return false
		}
	}
	return true
}
