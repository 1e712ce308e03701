package provider

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"holdfast/session"
	"holdfast/usage"
)

// Bounds of a rule: generous for tests, small enough that a slip of the pen does not hang a session.
const (
	maxDelay  = 10 * time.Minute
	maxChunks = 100_000
)

// script reads a script and knows the line it is at. encoding/json would name neither the line of an unknown member nor a member
// that comes twice.
type script struct {
	data []byte
	dec  *json.Decoder
}

// members says how each member of an object is read. A member that is not in it is refused.
type members map[string]func() error

func parseScript(data []byte) ([]rule, error) {
	s := &script{data: data, dec: json.NewDecoder(bytes.NewReader(data))}
	s.dec.UseNumber()
	var rules []rule
	seen := false
	err := s.object(members{"rules": func() error {
		seen = true
		return s.array(func() error {
			r, err := s.rule()
			rules = append(rules, r)
			return err
		})
	}})
	if err != nil {
		return nil, err
	}
	if !seen {
		return nil, errors.New(`line 1: the member "rules" is missing`)
	}
	if _, err := s.dec.Token(); !errors.Is(err, io.EOF) {
		return nil, s.fail("something follows the script")
	}
	return rules, nil
}

func (s *script) rule() (rule, error) {
	r := rule{chunks: 1}
	start := s.at()
	var delay, says int
	var cut bool
	err := s.object(members{
		"when":     func() error { return s.when(&r.when) },
		"say":      func() error { says++; return s.text(&r.say) },
		"think":    func() error { says++; return s.text(&r.think) },
		"calls":    func() error { says++; return s.calls(&r.calls) },
		"delay_ms": func() error { return s.number(&delay, 0, int(maxDelay/time.Millisecond)) },
		"chunks":   func() error { return s.number(&r.chunks, 1, maxChunks) },
		"finish":   func() error { return s.finish(&r.finish) },
		"usage":    func() error { return s.usage(&r.usage) },
		"error":    func() error { says++; return s.fault(&r) },
		"cut_off":  func() error { says++; return s.value(&cut) },
	})
	if err != nil {
		return r, err
	}
	r.delay = time.Duration(delay) * time.Millisecond
	if problem := r.complete(cut, says); problem != "" {
		return r, fmt.Errorf("line %d: the rule that begins here %s", s.lineAt(start), problem)
	}
	return r, nil
}

// complete fills in what depends on several members, and says what is wrong with their combination.
func (r *rule) complete(cut bool, says int) string {
	switch {
	case says == 0:
		return "says nothing: it needs say, think, calls, error or cut_off"
	case cut && r.fault != nil:
		return "has both error and cut_off"
	case r.finish == session.FinishCalls && len(r.calls) == 0:
		return "finishes with tool_calls but has none"
	case len(r.calls) > 0 && r.finish != "" && r.finish != session.FinishCalls:
		return fmt.Sprintf("has calls, so it cannot finish with %s", r.finish)
	}
	if cut {
		r.fault = &session.ModelError{Kind: session.ModelCutOff, Message: "the script cuts the answer off here"}
	}
	if r.fault != nil && r.say+r.think != "" {
		r.fault.Status = 0 // the answer had begun, so the request was not refused
	}
	if r.finish == "" {
		r.finish = session.FinishStop
		if len(r.calls) > 0 {
			r.finish = session.FinishCalls
		}
	}
	return ""
}

func (s *script) when(c *condition) error {
	return s.object(members{
		"user":         func() error { return s.value(&c.user) },
		"last_result":  func() error { return s.value(&c.lastResult) },
		"contains":     func() error { return s.value(&c.contains) },
		"tools":        func() error { return s.value(&c.tools) },
		"results":      func() error { c.results = new(int); return s.number(c.results, 0, 1<<30) },
		"turn_results": func() error { c.turnResults = new(int); return s.number(c.turnResults, 0, 1<<30) },
		"users":        func() error { c.users = new(int); return s.number(c.users, 0, 1<<30) },
		"faults":       func() error { c.faults = new(int); return s.number(c.faults, 0, 1<<30) },
	})
}

func (s *script) calls(calls *[]scriptCall) error {
	return s.array(func() error {
		start := s.at()
		var c scriptCall
		err := s.object(members{
			"name": func() error { return s.value(&c.name) },
			"args": func() error { return s.args(&c) },
		})
		if err == nil && c.name == "" {
			return fmt.Errorf("line %d: the call that begins here has no name", s.lineAt(start))
		}
		*calls = append(*calls, c)
		return err
	})
}

func (s *script) args(c *scriptCall) error {
	var v any
	if err := s.value(&v); err != nil {
		return err
	}
	switch v := v.(type) {
	case string:
		c.text = &v
	case map[string]any:
		c.object = v
	default:
		return s.fail("args must be an object, or a text that is sent as it is")
	}
	var bad error
	eachString(v, func(text string) string {
		bad = errors.Join(bad, checkTemplates(text))
		return text
	})
	if bad != nil {
		return s.fail("%s", strings.ReplaceAll(bad.Error(), "\n", "; "))
	}
	return nil
}

func (s *script) finish(f *session.Finish) error {
	known := []session.Finish{session.FinishStop, session.FinishCalls, session.FinishLength, session.FinishRefusal}
	if err := s.value(f); err != nil {
		return err
	}
	if !slices.Contains(known, *f) {
		return s.fail("unknown finish %q: there are %v", *f, known)
	}
	return nil
}

