// Command mcpserver is an MCP server that misbehaves as it is told. It is written from the specification alone, with no library, so that
// it can do what none would do.
//
// The flag -plan holds a JSON object, see [plan]. Every tools/call is appended to the file of the plan's log before anything else happens
// with it: that file is the proof of what was sent.
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"
)

// plan is how this server behaves.
type plan struct {
	Log        string            `json:"log"`        // one line for each tools/call
	Lives      string            `json:"lives"`      // one line "PID" for each start
	Discover   string            `json:"discover"`   // modern, empty, die, silent; otherwise the method is unknown
	Initialize string            `json:"initialize"` // refuse, silent; otherwise it is answered
	Tools      []json.RawMessage `json:"tools"`
	Evolve     bool              `json:"evolve"`      // each life describes the tool act in its own way
	Pages      string            `json:"pages"`       // endless, repeating; otherwise there is one page
	ChangeWhen string            `json:"change_when"` // a file; once it is there, the tools are the changed ones
	Changed    []json.RawMessage `json:"changed_tools"`
	List       string            `json:"list"`       // silent
	StartMS    int               `json:"start_ms"`   // before anything is read
	StartWhen  string            `json:"start_when"` // a file that has to be there before anything is read
	ExitAt     string            `json:"exit_at"`    // start
	Stderr     int               `json:"stderr"`     // bytes at the start
	Say        string            `json:"say"`        // a line on stderr at the start
	Noise      []string          `json:"noise"`      // lines on stdout at the start
	IgnoreEOF  bool              `json:"ignore_eof"`
	IgnoreTerm bool              `json:"ignore_term"`
	Deaf       bool              `json:"deaf"` // stops reading after it has listed its tools
}

type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
}

type server struct {
	plan plan

	mu        sync.Mutex
	out       *os.File
	tools     []json.RawMessage
	listed    int
	cancelled map[string]chan struct{} // by request id
}

func main() {
	text := flag.String("plan", "{}", "how to behave, as JSON")
	flag.Parse()
	s := &server{out: os.Stdout, cancelled: map[string]chan struct{}{}}
	if err := json.Unmarshal([]byte(*text), &s.plan); err != nil {
		fmt.Fprintln(os.Stderr, "plan:", err)
		os.Exit(2)
	}
	s.begin()
	if s.plan.ChangeWhen != "" {
		go func() { await(s.plan.ChangeWhen); s.change(s.plan.Changed) }()
	}
	s.serve()
	if s.plan.IgnoreEOF {
		block()
	}
}

func (s *server) begin() {
	if s.plan.IgnoreTerm {
		signal.Ignore(syscall.SIGTERM)
	}
	if s.plan.Lives != "" {
		note(s.plan.Lives, fmt.Sprint(os.Getpid()))
	}
	if s.plan.Say != "" {
		fmt.Fprintln(os.Stderr, s.plan.Say)
	}
	if s.plan.Stderr > 0 {
		fmt.Fprintln(os.Stderr, strings.Repeat("e", s.plan.Stderr))
	}
	if s.plan.ExitAt == "start" {
		os.Exit(3)
	}
	time.Sleep(time.Duration(s.plan.StartMS) * time.Millisecond)
	if s.plan.StartWhen != "" {
		await(s.plan.StartWhen)
	}
	for _, line := range s.plan.Noise {
		s.line([]byte(line))
	}
	if s.tools = s.plan.Tools; s.tools == nil {
		tool := actTool
		if s.plan.Evolve {
			tool = strings.Replace(tool, "Does", fmt.Sprintf("In life %d it does", os.Getpid()), 1)
		}
		s.tools = []json.RawMessage{json.RawMessage(tool)}
	}
}

const actTool = `{"name":"act","description":"Does what it is told.","inputSchema":{"type":"object","properties":{` +
	`"do":{"type":"string"},"n":{"type":"integer"},"text":{"type":"string"},"result":{}},"required":["do"]}}`

func (s *server) serve() {
	in := bufio.NewReader(os.Stdin)
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return
		}
		var m message
		if json.Unmarshal(line, &m) != nil {
			continue
		}
		s.handle(m)
		if s.plan.Deaf && m.Method == "tools/list" {
			block()
		}
	}
}

func (s *server) handle(m message) {
	switch m.Method {
	case "server/discover":
		s.discover(m)
	case "initialize":
		s.initialize(m)
	case "tools/list":
		s.list(m)
	case "tools/call":
		s.call(m)
	case "notifications/cancelled":
		s.cancel(m)
	case "subscriptions/listen", "notifications/initialized", "":
	default:
		s.refuse(m.ID, -32601, "no such method")
	}
}

func (s *server) discover(m message) {
	switch s.plan.Discover {
	case "modern":
		s.answer(m.ID, `{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{"listChanged":true}},"resultType":"complete"}`)
	case "empty":
		s.answer(m.ID, `{}`)
	case "die":
		os.Exit(4)
	case "silent":
	default:
		s.refuse(m.ID, -32601, "no such method")
	}
}

func (s *server) initialize(m message) {
	switch s.plan.Initialize {
	case "refuse":
		s.refuse(m.ID, -32601, "there is no handshake any more")
	case "silent":
	default:
		s.answer(m.ID, `{"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"hostile","version":"0"}}`)
	}
}

func (s *server) list(m message) {
	if s.plan.List == "silent" {
		return
	}
	s.mu.Lock()
	s.listed++
	tools, n := s.tools, s.listed
	s.mu.Unlock()
	if s.plan.Log != "" {
		note(s.plan.Log+".lists", fmt.Sprint(n))
	}
	b, err := json.Marshal(map[string]any{"tools": tools})
	if err != nil {
		panic(err)
	}
	switch s.plan.Pages {
	case "endless":
		b = []byte(fmt.Sprintf(`{"tools":[],"nextCursor":"%d"}`, n))
	case "repeating":
		b = []byte(`{"tools":[],"nextCursor":"again"}`)
	}
	s.answer(m.ID, string(b))
}

func (s *server) answer(id json.RawMessage, result string) {
	s.line([]byte(`{"jsonrpc":"2.0","id":` + string(id) + `,"result":` + result + `}`))
}

func (s *server) refuse(id json.RawMessage, code int, text string) {
	s.line([]byte(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":%q}}`, id, code, text)))
}

func (s *server) tell(method, params string) {
	s.line([]byte(`{"jsonrpc":"2.0","method":"` + method + `","params":` + params + `}`))
}

func (s *server) line(b []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, _ = s.out.Write(append(b, '\n')) // nobody reads any more
}

func (s *server) change(tools []json.RawMessage) {
	s.mu.Lock()
	s.tools = tools
	s.mu.Unlock()
	s.tell("notifications/tools/list_changed", "{}")
}

// note appends a line that survives our death in the next moment.
func note(path, text string) {
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY|os.O_SYNC, 0o600)
	if err != nil {
		panic(err)
	}
	defer func() { _ = f.Close() }()
	if _, err := f.WriteString(text + "\n"); err != nil {
		panic(err)
	}
}

// await returns once a file is there, or ends the process when nobody is left who could make it.
func await(path string) {
	for range 6000 {
		if _, err := os.Stat(path); err == nil {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	os.Exit(5)
}
