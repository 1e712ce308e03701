// Package fakemodel is a local server that speaks the streaming wires of OpenAI chat completions, OpenAI responses and Anthropic
// messages, with every fault that the real wires have. It listens on the loopback interface only.
//
// Words. A family is one of the three wires ("openai", "responses", "anthropic"); handlers and replies are the same for all. A handler looks at a
// request and returns a reply. A reply is a list of steps, played in order, and an end. A gate is a
// channel that holds the stream until it is closed.
//
// It imports nothing of the project, so that a misspelt member on one side cannot hide on the other.
//
// Invariants:
//
//	I1: the server is as strict as the real service: a history in which a call has no adjacent result, a result has no call, or an id
//	    is used twice is refused with 400 and never reaches the handler. On the messages wire so is a thought whose signature was changed,
//	    or that does not stand behind the history it was given to, and on the responses wire reasoning that was changed, given to another
//	    model or parted from what it led to.
//	I2: every request is logged before it is answered, refused ones too, in the order of arrival.
//	I3: Close waits for every handler and leaves no goroutine.
package fakemodel
