package fakemodel

import (
	"net/http"
	"time"
)

// End is how a stream ends.
type End int

const (
	EndDone     End = iota // finish reason, usage if asked for, end mark
	EndCut                 // the body closes cleanly before the finish reason
	EndUnmarked            // finish reason, then a clean close: no usage, no end mark
	EndAbort               // the connection closes in the middle of the body
	EndReset               // the connection is reset
	EndStall               // nothing more comes until the client goes or the server closes
)

// Reply is how to answer one request. The zero value is an empty answer that ends well.
type Reply struct {
	Steps  []Step
	Calls  []Call // after the steps
	Finish string // "" means "tool_calls" with calls, else "stop"; the words of chat completions are translated for the other wire
	Usage  *Usage // nil sends no usage even when asked
	End    End
	Gzip   bool // compress the body, whatever the client accepts
	CutAt  int  // the body closes cleanly after so many bytes; 0 never
	Chop   int  // send the body in pieces of so many bytes, characters or not; 0 by event

	// Status other than 0, or Page, answers with a whole body instead of a stream: Problem in the wire's own form, or Page as it is.
	Status  int
	Problem *Problem
	Page    string
	Type    string // content type of Page; "" means application/json
	Header  http.Header
}

// Problem is an error of the service. Code exists in chat completions only; on the other wire the status decides the kind of a refusal.
type Problem struct{ Message, Kind, Code string }

// Step is one event of a stream. Delay and Gate come first; then whichever of the others is set is sent.
type Step struct {
	Delay     time.Duration
	Gate      <-chan struct{} // the stream stays here until it is closed
	Text      string          // words
	Reasoning string          // thoughts; on the messages wire they are signed when their block ends
	Redacted  string          // hidden thoughts; the messages wire has a block for them, chat completions send nothing
	Apart     bool            // messages wire: in a new block, also when the last one was of the same kind
	Member    string          // chat completions: member name for Reasoning, when a server uses another one
	Refusal   string          // refusal of a delta
	Comment   string          // a line that only keeps the connection alive
	Raw       string          // bytes of the body as they are
	Problem   *Problem        // an error in the middle of the stream
	Broken    bool            // an event that is not JSON
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

// Usage is the token count of an answer. What the cache held comes on top of Prompt, and Reasoning is a part of Completion. Bare leaves the
// parts out, as some servers do.
type Usage struct {
	Prompt, Completion, CacheRead, CacheWrite, Reasoning int64
	Bare                                                 bool
}

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

// Broken is an event that is not JSON.
func Broken() Step { return Step{Broken: true} }

// ErrorEvent is an error in the middle of a stream that began with 200.
func ErrorEvent(message, kind, code string) Step {
	return Step{Problem: &Problem{message, kind, code}}
}

// Error refuses the request as the service does.
func Error(status int, message, code string) Reply {
	return Reply{Status: status, Problem: &Problem{message, "invalid_request_error", code}}
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
