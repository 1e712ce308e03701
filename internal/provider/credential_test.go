package provider

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/anthropics/anthropic-sdk-go/v2"
	"github.com/anthropics/anthropic-sdk-go/v2/option"

	"holdfast/session"
)

func mustEncode(t *testing.T, m *Anthropic) anthropic.MessageNewParams {
	t.Helper()
	p, _, err := m.encode(hello())
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// stopBefore keeps a request's header and lets nothing out.
func stopBefore(got *http.Header) option.RequestOption {
	return option.WithMiddleware(func(r *http.Request, _ option.MiddlewareNext) (*http.Response, error) {
		*got = r.Header.Clone()
		return nil, errors.New("nothing goes out")
	})
}

// TestAnthropic_Credentials: a key and a token each go by the header that is meant for it, in requests to the model and for the list, and neither
// is in what is said about a refusal.
func TestAnthropic_Credentials(t *testing.T) {
	const token = "tok-0123456789-of-the-gateway"
	for _, c := range []struct {
		name        string
		env         []string
		key, bearer string
	}{
		{"nothing", nil, "", ""},
		{"a key", []string{"ANTHROPIC_API_KEY", testKey}, testKey, ""},
		{"a token", []string{"ANTHROPIC_AUTH_TOKEN", " " + token + "\n"}, "", "Bearer " + token},
		{"both", []string{"ANTHROPIC_API_KEY", testKey, "ANTHROPIC_AUTH_TOKEN", token}, "", "Bearer " + token},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got []http.Header
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				got = append(got, r.Header.Clone())
				w.WriteHeader(http.StatusUnauthorized)
				_, _ = w.Write([]byte(`{"error":{"type":"authentication_error","message":"wrong: ` + r.Header.Get("X-Api-Key") + r.Header.Get("Authorization") + `"}}`))
			}))
			t.Cleanup(s.Close)
			config := Config{Model: "anthropic/claude-fake", Getenv: env(append(c.env, "ANTHROPIC_BASE_URL", s.URL)...), CredKey: []byte("store"), Limits: testLimits()}
			m, err := Resolve(config)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(m.(*Anthropic).Close)
			_, asked := m.Stream(t.Context(), hello(), func(session.Delta) error { return nil })
			_, listed := List(context.Background(), config, "anthropic")
			for _, err := range []error{asked, listed} {
				if me := modelError(t, err); me.Kind != session.ModelAuth || strings.Contains(me.Error(), token) {
					t.Errorf("got %v", me)
				}
			}
			if len(got) != 2 {
				t.Fatalf("%d requests came", len(got))
			}
			for _, h := range got {
				if h.Get("X-Api-Key") != c.key || h.Get("Authorization") != c.bearer {
					t.Errorf("the key is %q, the token %q", h.Get("X-Api-Key"), h.Get("Authorization"))
				}
			}
		})
	}
}

// TestAnthropic_OwnCredential: the provider itself is shown the key as its SDK shows it. Nothing is sent.
func TestAnthropic_OwnCredential(t *testing.T) {
	for name, want := range map[string]string{"ANTHROPIC_API_KEY": "Bearer " + testKey, "ANTHROPIC_AUTH_TOKEN": "Bearer " + testKey} {
		m, err := Resolve(Config{Model: "anthropic/claude-fake", Getenv: env(name, testKey), CredKey: []byte("store"), Limits: testLimits()})
		if err != nil {
			t.Fatal(err)
		}
		a := m.(*Anthropic)
		var got http.Header
		stream := a.service.NewStreaming(t.Context(), mustEncode(t, a), stopBefore(&got))
		if err := stream.Err(); err == nil || got.Get("Authorization") != want || got.Get("X-Api-Key") != "" {
			t.Errorf("%s: %v, error %v", name, got, err)
		}
	}
	if _, err := Resolve(Config{Model: "anthropic/x", Getenv: env("ANTHROPIC_AUTH_TOKEN", "a\nb")}); err == nil || !strings.Contains(err.Error(), "ANTHROPIC_AUTH_TOKEN holds white space") {
		t.Errorf("got %v", err)
	}
	if id, err := Check(Config{Getenv: env("ANTHROPIC_AUTH_TOKEN", testKey)}); err != nil || "anthropic/"+id.Name != DefaultAnthropic {
		t.Errorf("with a token alone there is %+v, error %v", id, err)
	}
}
