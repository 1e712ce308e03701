package provider

import (
	"bufio"
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"holdfast/session"
)

var update = flag.Bool("update", false, "rewrite what the program decides in testdata/dialects: requests and what is made of the answers")

// fixture is one server: a file that begins with lines "name: value", of which facts says where what is known of it comes from. The part answer
// is what the server sends, byte by byte. request and next are what it is sent: at first, and once the calls have their results. parsed is what
// the session gets.
type fixture struct {
	path   string
	values map[string]string
	parts  map[string]string
}

var fixtureParts = []string{"answer", "request", "parsed", "next"}

func readFixture(t *testing.T, path string) *fixture {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{path: path, values: map[string]string{}, parts: map[string]string{}}
	part := ""
	for line := range strings.Lines(string(b)) {
		if name, ok := strings.CutPrefix(line, "-- "); ok && strings.HasSuffix(line, " --\n") {
			part = strings.TrimSuffix(name, " --\n")
			continue
		}
		if part != "" {
			f.parts[part] += line
		} else if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			f.values[name] = strings.TrimSpace(value)
		}
	}
	if f.values["facts"] == "" || f.parts["answer"] == "" {
		t.Fatalf("%s does not say where its facts come from, or has no answer", path)
	}
	return f
}

func (f *fixture) write(t *testing.T) {
	t.Helper()
	b, err := os.ReadFile(f.path)
	if err != nil {
		t.Fatal(err)
	}
	head, _, _ := strings.Cut(string(b), "-- answer --\n")
	for _, name := range fixtureParts {
		head += "-- " + name + " --\n" + f.parts[name]
	}
	if err := os.WriteFile(f.path, []byte(head), 0o644); err != nil {
		t.Fatal(err)
	}
}

// check compares a part with what happened.
func (f *fixture) check(t *testing.T, part, got string) {
	t.Helper()
	if *update {
		f.parts[part] = got
	} else if f.parts[part] != got {
		t.Errorf("the %s is\n%s\nwant\n%s", part, got, f.parts[part])
	}
}

func (f *fixture) model(t *testing.T, origin string) session.Model {
	t.Helper()
	c := EndpointConfig{Model: "fake", BaseURL: origin + f.values["base"], Key: testKey, CredKey: []byte("store"), Dialect: f.values["dialect"], MaxTokens: 77, Limits: testLimits()}
	var m interface {
		session.Model
		Close()
	}
	var err error
	switch f.values["wire"] {
	case "chat":
		m, err = NewOpenAI(c)
	case "responses":
		m, err = NewResponses(c)
	case "messages":
		m, err = NewAnthropic(c)
	default:
		t.Fatalf("there is no wire %q", f.values["wire"])
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	return m
}

// tape is a server that sends the same bytes to everybody and keeps what it was sent.
type tape struct {
	*httptest.Server
	mu   sync.Mutex
	sent []string
}

func playTape(t *testing.T, answer string) *tape {
	tp := &tape{}
	tp.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, err := asText(r)
		if err != nil {
			text = err.Error()
		}
		tp.mu.Lock()
		tp.sent = append(tp.sent, text)
		tp.mu.Unlock()
		conn, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		head, body, _ := strings.Cut(answer, "\n\n")
		_, _ = io.WriteString(conn, strings.ReplaceAll(head, "\n", "\r\n")+"\r\nConnection: close\r\n\r\n"+body)
		_ = conn.Close()
	}))
	t.Cleanup(tp.Close)
	return tp
}

