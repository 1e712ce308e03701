package harness

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Limit is how long anything may take before a test fails. It is no measure of speed.
const Limit = 30 * time.Second

// Message is one line of the agent.
type Message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  *Error          `json:"error"`
	Raw    []byte          `json:"-"`
}

// Error is the error of a response.
type Error struct {
	Code    int             `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data"`
}

func (e *Error) Error() string { return fmt.Sprintf("%d %s %s", e.Code, e.Message, e.Data) }

// Options of a launch.
type Options struct {
	Binary string
	Args   []string // default: acp
	Env    []string // complete; PATH is added
	Dir    string
	// Permission answers permission requests with an option id. "" leaves them unanswered; nil allows once.
	Permission func(params json.RawMessage) string
	Invalid    bool // do not validate what the agent sends
	// Incoming gets each message as it is read, on the reading goroutine. Whoever sets it answers the agent's requests.
	Incoming func(a *Agent, m Message)
}

// Agent is one running agent with its client.
type Agent struct {
	t     testing.TB
	opt   Options
	cmd   *exec.Cmd
	in    io.WriteCloser
	errs  bytes.Buffer
	ended chan struct{}
	code  error

	mu   sync.Mutex
	cond *sync.Cond
	log  []Message
	next int
	sent map[string]string // method by id, for validating results
}

// Start launches an agent. The test's end kills what is left of it.
func Start(t testing.TB, o Options) *Agent {
	t.Helper()
	if o.Args == nil {
		o.Args = []string{"acp"}
	}
	a := &Agent{t: t, opt: o, ended: make(chan struct{}), sent: map[string]string{}}
	a.cond = sync.NewCond(&a.mu)
	a.cmd = exec.Command(o.Binary, o.Args...)
	a.cmd.Env = append([]string{"PATH=" + os.Getenv("PATH")}, o.Env...)
	a.cmd.Dir = o.Dir
	a.cmd.Stderr = &a.errs
	in, err := a.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := a.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	a.in = in
	if err := a.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go a.read(out)
	t.Cleanup(func() {
		_ = a.cmd.Process.Kill()
		<-a.ended
	})
	return a
}

func (a *Agent) read(out io.Reader) {
	r := bufio.NewReaderSize(out, 1<<20)
	for {
		line, err := r.ReadBytes('\n')
		if len(line) > 0 {
			a.take(line)
		}
		if err != nil {
			break
		}
	}
	a.code = a.cmd.Wait()
	close(a.ended)
	a.mu.Lock()
	a.cond.Broadcast()
	a.mu.Unlock()
}

func (a *Agent) take(line []byte) {
	m := Message{Raw: bytes.TrimSpace(line)}
	if err := json.Unmarshal(line, &m); err != nil {
		if len(line) > 0 && line[len(line)-1] == '\n' { // a killed agent may leave half a line
			a.t.Errorf("stdout holds a line that is not JSON: %q", line)
		}
		return
	}
	a.mu.Lock()
	method := m.Method
	if method == "" {
		method = a.sent[string(m.ID)]
	}
	a.log = append(a.log, m)
	a.cond.Broadcast()
	a.mu.Unlock()
	if !a.opt.Invalid {
		if err := Validate(method, m); err != nil {
			a.t.Errorf("the agent sent what the schema refuses: %v\n%s", err, m.Raw)
		}
	}
	if a.opt.Incoming != nil {
		a.opt.Incoming(a, m)
		return
	}
	if m.Method == "session/request_permission" {
		option := "allow_once"
		if a.opt.Permission != nil {
			option = a.opt.Permission(m.Params)
		}
		if option != "" {
			a.Answer(m.ID, map[string]any{"outcome": map[string]any{"outcome": "selected", "optionId": option}})
		}
	}
}

// Answer replies to a request of the agent.
func (a *Agent) Answer(id json.RawMessage, result any) {
	a.Send(map[string]any{"jsonrpc": "2.0", "id": id, "result": result})
}

// Send writes one message. A dead agent is not an error here.
func (a *Agent) Send(v any) {
	b, err := json.Marshal(v)
	if err != nil {
		a.t.Fatal(err)
	}
	a.SendLine(b)
}

// SendLine writes one line as it is.
func (a *Agent) SendLine(b []byte) {
	if _, err := a.in.Write(append(bytes.Clone(b), '\n')); err != nil && !errors.Is(err, syscall.EPIPE) && !errors.Is(err, os.ErrClosed) {
		a.t.Logf("write to the agent: %v", err)
	}
}

// Begin sends a request and returns its id.
func (a *Agent) Begin(method string, params any) string {
	a.mu.Lock()
	a.next++
	id := fmt.Sprint(a.next)
	a.sent[id] = method
	a.mu.Unlock()
	a.Send(map[string]any{"jsonrpc": "2.0", "id": json.RawMessage(id), "method": method, "params": params})
	return id
}

// Notify sends a notification.
func (a *Agent) Notify(method string, params any) {
	a.Send(map[string]any{"jsonrpc": "2.0", "method": method, "params": params})
}

