package secrets_test

import (
	"bytes"
	"encoding/json"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"holdfast/conformance/fakemodel"
	"holdfast/conformance/harness"
)

// mask stands where a secret was.
const mask = "[secret hidden by holdfast]"

// The keys, each known to come from one channel only.
const (
	providerKey = "sk-proj-Prov1derKeyAb3dEf6hIj9kLmN0pQrStUvWxYz12"
	envKey      = "env-7f3a9c21-Zq8Rw5Ty2Ui"
	mcpKey      = "mcp-44d0b6e8-Lk3Jh7Gf1Ds"
	pastedKey   = "ghp_PastedByTheUser0123456789abcdefABCDEF"
	fileKey     = "AKIAFILEKEYZQ7PXW3RT"
	pemLine     = "MIIEowIBAAKCAQEAx4Uu3Q9s8kFfPrivateKeyOfTheFile"
	echoedKey   = "EchoedByTheProvider0123456789abcdef"
)

var allKeys = map[string]string{"provider": providerKey, "environment": envKey, "MCP server": mcpKey, "prompt": pastedKey, "file": fileKey, "private key": pemLine,
	"provider's error": echoedKey}

// request is what arrived at the endpoint, byte by byte.
type request struct {
	header http.Header
	body   string
}

// world is one store, one work tree and one model with a witness before it.
type world struct {
	t               testing.TB
	dir, home, work string
	url             string
	env             []string

	mu    sync.Mutex
	heard []request
	reply func(n int, r fakemodel.Request) fakemodel.Reply // n counts from 1
	model *fakemodel.Server
}

func newWorld(t testing.TB) *world {
	t.Helper()
	dir, err := os.MkdirTemp("", "hf-")
	if err != nil {
		t.Fatal(err)
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, dir: dir, home: filepath.Join(dir, "home"), work: filepath.Join(dir, "work")}
	t.Cleanup(func() {
		if t.Failed() {
			b, _ := os.ReadFile(filepath.Join(w.home, "log.jsonl")) // absent is empty
			t.Logf("log:\n%.5000s", b)
		}
		harness.Eventually(t, "nothing writes there any more", func() bool { return os.RemoveAll(dir) == nil })
	})
	if err := os.Mkdir(w.work, 0o755); err != nil {
		t.Fatal(err)
	}
	w.model = fakemodel.New(func(r fakemodel.Request) fakemodel.Reply { return w.reply(r.N, r) })
	t.Cleanup(w.model.Close)
	target, err := url.Parse(w.model.Origin())
	if err != nil {
		t.Fatal(err)
	}
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }, FlushInterval: -1}
	witness := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		w.mu.Lock()
		w.heard = append(w.heard, request{r.Header.Clone(), string(b)})
		w.mu.Unlock()
		r.Body = io.NopCloser(bytes.NewReader(b))
		proxy.ServeHTTP(rw, r)
	}))
	t.Cleanup(witness.Close)
	w.url = witness.URL + "/v1"
	w.env = []string{"HOLDFAST_HOME=" + w.home, "HOLDFAST_LOG=trace", "HOLDFAST_KEYRING=off", "HOLDFAST_MODEL=openai/fake", "OPENAI_BASE_URL=" + w.url,
		"OPENAI_API_KEY=" + providerKey, "MY_SERVICE_TOKEN=" + envKey, "PATH=" + os.Getenv("PATH")}
	return w
}

// calls makes the model call tools one after the other, and then say something.
func (w *world) calls(last fakemodel.Reply, calls ...fakemodel.Call) {
	w.reply = func(_ int, r fakemodel.Request) fakemodel.Reply {
		made := 0
		for _, m := range r.Messages {
			if m.Role == "tool" {
				made++
			}
		}
		if made < len(calls) {
			return fakemodel.Calls(calls[made])
		}
		return last
	}
}

func call(name string, args any) fakemodel.Call {
	b, err := json.Marshal(args)
	if err != nil {
		panic(err)
	}
	return fakemodel.Call{Name: name, Args: string(b)}
}

type m = map[string]any

func builtBinary(t testing.TB) string {
	t.Helper()
	plain, _, err := harness.Binaries()
	if err != nil {
		t.Fatal(err)
	}
	return plain
}

// launch starts an agent of an editor.
func (w *world) launch() *harness.Agent {
	w.t.Helper()
	a := harness.Start(w.t, harness.Options{Binary: builtBinary(w.t), Env: w.env})
	a.Must("initialize", m{"protocolVersion": 1, "clientCapabilities": m{}}, nil)
	return a
}

// holdfast runs a command line. in is its standard input.
func (w *world) holdfast(in string, args ...string) (out string, code int) {
	w.t.Helper()
	cmd := exec.Command(builtBinary(w.t), args...)
	cmd.Env, cmd.Dir, cmd.Stdin = w.env, w.work, strings.NewReader(in)
	b, err := cmd.CombinedOutput()
	if err != nil && cmd.ProcessState == nil {
		w.t.Fatal(err)
	}
	return string(b), cmd.ProcessState.ExitCode()
}

func (w *world) put(name, text string) {
	w.t.Helper()
	if err := os.WriteFile(filepath.Join(w.work, name), []byte(text), 0o644); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) read(name string) string {
	w.t.Helper()
	b, err := os.ReadFile(filepath.Join(w.work, name))
	if err != nil {
		w.t.Fatal(err)
	}
	return string(b)
}

func (w *world) requests() []request {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]request(nil), w.heard...)
}

// search fails the test when a key, or a half of it, is in a text.
func search(t testing.TB, where, text string) {
	t.Helper()
	for name, key := range allKeys {
		for _, part := range []string{key[:len(key)*3/5], key[len(key)*2/5:]} {
			if i := strings.Index(text, part); i >= 0 {
				t.Errorf("the key of the channel %q is in %s: …%.60q", name, where, text[max(0, i-30):])
			}
		}
	}
}

// searchHome looks into every byte of the state directory. Skipped files are named by the caller.
func (w *world) searchHome(skip ...string) {
	w.t.Helper()
	files := 0
	err := filepath.WalkDir(w.home, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		rel, _ := filepath.Rel(w.home, path)
		for _, s := range skip {
			if rel == s {
				return nil
			}
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		files++
		search(w.t, "the file "+rel, string(b))
		return nil
	})
	if err != nil {
		w.t.Fatal(err)
	}
	if files < 3 {
		w.t.Errorf("only %d files were searched", files)
	}
}

// searchTraffic looks into what the editor and the model got.
func (w *world) searchTraffic(agents ...*harness.Agent) {
	w.t.Helper()
	for _, a := range agents {
		for _, msg := range a.Log() {
			search(w.t, "a message to the editor", string(msg.Raw))
		}
		search(w.t, "the standard error", a.Stderr())
	}
	for _, r := range w.requests() {
		search(w.t, "the body of a request", r.body)
		for name, values := range r.header {
			if name != "Authorization" {
				search(w.t, "the header "+name, strings.Join(values, "\n"))
			} else if values[0] != "Bearer "+providerKey {
				w.t.Errorf("the endpoint got another credential")
			}
		}
	}
}
