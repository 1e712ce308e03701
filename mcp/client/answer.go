package client

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"unicode/utf8"
)

// Kinds of answers.
const (
	KindOK            = "ok"
	KindToolError     = "tool_error"
	KindProtocolError = "protocol_error"
	KindInputRequired = "input_required"
	KindTask          = "task"
	KindMalformed     = "malformed"
)

// Answer is a complete answer to one call.
type Answer struct {
	Kind    string
	Raw     json.RawMessage // the whole answer as read
	Digest  string          // sha256 of Raw
	Text    string          // for the model
	User    string          // text that the server wants only the user to see
	Cut     int64           // bytes that Text leaves out
	Images  [][]byte        // that Text names in order, as they came
	IsError bool
}

// ReadAnswer reads a stored answer again, with nothing left out.
func ReadAnswer(raw []byte) Answer { return readAnswer(raw, math.MaxInt) }

type result struct {
	Type       string            `json:"resultType"`
	Content    []json.RawMessage `json:"content"`
	Structured json.RawMessage   `json:"structuredContent"`
	IsError    bool              `json:"isError"`
	Task       json.RawMessage   `json:"task"`
}

// readAnswer says what an answer is. It never fails: an answer that cannot be understood is one, too.
func readAnswer(line []byte, limit int) Answer {
	sum := sha256.Sum256(line)
	a := Answer{Raw: line, Digest: hex.EncodeToString(sum[:])}
	var e envelope
	var r result
	switch {
	case json.Unmarshal(line, &e) != nil || present(e.Error) == present(e.Result):
		a.Kind, a.Text = KindMalformed, "The server answered with something that is neither a result nor an error."
	case present(e.Error):
		a.Kind, a.IsError, a.Text = KindProtocolError, true, protocolError(e.Error)
	case json.Unmarshal(e.Result, &r) != nil:
		a.Kind, a.Text = KindMalformed, "The server's result cannot be read: "+strings.ToValidUTF8(string(e.Result), "\uFFFD")
	default:
		a.classify(r)
	}
	a.IsError = a.Kind != KindOK
	a.Text, a.Cut = middle(a.Text, limit)
	a.User, _ = middle(a.User, limit)
	return a
}

// present tells a value from none; null is none.
func present(raw json.RawMessage) bool { return len(raw) > 0 && string(raw) != "null" }

func (a *Answer) classify(r result) {
	a.Kind = KindOK
	switch {
	case r.Type == "input_required":
		a.Kind, a.Text = KindInputRequired, "The server wants input before it goes on. Nothing was sent in reply."
		return
	case r.Type == "task" || present(r.Task):
		a.Kind, a.Text = KindTask, "The server runs this as a task of its own and gave a handle instead of a result."
		return
	case r.Type != "" && r.Type != "complete":
		a.Kind, a.Text = KindMalformed, fmt.Sprintf("The server answered with a kind of result that does not exist (%q).", head(r.Type, 40))
		return
	case r.IsError:
		a.Kind = KindToolError
	}
	a.Text, a.User, a.Images = render(r)
}

func protocolError(raw json.RawMessage) string {
	var e struct {
		Code    json.Number `json:"code"`
		Message string      `json:"message"`
	}
	if json.Unmarshal(raw, &e) != nil || e.Message == "" {
		return "The server answered with an error: " + strings.ToValidUTF8(string(raw), "\uFFFD")
	}
	return fmt.Sprintf("The server answered with an error (%s): %s", e.Code, e.Message)
}

// head is the beginning of a text, never cut inside a character.
func head(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// middle leaves out the middle of a text that is too long, and says so.
func middle(s string, limit int) (short string, cut int64) {
	if len(s) <= limit {
		return s, 0
	}
	first := head(s, limit*7/10)
	from := len(s) - limit*3/10
	for from < len(s) && !utf8.RuneStart(s[from]) {
		from++
	}
	return fmt.Sprintf("%s\n[... %d bytes of the answer are left out here ...]\n%s", first, from-len(first), s[from:]), int64(from - len(first))
}
