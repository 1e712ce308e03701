package provider

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"holdfast/session"
)

// complaint is what a provider says about a request, in whichever of the usual shapes.
type complaint struct {
	message string
	code    string // "code", else "type"
	kind    string // "type"
	inner   map[string]json.RawMessage
}

// refused turns a response other than 200 into an error. The caller closes the body.
func (e *endpoint) refused(res *http.Response) *session.ModelError {
	// A body that breaks off or stalls is no reason to lose the status.
	body, _ := io.ReadAll(io.LimitReader(res.Body, pageLen))
	me := &session.ModelError{Kind: kindOfStatus(res.StatusCode), Status: res.StatusCode}
	if res.StatusCode < 400 {
		me.Kind = session.ModelBadRequest
		me.Message = "the endpoint redirects the request" + e.target(res) + "; set the base URL to the final address"
		return me
	}
	c, ok := readComplaint(body)
	if kind := c.lasting(res.StatusCode); kind != "" {
		me.Kind = kind
	}
	tellLimit(me, res.Header, c, e.config.Now())
	me.Native = me.Kind == session.ModelBadRequest && c.native()
	switch {
	case ok && c.message != "":
		me.Message = e.safe(c.message)
	case isMarkup(body):
		me.Message = fmt.Sprintf("the endpoint answered %s with a web page; a proxy may stand in front of it", statusText(res.StatusCode))
	case len(strings.TrimSpace(string(body))) > 0:
		me.Message = e.safe(string(body))
	default:
		me.Message = "the endpoint answered " + statusText(res.StatusCode)
	}
	return me
}

// target names where a redirect leads, by origin only.
func (e *endpoint) target(res *http.Response) string {
	u, err := res.Location()
	if err != nil || u.Host == "" {
		return ""
	}
	return " to " + e.safe(originOf(u))
}

// broken says why a stream ended without its end mark. event is the data of an error event, if one came.
func (e *endpoint) broken(ctx context.Context, dog *watchdog, x exchange, err error, event []byte) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if x.refusal != nil { // also when its body then stalled
		return x.refusal
	}
	var quiet *silence
	if errors.As(context.Cause(dog.ctx), &quiet) {
		return &session.ModelError{Kind: session.ModelNetwork, Message: quiet.Error()}
	}
	switch {
	case x.body == nil:
		return &session.ModelError{Kind: session.ModelNetwork, Message: e.describe(err), Err: err}
	case event != nil:
		return e.event(event)
	case x.body.page:
		return e.page(x.body.head)
	case x.body.err != nil:
		return &session.ModelError{Kind: session.ModelNetwork, Message: "the connection broke in the middle of the answer", Err: x.body.err}
	case err != nil:
		// The cause may repeat what the provider sent, so it is not kept.
		return &session.ModelError{Kind: session.ModelCutOff, Message: "the endpoint sent a chunk that cannot be read"}
	}
	return &session.ModelError{Kind: session.ModelCutOff, Message: "the endpoint closed the stream before the answer's end mark"}
}

// event is an error that came inside a stream that began well. Tokens may be spent, so it has no refusing status (I5).
func (e *endpoint) event(data []byte) *session.ModelError {
	me := &session.ModelError{Kind: session.ModelOverloaded, Status: http.StatusOK, Message: "the endpoint ended the answer with an error"}
	c, _ := readComplaint(data)
	if c.message != "" {
		me.Message = e.safe(c.message)
	}
	if status, err := strconv.Atoi(c.code); err == nil && status >= 400 && status < 600 {
		me.Kind = kindOfStatus(status)
	}
	switch c.kind {
	case "invalid_request_error":
		me.Kind = session.ModelBadRequest
	case "authentication_error", "permission_error", "billing_error":
		me.Kind = session.ModelAuth
	case "not_found_error":
		me.Kind = session.ModelNotFound
	case "request_too_large":
		me.Kind = session.ModelOverflow
	case "rate_limit_error":
		me.Kind = session.ModelRateLimit
	}
	if c.code == "rate_limit_exceeded" {
		me.Kind = session.ModelRateLimit
	}
	if strings.HasPrefix(c.code, "invalid_") || strings.HasPrefix(c.code, "image_") || strings.HasSuffix(c.code, "_image") { // of what was asked
		me.Kind = session.ModelBadRequest
	}
	if kind := c.lasting(http.StatusBadRequest); kind != "" {
		me.Kind = kind
	}
	tellLimit(me, nil, c, e.config.Now())
	me.Native = me.Kind == session.ModelBadRequest && c.native()
	return me
}

