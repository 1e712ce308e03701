package rpc

import (
	"bytes"
	"encoding/json"
	"unicode/utf8"
)

// kind is what a line turned out to be.
type kind int

const (
	nothing kind = iota // blank, or not to be answered
	refused             // answered with message.refusal
	request
	notification
	response
)

// message is one classified line. Raw members are the peer's own bytes.
type message struct {
	kind    kind
	id      json.RawMessage
	method  string
	params  json.RawMessage
	result  json.RawMessage
	err     json.RawMessage
	refusal *Error
}

type envelope struct {
	Version json.RawMessage `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Method  json.RawMessage `json:"method"`
	Params  json.RawMessage `json:"params"`
	Result  json.RawMessage `json:"result"`
	Error   json.RawMessage `json:"error"`
}

var (
	null = json.RawMessage("null")
	bom  = []byte("\xef\xbb\xbf")
)

func refuse(code int, id json.RawMessage, text string) message {
	if id == nil {
		id = null
	}
	return message{kind: refused, id: id, refusal: &Error{Code: code, Message: text}}
}

// classify says what a line is. It never fails.
func classify(line []byte) message {
	line = bytes.TrimSpace(bytes.TrimPrefix(bytes.TrimSpace(line), bom))
	switch {
	case len(line) == 0:
		return message{kind: nothing}
	case !utf8.Valid(line):
		return refuse(CodeParseError, nil, "Parse error: the line is not valid UTF-8.")
	case line[0] == '[':
		return classifyArray(line)
	}
	var e envelope
	if err := json.Unmarshal(line, &e); err != nil {
		if line[0] != '{' && json.Valid(line) {
			return refuse(CodeInvalidRequest, nil, "Invalid request: a message is a JSON object.")
		}
		return refuse(CodeParseError, nil, "Parse error: "+err.Error()+".")
	}
	if line[0] != '{' {
		return refuse(CodeInvalidRequest, nil, "Invalid request: a message is a JSON object.")
	}
	return e.classify()
}

// classifyArray refuses a batch: the protocol has none. An array of notifications alone gets no answer, because notifications get none.
func classifyArray(line []byte) message {
	var all []envelope
	if err := json.Unmarshal(line, &all); err != nil {
		if json.Valid(line) {
			return refuse(CodeInvalidRequest, nil, "Invalid request: batches are not supported.")
		}
		return refuse(CodeParseError, nil, "Parse error: "+err.Error()+".")
	}
	silent := len(all) > 0
	for _, e := range all {
		silent = silent && e.Method != nil && e.ID == nil
	}
	if silent {
		return message{kind: nothing}
	}
	return refuse(CodeInvalidRequest, nil, "Invalid request: batches are not supported.")
}

func (e envelope) classify() message {
	id := e.ID
	if id != nil && id[0] != '"' && id[0] != '-' && (id[0] < '0' || id[0] > '9') && !bytes.Equal(id, null) {
		return refuse(CodeInvalidRequest, nil, "Invalid request: an id is a string, a number or null.")
	}
	if e.Method == nil {
		if id != nil && (e.Result != nil || e.Error != nil) {
			return message{kind: response, id: id, result: e.Result, err: e.Error}
		}
		return refuse(CodeInvalidRequest, id, "Invalid request: the method is missing.")
	}
	m := message{kind: request, id: id, params: e.Params}
	switch {
	case string(e.Version) != `"2.0"`:
		return refuse(CodeInvalidRequest, id, `Invalid request: jsonrpc must be "2.0".`)
	case e.Result != nil || e.Error != nil:
		return refuse(CodeInvalidRequest, id, "Invalid request: a method and a result cannot stand together.")
	case json.Unmarshal(e.Method, &m.method) != nil || m.method == "":
		return refuse(CodeInvalidRequest, id, "Invalid request: the method must be a string.")
	case id == nil:
		m.kind = notification
	}
	return m
}
