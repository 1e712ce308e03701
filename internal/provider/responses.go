package provider

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/ssestream"

	"holdfast/session"
)

// Responses answers through OpenAI's responses wire. It may be used by several goroutines at once.
type Responses struct {
	*endpoint
	client  openai.Client
	dialect dialect
}

// responseEvent is what is read of an event. The SDK's own type has the members of some fifty kinds, and decoding it takes twice the time.
type responseEvent struct {
	Type        string          `json:"type"`
	OutputIndex int64           `json:"output_index"`
	Delta       json.RawMessage `json:"delta"`
	Arguments   string          `json:"arguments"`
	Item        json.RawMessage `json:"item"`
	Response    finalResponse   `json:"response"`
	Code        json.RawMessage `json:"code"`
	Message     json.RawMessage `json:"message"`
}

// finalResponse is what is read of the terminal event.
type finalResponse struct {
	Status     string          `json:"status"`
	Error      json.RawMessage `json:"error"`
	Incomplete struct {
		Reason string `json:"reason"`
	} `json:"incomplete_details"`
	Output []struct {
		Type string `json:"type"`
	} `json:"output"`
	Usage responseUsage `json:"usage"`
}

// NewResponses checks the configuration. It makes no request.
func NewResponses(config OpenAIConfig) (*Responses, error) {
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
	e.identity.API = "responses"
	// Not the SDK's NewClient: it would read addresses, keys and headers from the environment.
	return &Responses{endpoint: e, client: openai.Client{Options: openAIOptions(e)}, dialect: d}, nil
}

// Stream implements session.Model.
func (m *Responses) Stream(ctx context.Context, req session.ModelRequest, onDelta func(session.Delta) error) (session.ModelResponse, error) {
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
	var res *http.Response
	err = m.client.Post(dog.ctx, "responses", params, &res, option.WithJSONSet("stream", true),
		option.WithMiddleware(func(r *http.Request, next option.MiddlewareNext) (*http.Response, error) { return m.check(&x, r, next) }))
	stream := ssestream.NewStream[responseEvent](ssestream.NewDecoder(res), err)
	defer func() { _ = stream.Close() }()

	a := newItems()
	err = m.read(dog, &x, reading{next: stream.Next, ended: a.ended, take: func() ([]session.Delta, error) { return a.add(stream.Current()) }}, onDelta)
	switch {
	case err != nil:
		return session.ModelResponse{}, err
	case !a.ended():
		return session.ModelResponse{}, m.broken(ctx, dog, x, stream.Err(), errorEvent(stream.Err()))
	case a.failed != nil:
		return session.ModelResponse{}, m.event(a.failed)
	}
	resp, err := a.response(newCallIDs(req.Messages))
	if resp.Native != nil {
		resp.Native.Provider, resp.Native.Model, resp.Native.Before = m.identity.Provider, m.identity.Name, m.reader()
	}
	return resp, err
}

// reader names who can read the reasoning that this endpoint encrypts: the same address, asked with the same credential.
func (m *Responses) reader() string {
	sum := sha256.Sum256([]byte("responses " + m.identity.Origin + " " + m.identity.Credential))
	return hex.EncodeToString(sum[:16])
}
