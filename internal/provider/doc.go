// Package provider holds the models that answer: OpenAI responses and chat completions, Anthropic messages and every server that speaks
// one of these wires, and a scripted model that plays a file.
//
// Words. A provider is a kind of endpoint ("openai", "anthropic", "scripted"). A delta is a fragment of a streaming answer. The end
// mark of an answer is its finish reason followed by either the token usage or the line [DONE] in chat completions, the event
// message_stop in messages, and one of the events response.completed, response.incomplete and response.failed in responses. An answer
// is complete when its end mark arrived, and cut off when its stream ended before. The native form of an answer is the list of its
// content blocks, or output items, as the wire gave them. A rule is one entry of a script.
//
// It imports session and usage, and the providers' SDKs. It reads no environment variable itself, with one exception: HTTP proxies
// come from the usual variables of the process, as everywhere in Go's net/http.
//
// Invariants:
//
//	I1: one call of Stream is at most one provider request. Nothing here retries and no redirect is followed.
//	I2: an answer is returned only after its end mark. A stream that closes cleanly before it is cut off.
//	I3: calls are returned only when the finish reason says that the model had finished making them: never from an answer that was
//	    cut off, reached the output limit or was refused.
//	I4: within one answer no two calls have the same id, and none is empty.
//	I5: what a ModelError says is at most 500 characters, one line, without the credential and without markup. Its Status is 400 or
//	    more only when the endpoint refused the request as a whole, so that nothing was generated.
//	I6: cancelling the context ends Stream at once with the context's error; a silent endpoint ends it after a limit.
//	I7: the scripted model keeps no state. Its answer is a function of the script and the request, in any process.
//	I8: an answer's native form goes back unchanged or not at all: on the messages wire behind the history that it was given to and no
//	    other, on the responses wire to the address and credential that gave it. Otherwise its text and calls go back.
package provider
