package provider

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"unicode/utf8"

	"holdfast/internal/secret"
	"holdfast/session"
)

// scriptRule is a rule as it is written. Its texts lose what looks like a secret too, in arguments as well: the file is made to be passed on.
type scriptRule struct {
	When   scriptWhen      `json:"when"`
	Think  string          `json:"think,omitempty"`
	Say    *string         `json:"say,omitempty"`
	Calls  []scriptCallOut `json:"calls,omitempty"`
	Chunks int             `json:"chunks,omitempty"`
	Delay  int64           `json:"delay_ms,omitempty"`
	Finish session.Finish  `json:"finish,omitempty"`
	Usage  *scriptUsage    `json:"usage,omitempty"`
	Error  *scriptError    `json:"error,omitempty"`
}

type scriptWhen struct {
	User        string   `json:"user,omitempty"`
	Users       int      `json:"users"`
	Results     int      `json:"results"`
	TurnResults int      `json:"turn_results"`
	Faults      int      `json:"faults"`
	Tools       []string `json:"tools,omitempty"`
}

type scriptCallOut struct {
	Name string `json:"name"`
	Args any    `json:"args"`
}

// scriptUsage leaves out what is unknown: a script that says 0 would know it.
type scriptUsage struct {
	Input      int64  `json:"inputTokens"`
	Output     int64  `json:"outputTokens"`
	CacheRead  *int64 `json:"cacheReadTokens,omitempty"`
	CacheWrite *int64 `json:"cacheWriteTokens,omitempty"`
	Reasoning  *int64 `json:"reasoningTokens,omitempty"`
}

type scriptError struct {
	Kind       session.ModelErrorKind `json:"kind"`
	Message    string                 `json:"message"`
	RetryAfter int64                  `json:"retry_after_ms,omitempty"`
}

// maxUser bounds how much of a message singles a request out. A transcript to be summarised is told from the next by more than its first line.
const maxUser = 300

// whenOf says what singles a request out: its place in its conversation, and how its last message begins.
func whenOf(req session.ModelRequest) scriptWhen {
	s := survey(req)
	w := scriptWhen{Users: s.users, Results: s.results, TurnResults: s.turnResults, Faults: s.faults}
	for _, name := range []string{"update_goal", "submit_review"} { // a goal is two conversations
		if s.tools[name] {
			w.Tools = append(w.Tools, name)
		}
	}
	text := s.user
	if len(req.Tools) > 0 {
		text, _, _ = strings.Cut(text, "\n")
	}
	if cwd := rooted(req.Cwd); cwd != "" { // not the same when it is played
		text, _, _ = strings.Cut(text, cwd)
	}
	for len(text) > maxUser || !utf8.ValidString(text) {
		text = text[:min(len(text)-1, maxUser)]
	}
	w.User = text
	return w
}

func (w scriptWhen) condition() condition {
	return condition{user: &w.User, tools: w.Tools, users: &w.Users, results: &w.Results, turnResults: &w.TurnResults, faults: &w.Faults}
}

func (w scriptWhen) same(o scriptWhen) bool {
	return w.User == o.User && w.Users == o.Users && w.Results == o.Results && w.TurnResults == o.TurnResults && w.Faults == o.Faults &&
		strings.Join(w.Tools, ",") == strings.Join(o.Tools, ",")
}

func (r *scriptRule) answer(resp session.ModelResponse, req session.ModelRequest) {
	r.says(resp.Thought, resp.Text, req.Cwd)
	ids := numbered(req.Messages)
	for _, c := range resp.Calls {
		r.Calls = append(r.Calls, recordCall(c, req.Cwd, ids))
	}
	if resp.Finish != session.FinishStop && len(resp.Calls) == 0 {
		r.Finish = resp.Finish
	}
	if *r.Say == "" && len(r.Calls) > 0 {
		r.Say = nil
	}
	if u := resp.Usage; u.Known {
		r.Usage = &scriptUsage{u.Input, u.Output, u.CacheRead.Pointer(), u.CacheWrite.Pointer(), u.Reasoning.Pointer()}
	}
}

// failure keeps what came before an error, and the error.
func (r *scriptRule) failure(h pieces, e *session.ModelError, cwd string) {
	if r.says(string(h.thought), string(h.text), cwd); *r.Say == "" {
		r.Say = nil
	}
	kind := e.Kind
	if _, known := faultStatus[kind]; !known {
		kind = session.ModelBadRequest
	}
	r.Error = &scriptError{Kind: kind, Message: e.Message, RetryAfter: min(e.RetryAfter, maxRetryAfter).Milliseconds()}
}

