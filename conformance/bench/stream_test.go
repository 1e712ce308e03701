package bench_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"net/http"
	"os"
	"strings"
	"testing"

	"holdfast/conformance/fakemodel"
	"holdfast/conformance/harness"
)

// copies is set for the process that only copies: the address of the model.
const copies = "HOLDFAST_BENCH_COPY"

// copier is the least that has to be done with a stream: it reads the same events over the same connection and writes each as a JSON line. It
// stores nothing, checks nothing and masks nothing.
func copier(url string) error {
	in, out := bufio.NewReader(os.Stdin), json.NewEncoder(os.Stdout)
	for {
		raw, err := in.ReadBytes('\n')
		if err != nil {
			return nil // its input ended
		}
		var req struct{ ID json.RawMessage }
		if err := json.Unmarshal(raw, &req); err != nil {
			return err
		}
		if err := copyOnce(url, out); err != nil {
			return err
		}
		if err := out.Encode(map[string]any{"jsonrpc": "2.0", "id": req.ID, "result": map[string]any{"stopReason": "end_turn"}}); err != nil {
			return err
		}
	}
}

func copyOnce(url string, out *json.Encoder) error {
	body := `{"model":"fake","stream":true,"stream_options":{"include_usage":true},"messages":[{"role":"user","content":"long"}]}`
	res, err := http.Post(url+"/chat/completions", "application/json", strings.NewReader(body))
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }()
	lines := bufio.NewScanner(res.Body)
	for lines.Scan() {
		data, ok := bytes.CutPrefix(lines.Bytes(), []byte("data: "))
		if !ok || bytes.Equal(data, []byte("[DONE]")) {
			continue
		}
		var chunk struct {
			Choices []struct{ Delta struct{ Content string } }
		}
		if err := json.Unmarshal(data, &chunk); err != nil {
			return err
		}
		for _, c := range chunk.Choices {
			if c.Delta.Content == "" {
				continue
			}
			err := out.Encode(map[string]any{"jsonrpc": "2.0", "method": "session/update", "params": map[string]any{"sessionId": "s", "update": map[string]any{
				"sessionUpdate": "agent_message_chunk", "messageId": "m", "content": map[string]any{"type": "text", "text": c.Delta.Content}}}})
			if err != nil {
				return err
			}
		}
	}
	return lines.Err()
}

// The same answer of 10,000 chunks over the real wire, through the product and through a process that only copies.
func BenchmarkStreamOverCopy(b *testing.B) {
	var page strings.Builder
	for range chunks {
		page.WriteString(`data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1700000000,"model":"fake","choices":[{"index":0,"delta":{"content":"` + line +
			`"},"logprobs":null,"finish_reason":null}],"usage":null}` + "\n\n")
	}
	page.WriteString(`data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}` + "\n\ndata: [DONE]\n\n")
	model := fakemodel.New(func(fakemodel.Request) fakemodel.Reply {
		return fakemodel.Reply{Status: 200, Type: "text/event-stream", Page: page.String()}
	})
	defer model.Close()
	w := newWorld(b)
	self, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	product := harness.Start(b, harness.Options{Binary: w.binary, Invalid: true, Env: append([]string{"HOLDFAST_HOME=" + w.home}, model.Env("openai")...)})
	product.Initialize()
	session := product.NewSession(w.work)
	bare := harness.Start(b, harness.Options{Binary: self, Args: []string{"-test.run=^$"}, Invalid: true, Env: []string{copies + "=" + model.URL()}})
	var ours, theirs samples
	long := func(a *harness.Agent, s *samples, session string) {
		before := len(a.Text(session))
		s.take(func() { w.turn(a, session, "long") })
		if got := len(a.Text(session)) - before; got != chunks*len(line) {
			b.Fatalf("%d bytes arrived", got)
		}
	}
	for b.Loop() {
		for range 7 { // by turns: what else the machine does is the same for both
			long(product, &ours, session)
			long(bare, &theirs, "s")
		}
	}
	ours.report(b, "stream")
	theirs.report(b, "copy")
	b.ReportMetric(ms(ours[len(ours)/2])/ms(theirs[len(theirs)/2]), "times")
	b.ReportMetric(ms(ours[0])/ms(theirs[0]), "times-fastest")
	w.end(product)
	w.end(bare)
}
