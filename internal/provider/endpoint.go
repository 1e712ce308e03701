package provider

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"holdfast/session"
)

// EndpointConfig says which endpoint to talk to and how long to wait for it.
type EndpointConfig struct {
	Model     string
	BaseURL   string // "" means the provider itself; otherwise http or https
	Key       string // "" sends no credential
	Token     bool   // messages wire: the key is a token, which has a header of its own
	CredKey   []byte // key of the credential's hash in the identity; needed when Key is set
	MaxTokens int64  // output limit of one answer; 0 means the provider's default
	TextOnly  bool   // the model takes no images; it is told of them
	Dialect   string // chat completions: name of the server's dialect; "" means that of its address
	effort    effort // how it can be told how much to think
	Limits    Limits
	Now       func() time.Time // nil means time.Now; used for Retry-After dates only
}

// Limits bounds how long an endpoint may be silent. A zero field takes its default.
type Limits struct {
	Connect time.Duration // TCP and TLS, each; default 30 s
	Header  time.Duration // from sending the request to the response headers, refusals included; default 120 s
	Idle    time.Duration // between two chunks; what only keeps a connection alive does not count as a chunk; default 120 s
}

// afterEnd is how long the rest of a stream may take once the answer is complete.
const afterEnd = 5 * time.Second

// endpoint is what every provider behind HTTP has: whom it talks to, how long it waits and how it tells a failure.
type endpoint struct {
	config   EndpointConfig
	identity session.ModelIdentity
	base     string
	http     *http.Transport
}

func newEndpoint(provider, defaultBase string, config EndpointConfig) (*endpoint, error) {
	if config.BaseURL == "" {
		config.BaseURL = defaultBase
	}
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
	return &endpoint{config: config, base: base.String(), http: transport(config.Limits),
		identity: session.ModelIdentity{Provider: provider, Name: config.Model, Origin: originOf(base), Credential: credential(config.CredKey, config.Key)}}, nil
}

// client follows no redirect (I1).
func (e *endpoint) client() *http.Client { return &http.Client{Transport: e.http, CheckRedirect: stay} }

// Identity implements session.Model.
func (e *endpoint) Identity() session.ModelIdentity { return e.identity }

// Close drops connections kept for later requests. Running requests are not touched.
func (e *endpoint) Close() { e.http.CloseIdleConnections() }

// exchange is what came back for a request: nothing, a refusal or a stream.
type exchange struct {
	refusal *session.ModelError
	body    *wireBody
}

// check looks at a response before the SDK does: a refusal becomes our error while its headers and body are at hand, and the body
// of a stream is watched.
func (e *endpoint) check(x *exchange, req *http.Request, next func(*http.Request) (*http.Response, error)) (*http.Response, error) {
	res, err := next(req)
	if err != nil {
		return res, err
	}
	if res.StatusCode != http.StatusOK {
		defer func() { _ = res.Body.Close() }()
		x.refusal = e.refused(res)
		return nil, x.refusal
	}
	x.body = &wireBody{rc: res.Body}
	res.Body = x.body
	return res, nil
}

// reading is one streaming answer, whatever its wire.
type reading struct {
	next  func() bool                     // reads one chunk; false at the end, whichever it is
	take  func() ([]session.Delta, error) // what the user may see of the chunk
	ended func() bool                     // the end mark arrived
}

// read passes an answer on until its stream ends. How it ended is for the caller to see.
func (e *endpoint) read(dog *watchdog, x *exchange, r reading, onDelta func(session.Delta) error) error {
	for {
		if r.ended() {
			dog.arm(min(afterEnd, e.config.Limits.Idle), "did not close the stream")
		} else if x.body != nil {
			dog.arm(e.config.Limits.Idle, "sent nothing more")
		}
		if !r.next() {
			return nil
		}
		dog.disarm()
		deltas, err := r.take()
		if err != nil {
			return err
		}
		for _, d := range deltas {
			if err := onDelta(d); err != nil {
				return err
			}
		}
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
