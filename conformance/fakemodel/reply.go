package fakemodel

import (
	"net/http"
	"time"
)

// End is how a stream ends.
type End int

const (
	EndDone     End = iota // finish reason, usage if asked for, [DONE]
	EndCut                 // the body closes cleanly before the finish reason
	EndUnmarked            // finish reason, then a clean close: no usage, no [DONE]
	EndAbort               // the connection closes in the middle of the body
	EndReset               // the connection is reset
	EndStall               // nothing more comes until the client goes or the server closes
)

// Reply is how to answer one request. The zero value is an empty answer that ends well.
type Reply struct {
	Steps  []Step
	Calls  []Call // after the steps
	Finish string // "" means "tool_calls" with calls, else "stop"
	Usage  *Usage // nil sends no usage even when asked
	End    End
	Gzip   bool // compress the body, whatever the client accepts

	// Status other than 0, or Page, answers with a whole body instead of a stream.
	Status int
	Page   string
	Type   string // content type of Page; "" means application/json
	Header http.Header
}

// Step is one event of a stream. Delay and Gate come first; then whichever of the others is set is sent.
type Step struct {
	Delay     time.Duration
	Gate      <-chan struct{} // the stream stays here until it is closed
	Text      string          // content of a delta
	Reasoning string          // reasoning_content of a delta
	Member    string          // member name for Reasoning, when a server uses another one
	Refusal   string          // refusal of a delta
	Comment   string          // a line that only keeps the connection alive
	Raw       string          // bytes of the body as they are
	Count     int             // send it so often; 0 means once
}

// Call is one tool call of an answer.
type Call struct {
	ID     string // "" makes one that is unique for this server
	NoID   bool   // send no id at all
	Name   string
	Args   string
	Pieces int  // deltas that Args is cut into; 0 means one
	Index  *int // nil counts from 0
	Whole  bool // name and arguments in one delta, as servers do that do not stream calls
}

// Usage is the token count of an answer.
type Usage struct{ Prompt, Completion int64 }

// Text answers with these chunks.
func Text(chunks ...string) Reply {
	r := Reply{Usage: &Usage{Prompt: 10, Completion: int64(len(chunks))}}
	for _, c := range chunks {
		r.Steps = append(r.Steps, Step{Text: c})
	}
	return r
}

// Calls answers with tool calls.
func Calls(calls ...Call) Reply {
	return Reply{Calls: calls, Usage: &Usage{Prompt: 10, Completion: 5}}
}

// Gate holds the stream until the channel is closed.
func Gate(c <-chan struct{}) Step { return Step{Gate: c} }

// KeepAlive sends a comment every interval, n times.
func KeepAlive(every time.Duration, n int) Step {
	return Step{Comment: "keep-alive", Delay: every, Count: n}
}

// Broken is a chunk that is not JSON.
func Broken() Step { return Step{Raw: "data: {\"id\":\"chatcmpl-1\",\"choices\":[{\"ind\n\n"} }

// ErrorEvent is an error in the middle of a stream that began with 200.
func ErrorEvent(message, kind, code string) Step {
	return Step{Raw: "data: " + string(encode(problem(message, kind, code))) + "\n\n"}
}

// Error refuses the request as the service does.
func Error(status int, message, code string) Reply {
	return Reply{Status: status, Page: string(encode(problem(message, "invalid_request_error", code)))}
}

// With adds a header to a reply.
func (r Reply) With(name, value string) Reply {
	h := r.Header.Clone()
	if h == nil {
		h = http.Header{}
	}
	h.Set(name, value)
	r.Header = h
	return r
}

// HTML answers with the page of a proxy.
func HTML(status int) Reply {
	return Reply{Status: status, Type: "text/html; charset=utf-8",
		Page: "<!DOCTYPE html>\n<html><head><title>Bad gateway</title></head><body><h1>Bad gateway</h1><p>cloud edge</p></body></html>\n"}
}