// stopped is an answer that the user stopped: it is played as far as it had come.
func (r *scriptRule) stopped(h pieces, cwd string) { r.says(string(h.thought), string(h.text), cwd) }

func (r *scriptRule) says(thought, text, cwd string) {
	r.Think = templated(thought, cwd)
	text = templated(text, cwd)
	r.Say = &text
}

// recordCall keeps arguments as an object when they are one.
func recordCall(c session.Call, cwd string, ids *strings.Replacer) scriptCallOut {
	put := func(text string) string { return templated(ids.Replace(text), cwd) }
	d := json.NewDecoder(strings.NewReader(c.Args))
	d.UseNumber()
	var object map[string]any
	if err := d.Decode(&object); err != nil || object == nil || d.More() {
		return scriptCallOut{Name: c.Name, Args: put(c.Args)}
	}
	return scriptCallOut{Name: c.Name, Args: eachString(object, put)}
}

// numbered replaces the ids of a conversation's calls by those that a script gives them.
func numbered(messages []session.Message) *strings.Replacer {
	const shortest = 8 // anything less may be a word of a text
	var pairs []string
	n := 0
	for _, m := range messages {
		for _, c := range m.Calls {
			if n++; len(c.ID) >= shortest {
				pairs = append(pairs, c.ID, "call_"+strconv.Itoa(n))
			}
		}
	}
	return strings.NewReplacer(pairs...)
}

// rooted is a directory that can be told from any other text; "" is none.
func rooted(cwd string) string {
	if len(cwd) < 2 || filepath.Dir(cwd) == cwd {
		return ""
	}
	return cwd
}

// templated writes a text so that a script gives it back, with the session's directory as ${cwd}.
func templated(text, cwd string) string {
	var b strings.Builder
	for cwd = rooted(cwd); ; {
		i := -1
		if cwd != "" {
			i = strings.Index(text, cwd)
		}
		if i < 0 {
			b.WriteString(literal(text))
			return b.String()
		}
		b.WriteString(literal(text[:i]))
		rest := text[i+len(cwd):]
		if partOfName(rest) || strings.HasSuffix(text[:i], "$") {
			b.WriteString(literal(cwd))
		} else {
			b.WriteString("${cwd}")
		}
		text = rest
	}
}

func literal(text string) string { return strings.ReplaceAll(text, "${", "$${") }

// partOfName tells whether a text goes on with a name, so that what stands before it is the beginning of another directory's.
func partOfName(rest string) bool {
	if rest == "" {
		return false
	}
	c := rest[0]
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-' || c >= utf8.RuneSelf
}

func encodeScript(rules []scriptRule) []byte {
	out := []scriptRule{}
	for _, r := range rules {
		r.When.User, _, _ = strings.Cut(r.When.User, secret.Mask) // where it is played, the secret may be another
		out = append(out, r)
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(map[string]any{"rules": out}); err != nil {
		panic(fmt.Sprintf("provider: encode a script: %v", err))
	}
	return b.Bytes()
}

// beginRecording makes the file whole under its name, or not at all.
func beginRecording(path string, over bool, data []byte) error {
	if over {
		return replaceRecording(path, data)
	}
	tmp, err := asideOf(path, data)
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(tmp) }()
	if err := os.Link(tmp, path); err == nil {
		return nil
	}
	// It is there already, or the file system has no links.
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if os.IsExist(err) {
		return fmt.Errorf("the recording %s is there already: name another file, or say --record-over to replace it", path)
	}
	if err != nil {
		return fmt.Errorf("begin the recording: %w", err)
	}
	_ = f.Close()
	return replaceRecording(path, data)
}

// replaceRecording puts a whole file in the place of the last one: whoever reads it, also after a kill, finds one of both.
func replaceRecording(path string, data []byte) error {
	tmp, err := asideOf(path, data)
	if err != nil {
		return err
	}
	if err := os.Rename(tmp, path); err != nil {
		_ = os.Remove(tmp)
		return fmt.Errorf("write the recording: %w", err)
	}
	return nil
}

// asideOf writes a file beside another one, readable for its owner only.
func asideOf(path string, data []byte) (string, error) {
	f, err := os.CreateTemp(filepath.Dir(path), ".holdfast-record-*")
	if err != nil {
		return "", fmt.Errorf("write the recording: %w", err)
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	if e := f.Close(); err == nil {
		err = e
	}
	if err != nil {
		_ = os.Remove(f.Name())
		return "", fmt.Errorf("write the recording: %w", err)
	}
	return f.Name(), nil
}