// page is a body that is no event stream although the status was 200.
func (e *endpoint) page(head []byte) *session.ModelError {
	if c, ok := readComplaint(head); ok && c.message != "" {
		return e.event(head)
	}
	what := "one JSON document instead of a stream"
	if isMarkup(head) {
		what = "a web page"
	}
	return &session.ModelError{Kind: session.ModelBadRequest, Status: http.StatusOK,
		Message: "the endpoint answered with " + what + "; check the base URL"}
}

// describe says what is wrong with a connection, without addresses that may hold secrets.
func (e *endpoint) describe(err error) string {
	host := e.identity.Origin
	var dns *net.DNSError
	var cert *tls.CertificateVerificationError
	var timeout net.Error
	var where *url.Error
	switch {
	case errors.As(err, &dns):
		return "the name of " + host + " cannot be resolved"
	case errors.As(err, &cert):
		return "the certificate of " + host + " is not trusted"
	case errors.Is(err, syscall.ECONNREFUSED):
		return host + " refuses connections"
	case errors.As(err, &timeout) && timeout.Timeout():
		return host + " could not be reached in time"
	case errors.As(err, &where):
		return "no answer from " + host + ": " + e.safe(where.Err.Error())
	case err == nil:
		return "no answer from " + host
	}
	return "no answer from " + host + ": " + e.safe(err.Error())
}

func kindOfStatus(status int) session.ModelErrorKind {
	switch {
	case status == http.StatusTooManyRequests:
		return session.ModelRateLimit
	case status == http.StatusRequestTimeout, status == http.StatusConflict, status >= 500:
		return session.ModelOverloaded
	case status == http.StatusUnauthorized, status == http.StatusForbidden, status == http.StatusPaymentRequired:
		return session.ModelAuth
	case status == http.StatusNotFound:
		return session.ModelNotFound
	case status == http.StatusRequestEntityTooLarge:
		return session.ModelOverflow
	}
	return session.ModelBadRequest
}

// overflowPhrases are what servers that have no code for it say when a request is too long.
var overflowPhrases = []string{"context length", "context window", "context size", "context_length", "prompt is too long",
	"too many tokens", "maximum number of tokens"}

// lasting finds what a person must change, whatever the status suggests: a request that is too long, an account without credit
// (some send 429 for it, but no waiting helps), a model that does not exist.
func (c complaint) lasting(status int) session.ModelErrorKind {
	switch c.code {
	case "context_length_exceeded", "exceed_context_size_error":
		return session.ModelOverflow
	case "insufficient_quota", "billing_hard_limit_reached", "invalid_api_key":
		return session.ModelAuth
	case "model_not_found":
		return session.ModelNotFound
	}
	if status == http.StatusBadRequest || status == http.StatusUnprocessableEntity {
		lower := strings.ToLower(c.message)
		for _, p := range overflowPhrases {
			if strings.Contains(lower, p) {
				return session.ModelOverflow
			}
		}
	}
	return ""
}

// nativePhrases are what services without a code for it say when they do not take back the reasoning that they gave: each in all its words.
var nativePhrases = [][]string{
	{"invalid", "signature", "thinking"}, {"invalid", "data", "redacted_thinking"}, {"thinking", "cannot be modified"},
	{"'reasoning'", "without its required"}, {"required 'reasoning' item"}, {"encrypted content", "could not be"},
}

// native tells whether the complaint is about the native form of an earlier answer: its key is gone, or its signature holds for something else.
func (c complaint) native() bool {
	if c.code == "invalid_encrypted_content" {
		return true
	}
	lower := strings.ToLower(c.message)
	for _, words := range nativePhrases {
		if !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(lower, w) }) {
			return true
		}
	}
	return false
}

// readComplaint reads the shapes in use: {"error":{"message","code","type"}}, {"error":"text"}, {"message":…}, {"detail":…}.
func readComplaint(body []byte) (complaint, bool) {
	var outer map[string]json.RawMessage
	if json.Unmarshal(body, &outer) != nil {
		return complaint{}, false
	}
	inner := outer
	if raw, ok := outer["error"]; ok {
		if text := scalar(raw); text != "" {
			return complaint{message: text}, true
		}
		inner = nil
		if json.Unmarshal(raw, &inner) != nil {
			return complaint{}, false
		}
	}
	c := complaint{code: scalar(inner["code"]), kind: scalar(inner["type"]), inner: inner}
	for _, name := range []string{"message", "detail"} {
		if c.message == "" {
			c.message = scalar(inner[name])
		}
	}
	if c.code == "" {
		c.code = c.kind
	}
	return c, true
}

// scalar is the text of a JSON string or number, else "".
func scalar(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	var n json.Number
	if json.Unmarshal(raw, &n) == nil {
		return n.String()
	}
	return ""
}

func statusText(status int) string {
	return strings.TrimSpace(strconv.Itoa(status) + " " + http.StatusText(status))
}
