package provider

import (
	"strings"
	"testing"

	"holdfast/conformance/fakemodel"
	"holdfast/session"
)

const benchChunks = 10_000

// BenchmarkOpenAI_Stream reads an answer of 10,000 deltas that comes as fast as the connection allows.
func BenchmarkOpenAI_Stream(b *testing.B) {
	var page strings.Builder
	for range benchChunks {
		page.WriteString(`data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1700000000,"model":"fake","choices":[{"index":0,` +
			`"delta":{"content":"word "},"logprobs":null,"finish_reason":null}],"usage":null}` + "\n\n")
	}
	page.WriteString(`data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}` + "\n\ndata: [DONE]\n\n")
	m, _ := serve(b, testLimits(), always(fakemodel.Reply{Status: 200, Type: "text/event-stream", Page: page.String()}))
	benchStream(b, m)
}

func BenchmarkScripted_Stream(b *testing.B) {
	m := script1(b, `{"rules":[{"say":"`+strings.Repeat("word ", benchChunks)+`","chunks":10000}]}`)
	benchStream(b, m)
}

func benchStream(b *testing.B, m session.Model) {
	b.ReportAllocs()
	for b.Loop() {
		n := 0
		_, err := m.Stream(b.Context(), hello(), func(session.Delta) error { n++; return nil })
		if err != nil || n != benchChunks {
			b.Fatalf("%d deltas, error %v", n, err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/benchChunks, "ns/chunk")
}

// BenchmarkOpenAI_Encode encodes a request with a long history.
func BenchmarkOpenAI_Encode(b *testing.B) {
	m, err := NewOpenAI(OpenAIConfig{Model: "fake"})
	if err != nil {
		b.Fatal(err)
	}
	req := fullRequest()
	for len(req.Messages) < 1000 {
		req.Messages = append(req.Messages, req.Messages...)
	}
	b.ReportAllocs()
	for b.Loop() {
		p, err := m.encode(req)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := p.MarshalJSON(); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkResponses_Stream is BenchmarkOpenAI_Stream on the newer wire.
func BenchmarkResponses_Stream(b *testing.B) {
	var page strings.Builder
	page.WriteString(`data: {"type":"response.output_item.added","output_index":0,"item":{"id":"m","type":"message","role":"assistant","status":"in_progress","content":[]}}` + "\n\n")
	for range benchChunks {
		page.WriteString("event: response.output_text.delta\n" + `data: {"type":"response.output_text.delta","sequence_number":7,"item_id":"msg_0123456789","output_index":0,` +
			`"content_index":0,"delta":"word ","logprobs":[],"obfuscation":"xxxxxxxx"}` + "\n\n")
	}
	page.WriteString(`data: {"type":"response.completed","response":{"status":"completed"}}` + "\n\n")
	m, _ := serveResponses(b, testLimits(), always(fakemodel.Reply{Status: 200, Type: "text/event-stream", Page: page.String()}))
	benchStream(b, m)
}
