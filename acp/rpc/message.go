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

// message is one classified line. Raw members are slices of the line.
type message struct {
	kind    kind
	id      json.RawMessage
	method  string
	params  json.RawMessage
	result  json.RawMessage
	err     json.RawMessage
	refusal *Error
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

func invalid(id json.RawMessage, text string) message {
	return refuse(CodeInvalidRequest, id, "Invalid request: "+text)
}

// classify says what a line is. It never fails.
func classify(line []byte) message {
	line = bytes.Trim(bytes.TrimPrefix(line, bom), space)
	switch {
	case len(line) == 0:
		return message{kind: nothing}
	case !utf8.Valid(line):
		return refuse(CodeParseError, nil, "Parse error: the line is not valid UTF-8.")
	case !json.Valid(line):
		return unreadable(line)
	case line[0] == '{':
		return readEnvelope(line).classify()
	case line[0] == '[':
		return classifyArray(line)
	}
	return invalid(nil, "a message is a JSON object.")
}

// unreadable refuses what is not JSON, or too deep to be read.
func unreadable(line []byte) message {
	if tooDeep(line) {
		return invalid(nil, "the message is nested more than 10000 levels deep.")
	}
	var v json.RawMessage
	why := "."
	if err := json.Unmarshal(line, &v); err != nil {
		why = ": " + err.Error() + "."
	}
	return refuse(CodeParseError, nil, "Parse error: the line is not valid JSON"+why)
}

// classifyArray refuses a batch: the protocol has none. An array of notifications alone gets no answer, because notifications get none.
func classifyArray(line []byte) message {
	items, silent := 0, true
	eachItem(line, func(item []byte) {
		items++
		silent = silent && item[0] == '{' && readEnvelope(item).classify().kind == notification
	})
	if silent && items > 0 {
		return message{kind: nothing}
	}
	return invalid(nil, "batches are not supported; send one object per line.")
}

// envelope has the members of a message that matter here.
type envelope struct {
	version, id, method, params, result, err json.RawMessage

	repeated bool // a member stands twice, so nobody can say which of them is meant
}

func readEnvelope(object []byte) (e envelope) {
	eachMember(object, func(name string, value []byte) {
		var to *json.RawMessage
		switch name {
		case "jsonrpc":
			to = &e.version
		case "id":
			to = &e.id
		case "method":
			to = &e.method
		case "params":
			to = &e.params
		case "result":
			to = &e.result
		case "error":
			to = &e.err
		default:
			return
		}
		e.repeated = e.repeated || *to != nil
		*to = value
	})
	return e
}

func (e envelope) classify() message {
	switch {
	case e.repeated:
		return invalid(nil, "a member stands twice.")
	case e.id != nil && !isID(e.id):
		return invalid(nil, "an id is a string, a number or null.")
	case e.method == nil && (e.result != nil || e.err != nil):
		return message{kind: response, id: e.id, result: e.result, err: e.err}
	case e.method == nil:
		return invalid(e.id, "the method is missing.")
	case string(e.version) != `"2.0"`:
		return invalid(e.id, `jsonrpc must be "2.0".`)
	case e.result != nil || e.err != nil:
		return invalid(e.id, "a method cannot stand beside a result or an error.")
	case e.method[0] != '"':
		return invalid(e.id, "the method must be a string.")
	}
	m := message{kind: request, id: e.id, method: text(e.method), params: e.params}
	if e.id == nil {
		m.kind = notification
	}
	return m
}

// isID tells strings, numbers and null from other valid values.
func isID(v []byte) bool {
	return v[0] == '"' || v[0] == '-' || v[0] >= '0' && v[0] <= '9' || v[0] == 'n'
}

// idKey is what two ids have in common when they are the same: the text of a string, the bytes of a number. null is nobody's name.
func idKey(id json.RawMessage) (key string, ok bool) {
	switch {
	case len(id) == 0 || !isID(id) || id[0] == 'n':
		return "", false
	case id[0] == '"':
		return `"` + text(id), true
	}
	return string(id), true
}
