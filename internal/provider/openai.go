package provider

import (
	"context"
	"errors"
	"net/http"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/ssestream"

	"holdfast/session"
)

// openAIBase is the endpoint when none is configured.
const openAIBase = "https://api.openai.com/v1/"

// OpenAIConfig says which endpoint to talk to. Its base URL holds the version part of the path.
type OpenAIConfig = EndpointConfig

// OpenAI answers through the chat completions wire. It may be used by several goroutines at once.
type OpenAI struct {
	*endpoint
	service openai.ChatCompletionService
	dialect dialect
}

// NewOpenAI checks the configuration. It makes no request.
func NewOpenAI(config OpenAIConfig) (*OpenAI, error) {
	e, err := newEndpoint("openai", openAIBase, config)
	if err != nil {
		return nil, err
	}
	base, err := parseBase(e.base)
	if err != nil {
		return nil, err
	}
	d, err := dialectOf(config.Dialect, base)
	if err != nil {
		return nil, err
	}
	e.identity.API = "chat"
	// The service, not the client: the client would read addresses, keys and headers from the environment.
	return &OpenAI{endpoint: e, service: openai.NewChatCompletionService(openAIOptions(e)...), dialect: d}, nil
}

// openAIOptions are how the SDK asks the endpoint, on either wire: once, and with nothing from the environment.
func openAIOptions(e *endpoint) []option.RequestOption {
	opts := []option.RequestOption{option.WithBaseURL(e.base), option.WithMaxRetries(0), option.WithHTTPClient(e.client())}
	if e.config.Key != "" {
		opts = append(opts, option.WithAPIKey(e.config.Key))
	}
	return opts
}

// Stream implements session.Model.
func (m *OpenAI) Stream(ctx context.Context, req session.ModelRequest, onDelta func(session.Delta) error) (session.ModelResponse, error) {
	if err := ctx.Err(); err != nil {
		return session.ModelResponse{}, err
	}
	params, err := m.encode(req)
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

	a := newAnswer()
	err = m.read(dog, &x, reading{next: stream.Next, ended: a.ended, take: func() ([]session.Delta, error) { return a.add(stream.Current()) }}, onDelta)
	if err != nil {
		return session.ModelResponse{}, err
	}
	if !a.ended() && !(a.finish != "" && x.body != nil && x.body.done) {
		return session.ModelResponse{}, m.broken(ctx, dog, x, stream.Err(), errorEvent(stream.Err()))
	}
	return a.response(newCallIDs(req.Messages))
}

// errorEvent is the data of an error that came inside a stream; nil for other errors.
func errorEvent(err error) []byte {
	var event *ssestream.StreamError
	if errors.As(err, &event) {
		return event.Event.Data
	}
	return nil
}