// asText is a whole request, without what depends on the machine, the SDK's version or the address. The key is named, not shown.
func asText(r *http.Request) (string, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s\n", r.Method, r.URL.RequestURI())
	var names []string
	for name := range r.Header {
		if !strings.HasPrefix(name, "X-Stainless-") && !slices.Contains([]string{"User-Agent", "Content-Length", "Accept-Encoding"}, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		fmt.Fprintf(&b, "%s: %s\n", name, strings.ReplaceAll(strings.Join(r.Header[name], ", "), testKey, "KEY"))
	}
	return b.String() + "\n" + string(body) + "\n", nil
}

// TestDialects_Fixtures: each server is asked as it wants to be, byte by byte, its answer is understood, and goes back as it takes it.
func TestDialects_Fixtures(t *testing.T) {
	files, err := filepath.Glob("testdata/dialects/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no fixtures, error %v", err)
	}
	seen := map[string]bool{}
	for _, path := range files {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txt"), func(t *testing.T) {
			f := readFixture(t, path)
			seen[f.values["wire"]+" "+f.values["dialect"]] = true
			tp := playTape(t, f.parts["answer"])
			m := f.model(t, tp.URL)
			req := answered(t, session.ModelRequest{System: "You help <me>.", Conversation: "a-name", Messages: hello().Messages, Tools: fullRequest().Tools[:1]},
				session.ModelResponse{Calls: []session.Call{{ID: "toolu_of_another_provider_with_a_long_id_of_more_than_forty", Name: "read", Args: `{"path":"c"}`}}})
			h := ask(t.Context(), m, req)
			if h.err != nil {
				t.Fatal(h.err)
			}
			if h.text != h.resp.Text || h.thought != h.resp.Thought {
				t.Errorf("what was shown is %q and %q", h.text, h.thought)
			}
			if next := ask(t.Context(), m, answered(t, req, h.resp)); next.err != nil || next.resp.Text != h.resp.Text {
				t.Errorf("the next answer is %s, error %v", mustJSON(t, next.resp), next.err)
			}
			var parsed bytes.Buffer
			enc := json.NewEncoder(&parsed)
			enc.SetEscapeHTML(false)
			enc.SetIndent("", "  ")
			shown := h.resp
			if n := shown.Native; n != nil {
				shown.Native = &session.Native{Provider: n.Provider, Model: n.Model, Blocks: n.Blocks} // the rest depends on the address
			}
			if err := enc.Encode(shown); err != nil {
				t.Fatal(err)
			}
			f.check(t, "request", tp.sent[0])
			f.check(t, "parsed", parsed.String())
			f.check(t, "next", tp.sent[1])
			f.common(t, h.resp)
			if *update {
				f.write(t)
			}
		})
	}
	for _, d := range dialects {
		if !seen["chat "+d.name] {
			t.Errorf("the dialect %s has no fixture", d.name)
		}
	}
	for _, wire := range []string{"messages ", "responses "} {
		if !seen[wire] {
			t.Errorf("the wire %s has no fixture", wire)
		}
	}
}

// common is what holds of every server: all of them say the same thing. It keeps -update from storing what is wrong.
func (f *fixture) common(t *testing.T, r session.ModelResponse) {
	t.Helper()
	if r.Text != "Reading." || r.Finish != session.FinishCalls || len(r.Calls) != 2 || r.Thought != "" && r.Thought != "Two files. Read both." {
		t.Fatalf("got %s", mustJSON(t, r))
	}
	for i, want := range []string{"a", "b"} {
		var args struct{ Path string }
		if err := json.Unmarshal([]byte(r.Calls[i].Args), &args); err != nil || args.Path != want {
			t.Errorf("call %d has the arguments %s", i, r.Calls[i].Args)
		}
		if r.Calls[i].ID == "" || r.Calls[i].Name != "read" {
			t.Errorf("call %d is %+v", i, r.Calls[i])
		}
	}
	if u := r.Usage; u.Known != strings.Contains(f.parts["answer"], `"usage":{`) || u.Known && (u.Input != 120 || u.Output != 40) {
		t.Errorf("the usage is %+v", u)
	}
	if _, err := http.ReadResponse(bufio.NewReader(strings.NewReader(f.parts["answer"])), nil); err != nil {
		t.Errorf("the answer is no HTTP: %v", err)
	}
	if strings.Contains(f.parts["request"]+f.parts["next"], testKey) {
		t.Error("the key is in the fixture")
	}
}
