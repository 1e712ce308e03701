package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"
)

// action is what the arguments of a call say. A tool of any name obeys.
type action struct {
	Do     string          `json:"do"`
	N      int             `json:"n"`
	Text   string          `json:"text"`
	Result json.RawMessage `json:"result"`
}

type call struct {
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
	Meta      struct {
		Token json.RawMessage `json:"progressToken"`
	} `json:"_meta"`
}

func (s *server) call(m message) {
	var c call
	_ = json.Unmarshal(m.Params, &c) // what is missing stays empty
	var a action
	_ = json.Unmarshal(c.Arguments, &a)
	if a.Do == "vanish" { // it was read, and nothing was done with it
		os.Exit(a.N)
	}
	if s.plan.Log != "" {
		b, err := json.Marshal(map[string]any{"id": m.ID, "name": c.Name, "do": a.Do, "bytes": len(c.Arguments), "text": a.Text[:min(len(a.Text), 100)]})
		if err != nil {
			panic(err)
		}
		note(s.plan.Log, string(b))
	}
	gone := make(chan struct{})
	s.mu.Lock()
	s.cancelled[string(m.ID)] = gone
	s.mu.Unlock()
	if s.atOnce(m, c, a) {
		return
	}
	go s.slowly(m, c, a, gone)
}

// block does nothing for ever. An empty select would be called a deadlock.
func block() {
	for {
		time.Sleep(time.Hour)
	}
}

func quoted(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return string(b)
}

func text(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return `{"content":[{"type":"text","text":` + string(b) + `}]}`
}

// atOnce does what needs no waiting.
func (s *server) atOnce(m message, c call, a action) bool {
	switch a.Do {
	case "", "ok":
		s.answer(m.ID, text(a.Text))
	case "result":
		s.answer(m.ID, string(a.Result))
	case "line":
		s.line([]byte(strings.ReplaceAll(a.Text, "$id", string(m.ID))))
	case "name":
		s.answer(m.ID, text(c.Name))
	case "refuse":
		s.refuse(m.ID, -32602, a.Text)
	case "hang":
	case "exit":
		os.Exit(a.N)
	case "half": // begins an answer and ends
		_, _ = fmt.Fprintf(os.Stdout, `{"jsonrpc":"2.0","id":%s,"result":{"content":[`, m.ID)
		os.Exit(a.N)
	case "answer_exit": // so much that reading it takes longer than dying
		s.answer(m.ID, text("last words"+strings.Repeat(".", 4<<20)))
		os.Exit(a.N)
	case "close":
		_ = os.Stdout.Close()
		block()
	case "big":
		s.answer(m.ID, text(strings.Repeat("b", a.N)))
	case "wrong_id":
		s.answer(json.RawMessage("999999"), text("for nobody"))
	case "string_id":
		s.answer(json.RawMessage(`"`+string(m.ID)+`"`), text("for somebody"))
	case "twice":
		s.answer(m.ID, text("one"))
		s.answer(m.ID, text("two"))
	case "deaf":
		s.answer(m.ID, text("I do not listen any more"))
		block()
	case "stderr":
		fmt.Fprint(os.Stderr, strings.Repeat("e", a.N)+"\n")
		s.answer(m.ID, text("written"))
	case "env":
		s.answer(m.ID, text(strings.Join(os.Environ(), "\n")))
	case "change":
		var tools []json.RawMessage
		if err := json.Unmarshal(a.Result, &tools); err != nil {
			panic(err)
		}
		s.change(tools)
		s.answer(m.ID, text("changed"))
	case "ask":
		for i := range a.N {
			s.line([]byte(fmt.Sprintf(`{"jsonrpc":"2.0","id":"ask-%d","method":%q,"params":{}}`, i, a.Text)))
		}
		s.answer(m.ID, text("asked"))
	default:
		return false
	}
	return true
}

// slowly does what takes time, while the server goes on reading.
func (s *server) slowly(m message, c call, a action, gone <-chan struct{}) {
	switch a.Do {
	case "flood":
		for i := range a.N {
			s.tell("notifications/message", fmt.Sprintf(`{"level":"info","data":%d}`, i))
			s.tell("notifications/tools/list_changed", "{}")
		}
		s.answer(m.ID, text("flooded"))
	case "progress":
		for i := range a.N {
			time.Sleep(20 * time.Millisecond)
			s.tell("notifications/progress", fmt.Sprintf(`{"progressToken":%s,"progress":%d,"total":%d,"message":%s}`, c.Meta.Token, i+1, a.N, quoted(fmt.Sprintf("step %d%s", i+1, os.Expand(a.Text, os.Getenv)))))
		}
		s.answer(m.ID, text("all done"))
	case "late": // answers only once it was cancelled, and N milliseconds have passed
		<-gone
		time.Sleep(time.Duration(a.N) * time.Millisecond)
		s.answer(m.ID, text("too late"))
	case "held": // answers once the file that the text names is there, whatever was cancelled meanwhile
		await(a.Text)
		s.answer(m.ID, text("held and answered"))
	case "sleep":
		time.Sleep(time.Duration(a.N) * time.Millisecond)
		s.answer(m.ID, text("slept"))
	default:
		s.refuse(m.ID, -32602, "unknown action "+a.Do)
	}
}

func (s *server) cancel(m message) {
	var p struct {
		ID json.RawMessage `json:"requestId"`
	}
	_ = json.Unmarshal(m.Params, &p)
	if s.plan.Log != "" {
		note(s.plan.Log+".cancelled", string(p.ID))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if gone := s.cancelled[string(p.ID)]; gone != nil {
		close(gone)
		delete(s.cancelled, string(p.ID))
	}
}
