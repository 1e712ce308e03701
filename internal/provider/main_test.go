package provider

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"holdfast/conformance/fakemodel"
	"holdfast/session"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const testKey = "sk-test-0123456789abcdefghij"

// quick limits: long enough for a busy machine where the endpoint answers, short where it is meant to be silent.
func testLimits() Limits {
	return Limits{Connect: 20 * time.Second, Header: 20 * time.Second, Idle: 20 * time.Second}
}

// serve starts a fake endpoint and a model that talks to it.
func serve(t testing.TB, limits Limits, handler func(fakemodel.Request) fakemodel.Reply) (*OpenAI, *fakemodel.Server) {
	t.Helper()
	s := fakemodel.New(handler)
	t.Cleanup(s.Close)
	m, err := NewOpenAI(OpenAIConfig{Model: "fake", BaseURL: s.URL(), Key: testKey, CredKey: []byte("store"), Limits: limits,
		Now: func() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	return m, s
}

func always(r fakemodel.Reply) func(fakemodel.Request) fakemodel.Reply {
	return func(fakemodel.Request) fakemodel.Reply { return r }
}

// heard is everything one call of Stream gave.
type heard struct {
	resp    session.ModelResponse
	err     error
	text    string
	thought string
	deltas  int
}

func ask(ctx context.Context, m session.Model, req session.ModelRequest) heard {
	var h heard
	h.resp, h.err = m.Stream(ctx, req, func(d session.Delta) error {
		h.text += d.Text
		h.thought += d.Thought
		h.deltas++
		return nil
	})
	return h
}

func hello() session.ModelRequest {
	return session.ModelRequest{Messages: []session.Message{{Role: session.RoleUser, Text: "hello"}}}
}

// modelError is the error of a failed request, which must be safe to show.
func modelError(t *testing.T, err error) *session.ModelError {
	t.Helper()
	var me *session.ModelError
	if !errors.As(err, &me) {
		t.Fatalf("got error %v (%T), want a *session.ModelError", err, err)
	}
	for _, text := range []string{me.Message, err.Error(), errorText(me.Err)} {
		if strings.Contains(text, testKey) {
			t.Errorf("the credential is in %q", text)
		}
	}
	if n := len([]rune(me.Message)); n == 0 || n > maxMessage || strings.ContainsAny(me.Message, "\n\r\t") {
		t.Errorf("the message has %d characters or several lines: %q", n, me.Message)
	}
	if strings.Contains(strings.ToLower(me.Message), "<html") {
		t.Errorf("markup in the message: %q", me.Message)
	}
	return me
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func mustJSON(t testing.TB, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