func (s *script) usage(u *usage.Tokens) error {
	u.Known = true
	number := func(to func(int64)) func() error {
		return func() error {
			var n int
			err := s.number(&n, 0, 1<<40)
			to(int64(n))
			return err
		}
	}
	part := func(c *usage.Count) func() error { return number(func(n int64) { *c = usage.Of(n) }) }
	err := s.object(members{
		"inputTokens":      number(func(n int64) { u.Input = n }),
		"outputTokens":     number(func(n int64) { u.Output = n }),
		"cacheReadTokens":  part(&u.CacheRead),
		"cacheWriteTokens": part(&u.CacheWrite),
		"reasoningTokens":  part(&u.Reasoning),
	})
	if err == nil && usage.Report(max(u.Input, 1), u.Output, u.Parts).Parts != u.Parts {
		return s.fail("the parts of usage are more than the whole: cacheReadTokens and cacheWriteTokens are parts of inputTokens, " +
			"reasoningTokens is one of outputTokens")
	}
	return err
}

// faultStatus is the status that an endpoint refuses with, for each kind of error that is a refusal.
var faultStatus = map[session.ModelErrorKind]int{
	session.ModelCutOff:     0,
	session.ModelNetwork:    0,
	session.ModelRateLimit:  http.StatusTooManyRequests,
	session.ModelOverloaded: http.StatusServiceUnavailable,
	session.ModelAuth:       http.StatusUnauthorized,
	session.ModelNotFound:   http.StatusNotFound,
	session.ModelOverflow:   http.StatusBadRequest,
	session.ModelBadRequest: http.StatusBadRequest,
}

func (s *script) fault(r *rule) error {
	e := &session.ModelError{Message: "the script fails here"}
	var wait int
	err := s.object(members{
		"kind":           func() error { return s.value(&e.Kind) },
		"message":        func() error { return s.value(&e.Message) },
		"retry_after_ms": func() error { return s.number(&wait, 0, int(maxRetryAfter/time.Millisecond)) },
	})
	if err != nil {
		return err
	}
	status, ok := faultStatus[e.Kind]
	if !ok {
		return s.fail("unknown kind of error %q", e.Kind)
	}
	e.Status, e.RetryAfter, e.Message = status, time.Duration(wait)*time.Millisecond, clip(oneLine(e.Message), maxMessage)
	r.fault = e
	return nil
}

// object reads an object member by member.
func (s *script) object(known members) error {
	if err := s.open('{', "an object"); err != nil {
		return err
	}
	seen := map[string]bool{}
	for s.dec.More() {
		tok, err := s.dec.Token()
		if err != nil {
			return s.wrap(err)
		}
		name := tok.(string) // the decoder allows nothing else here
		read, ok := known[name]
		switch {
		case !ok:
			return s.fail("unknown member %q", clip(name, 60))
		case seen[name]:
			return s.fail("the member %q comes twice", name)
		}
		seen[name] = true
		if err := read(); err != nil {
			return err
		}
	}
	_, err := s.dec.Token()
	return s.wrap(err)
}

func (s *script) array(element func() error) error {
	if err := s.open('[', "a list"); err != nil {
		return err
	}
	for s.dec.More() {
		if err := element(); err != nil {
			return err
		}
	}
	_, err := s.dec.Token()
	return s.wrap(err)
}

func (s *script) open(delim json.Delim, what string) error {
	start := s.at()
	tok, err := s.dec.Token()
	if err != nil {
		return s.wrap(err)
	}
	if tok != delim {
		return fmt.Errorf("line %d: %s is expected here", s.lineAt(start), what)
	}
	return nil
}

// text reads a string with templates.
func (s *script) text(dst *string) error {
	if err := s.value(dst); err != nil {
		return err
	}
	if err := checkTemplates(*dst); err != nil {
		return s.fail("%s", err)
	}
	return nil
}

func (s *script) number(dst *int, low, high int) error {
	if err := s.value(dst); err != nil {
		return err
	}
	if *dst < low || *dst > high {
		return s.fail("%d is not between %d and %d", *dst, low, high)
	}
	return nil
}

// value reads one value of a plain type. null is no value.
func (s *script) value(dst any) error {
	start := s.at()
	var raw json.RawMessage
	if err := s.dec.Decode(&raw); err != nil {
		return s.wrap(err)
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var wrong *json.UnmarshalTypeError
	err := dec.Decode(dst)
	switch {
	case string(raw) == "null":
		return fmt.Errorf("line %d: null is not allowed here", s.lineAt(start))
	case errors.As(err, &wrong):
		return fmt.Errorf("line %d: %s does not fit here, %s is expected", s.lineAt(start), wrong.Value, wrong.Type)
	case err != nil:
		return fmt.Errorf("line %d: %w", s.lineAt(start), err)
	}
	return nil
}

// at is where the next thing to read begins.
func (s *script) at() int64 {
	at := s.dec.InputOffset()
	rest := s.data[at:]
	return at + int64(len(rest)-len(bytes.TrimLeft(rest, " \t\r\n,:")))
}

func (s *script) lineAt(at int64) int {
	return 1 + bytes.Count(s.data[:min(max(at, 0), int64(len(s.data)))], []byte("\n"))
}

func (s *script) fail(format string, args ...any) error {
	return fmt.Errorf("line %d: %s", s.lineAt(s.dec.InputOffset()), fmt.Sprintf(format, args...))
}

func (s *script) wrap(err error) error {
	var syntax *json.SyntaxError
	switch {
	case err == nil:
		return nil
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("line %d: the script ends too early", s.lineAt(int64(len(s.data))))
	case errors.As(err, &syntax):
		return fmt.Errorf("line %d: %s", s.lineAt(syntax.Offset), syntax)
	}
	return s.fail("%s", err)
}
