package provider

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

	"holdfast/session"
)

// openAIBase is the endpoint when none is configured.
const openAIBase = "https://api.openai.com/v1/"

// OpenAIConfig says which endpoint to talk to and how long to wait for it.
type OpenAIConfig struct {
	Model     string
	BaseURL   string // "" means OpenAI itself; otherwise http or https, with the version part of the path
	Key       string // "" sends no Authorization header
	CredKey   []byte // key of the credential's hash in the identity; needed when Key is set
	MaxTokens int64  // 0 leaves the output limit to the endpoint
	Limits    Limits
	Now       func() time.Time // nil means time.Now; used for Retry-After dates only
}

// Limits bounds how long an endpoint may be silent. A zero field takes its default.
type Limits struct {
	Connect time.Duration // TCP and TLS, each; default 30 s
	Header  time.Duration // from sending the request to the response headers, refusals included; default 120 s
	Idle    time.Duration // between two chunks; comments that keep a connection alive do not count as chunks; default 120 s
}

// afterEnd is how long the rest of a stream may take once the answer is complete.
const afterEnd = 5 * time.Second

// OpenAI answers through the chat completions wire. It may be used by several goroutines at once.
type OpenAI struct {
	config   OpenAIConfig
	identity session.ModelIdentity
	service  openai.ChatCompletionService
	http     *http.Transport
}

// NewOpenAI checks the configuration. It makes no request.
func NewOpenAI(config OpenAIConfig) (*OpenAI, error) {
	base, err := parseBase(config.BaseURL)
	if err != nil {
		return nil, err
	}
	if config.Model == "" {
		return nil, errors.New("the model has no name")
	}
	if config.Key != "" && len(config.CredKey) == 0 {
		return nil, errors.New("a credential needs a key for its hash")
	}
	if config.Now == nil {
		config.Now = time.Now
	}
	config.Limits = config.Limits.withDefaults()
	m := &OpenAI{config: config, identity: session.ModelIdentity{Provider: "openai", Name: config.Model, Origin: originOf(base),
		Credential: credential(config.CredKey, config.Key)}}
	m.http = transport(config.Limits)
	opts := []option.RequestOption{
		option.WithBaseURL(base.String()),
		option.WithMaxRetries(0),
		option.WithHTTPClient(&http.Client{Transport: m.http, CheckRedirect: stay}),
	}
	if config.Key != "" {
		opts = append(opts, option.WithAPIKey(config.Key))
	}
	// The service, not the client: the client would read addresses, keys and headers from the environment.
	m.service = openai.NewChatCompletionService(opts...)
	return m, nil
}

// Identity implements session.Model.
func (m *OpenAI) Identity() session.ModelIdentity { return m.identity }

// Close drops connections kept for later requests. Running requests are not touched.
func (m *OpenAI) Close() { m.http.CloseIdleConnections() }

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
	stream := m.service.NewStreaming(dog.ctx, params, option.WithMiddleware(m.check(&x)))
	defer func() { _ = stream.Close() }()

	a := newAnswer()
	for {
		if a.ended() {
			dog.arm(min(afterEnd, m.config.Limits.Idle), "did not close the stream")
		} else if x.body != nil {
			dog.arm(m.config.Limits.Idle, "sent nothing more")
		}
		if !stream.Next() {
			break
		}
		dog.disarm()
		deltas, err := a.add(stream.Current())
		if err != nil {
			return session.ModelResponse{}, err
		}
		for _, d := range deltas {
			if err := onDelta(d); err != nil {
				return session.ModelResponse{}, err
			}
		}
	}
	if !a.ended() && !(a.finish != "" && x.body != nil && x.body.done) {
		return session.ModelResponse{}, m.broken(ctx, dog, x, stream.Err())
	}
	return a.response(newCallIDs(req.Messages))
}

// exchange is what came back for a request: nothing, a refusal or a stream.
type exchange struct {
	refusal *session.ModelError
	body    *wireBody
}

// check looks at a response before the SDK does: a refusal becomes our error while its headers and body are at hand, and the body
// of a stream is watched.
func (m *OpenAI) check(x *exchange) option.Middleware {
	return func(req *http.Request, next option.MiddlewareNext) (*http.Response, error) {
		res, err := next(req)
		if err != nil {
			return res, err
		}
		if res.StatusCode != http.StatusOK {
			defer func() { _ = res.Body.Close() }()
			x.refusal = m.refused(res)
			return nil, x.refusal
		}
		x.body = &wireBody{rc: res.Body}
		res.Body = x.body
		return res, nil
	}
}

func (l Limits) withDefaults() Limits {
	for _, f := range []struct {
		field *time.Duration
		value time.Duration
	}{{&l.Connect, 30 * time.Second}, {&l.Header, 120 * time.Second}, {&l.Idle, 120 * time.Second}} {
		if *f.field <= 0 {
			*f.field = f.value
		}
	}
	return l
}

func transport(l Limits) *http.Transport {
	dialer := &net.Dialer{Timeout: l.Connect, KeepAlive: 30 * time.Second}
	return &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		DialContext:         dialer.DialContext,
		TLSHandshakeTimeout: l.Connect,
		ForceAttemptHTTP2:   true,
		IdleConnTimeout:     90 * time.Second,
	}
}

// stay keeps a redirect as the answer: following it would send the request, and perhaps the key, somewhere nobody configured (I1).
func stay(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// parseBase accepts only addresses that can be shown and stored: credentials belong into the key.
func parseBase(base string) (*url.URL, error) {
	if base == "" {
		base = openAIBase
	}
	u, err := url.Parse(base)
	switch {
	case err != nil:
		return nil, errors.New("the base URL cannot be parsed") // the cause would repeat the address, which may hold a password
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return nil, errors.New("the base URL must have no user, query or fragment")
	case u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "":
		return nil, fmt.Errorf("the base URL %q is not an http or https address", u.Redacted())
	}
	return u, nil
}

// originOf is scheme://host[:port] in one spelling, without the scheme's own port.
func originOf(u *url.URL) string {
	host := strings.ToLower(u.Host)
	if p := u.Port(); p == "" || u.Scheme == "http" && p == "80" || u.Scheme == "https" && p == "443" {
		host = strings.TrimSuffix(strings.TrimSuffix(host, p), ":")
	}
	return u.Scheme + "://" + host
}

func isLoopback(u *url.URL) bool {
	host := strings.TrimSuffix(strings.ToLower(u.Hostname()), ".")
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}