// Await waits for the answer to a request.
func (a *Agent) Await(id string) Message {
	a.t.Helper()
	m, ok := a.Find(func(m Message) bool { return m.Method == "" && string(m.ID) == id })
	if !ok {
		a.t.Fatalf("no answer to request %s (%s); stderr: %s", id, a.sent[id], a.errs.String())
	}
	return m
}

// Call sends a request and returns its result, or the error.
func (a *Agent) Call(method string, params any) (json.RawMessage, *Error) {
	a.t.Helper()
	m := a.Await(a.Begin(method, params))
	return m.Result, m.Error
}

// Must is Call for what has to succeed; it decodes the result into v when v is not nil.
func (a *Agent) Must(method string, params, v any) {
	a.t.Helper()
	raw, e := a.Call(method, params)
	if e != nil {
		a.t.Fatalf("%s: %v", method, e)
	}
	if v != nil {
		if err := json.Unmarshal(raw, v); err != nil {
			a.t.Fatalf("%s: %v", method, err)
		}
	}
}

// Find waits for a message; false when the agent ended or the limit passed first.
func (a *Agent) Find(want func(Message) bool) (Message, bool) {
	timer := time.AfterFunc(Limit, func() { a.mu.Lock(); defer a.mu.Unlock(); a.cond.Broadcast() })
	defer timer.Stop()
	end := time.Now().Add(Limit)
	a.mu.Lock()
	defer a.mu.Unlock()
	for seen := 0; ; {
		for ; seen < len(a.log); seen++ {
			if want(a.log[seen]) {
				return a.log[seen], true
			}
		}
		select {
		case <-a.ended:
			return Message{}, false
		default:
		}
		if time.Now().After(end) {
			return Message{}, false
		}
		a.cond.Wait()
	}
}

// Log returns everything the agent has sent so far.
func (a *Agent) Log() []Message {
	a.mu.Lock()
	defer a.mu.Unlock()
	return append([]Message(nil), a.log...)
}

// Updates returns the updates of a session so far.
func (a *Agent) Updates(session string) []json.RawMessage {
	var out []json.RawMessage
	for _, m := range a.Log() {
		var p struct {
			SessionID string          `json:"sessionId"`
			Update    json.RawMessage `json:"update"`
		}
		if m.Method == "session/update" && json.Unmarshal(m.Params, &p) == nil && p.SessionID == session {
			out = append(out, p.Update)
		}
	}
	return out
}

// Text joins what the agent said in a session.
func (a *Agent) Text(session string) string {
	var b strings.Builder
	for _, u := range a.Updates(session) {
		var c struct {
			Kind    string `json:"sessionUpdate"`
			Content struct {
				Text string `json:"text"`
			} `json:"content"`
		}
		if json.Unmarshal(u, &c) == nil && c.Kind == "agent_message_chunk" {
			b.WriteString(c.Content.Text)
		}
	}
	return b.String()
}

// Initialize says hello as protocol version 1.
func (a *Agent) Initialize() {
	a.t.Helper()
	a.Must("initialize", map[string]any{"protocolVersion": 1, "clientCapabilities": map[string]any{}}, nil)
}

// NewSession opens a session.
func (a *Agent) NewSession(cwd string) string {
	a.t.Helper()
	var r struct {
		SessionID string `json:"sessionId"`
	}
	a.Must("session/new", map[string]any{"cwd": cwd, "mcpServers": []any{}}, &r)
	return r.SessionID
}

// Prompt starts a prompt and returns its id.
func (a *Agent) Prompt(session, text string) string {
	return a.Begin("session/prompt", map[string]any{"sessionId": session, "prompt": []any{map[string]any{"type": "text", "text": text}}})
}

// PID of the agent.
func (a *Agent) PID() int { return a.cmd.Process.Pid }

// Kill sends SIGKILL and waits for the end.
func (a *Agent) Kill() {
	_ = a.cmd.Process.Kill()
	<-a.ended
}

// Signal sends a signal.
func (a *Agent) Signal(s syscall.Signal) {
	if err := a.cmd.Process.Signal(s); err != nil {
		a.t.Fatal(err)
	}
}

// CloseInput ends the agent's input and returns how it ended.
func (a *Agent) CloseInput() error {
	_ = a.in.Close()
	return a.Wait()
}

// Wait waits for the agent's end.
func (a *Agent) Wait() error {
	select {
	case <-a.ended:
		return a.code
	case <-time.After(Limit):
		a.t.Fatalf("the agent did not end")
		return nil
	}
}

// Stderr is what the agent wrote there; valid after its end.
func (a *Agent) Stderr() string {
	<-a.ended
	return a.errs.String()
}

// Eventually polls until ok or the limit.
func Eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(Limit); !ok(); {
		if time.Now().After(end) {
			t.Fatalf("it did not happen: %s", what)
		}
		<-time.After(10 * time.Millisecond)
	}
}

// Ended is closed when the agent has ended.
func (a *Agent) Ended() <-chan struct{} { return a.ended }
