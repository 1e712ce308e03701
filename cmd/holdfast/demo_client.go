package main

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
	"time"
)

// demoLimit is how long any one step of the demo may take.
const demoLimit = 2 * time.Minute

// demoAgent is the editor's end of one agent process.
type demoAgent struct {
	d    *demoRun
	cmd  *exec.Cmd
	in   io.WriteCloser
	errs bytes.Buffer

	mu      sync.Mutex
	next    int
	answers map[int]json.RawMessage
	changed chan struct{}
	ended   chan struct{}
}

// launch starts the agent as an editor does.
func (d *demoRun) launch() (*demoAgent, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this binary: %w", err)
	}
	a := &demoAgent{d: d, cmd: exec.Command(self, "acp", "--model", d.model), answers: map[int]json.RawMessage{}, ended: make(chan struct{}), changed: make(chan struct{}, 1)}
	a.cmd.Env = append(os.Environ(), "HOLDFAST_HOME="+d.home)
	a.cmd.Stderr = &a.errs
	if a.in, err = a.cmd.StdinPipe(); err != nil {
		return nil, fmt.Errorf("launch the agent: %w", err)
	}
	out, err := a.cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("launch the agent: %w", err)
	}
	if err := a.cmd.Start(); err != nil {
		return nil, fmt.Errorf("launch the agent: %w", err)
	}
	go a.read(out) // ends with the process; clean waits for it
	return a, a.call("initialize", map[string]any{"protocolVersion": 1, "clientInfo": map[string]any{"name": "holdfast-demo", "version": version}}, nil)
}

type demoMessage struct {
	ID     *json.RawMessage `json:"id"`
	Method string           `json:"method"`
	Params json.RawMessage  `json:"params"`
}

// read takes what the agent sends, and answers its questions as the user of this demo: yes, once.
func (a *demoAgent) read(out io.Reader) {
	r := bufio.NewReaderSize(out, 1<<20)
	for {
		line, err := r.ReadBytes('\n')
		if err != nil {
			break
		}
		var m demoMessage
		if json.Unmarshal(line, &m) != nil {
			continue
		}
		switch {
		case m.Method == "session/request_permission":
			a.permit(m)
		case m.Method == "" && m.ID != nil:
			var id int
			if json.Unmarshal(*m.ID, &id) == nil {
				a.mu.Lock()
				a.answers[id] = line
				a.mu.Unlock()
			}
		}
		select {
		case a.changed <- struct{}{}:
		default:
		}
	}
	_ = a.cmd.Wait() // it may have been killed
	close(a.ended)
}

func (a *demoAgent) permit(m demoMessage) {
	var p struct {
		ToolCall struct {
			Title string `json:"title"`
		} `json:"toolCall"`
		Options []struct {
			OptionID string `json:"optionId"`
			Name     string `json:"name"`
		} `json:"options"`
	}
	option, name := "allow_once", "allow once"
	if json.Unmarshal(m.Params, &p) == nil {
		title, rest, _ := strings.Cut(p.ToolCall.Title, " (asked at ") // a question that waited says since when; the goal is known here
		if i := strings.Index(rest, " [an outcome is unknown: "); i >= 0 {
			title += rest[i:]
		}
		var offered []string
		for _, o := range p.Options {
			offered = append(offered, o.Name)
			if o.OptionID == "it_happened" { // the user of this demo has looked into the ledger
				option, name = o.OptionID, "it happened"
			}
		}
		a.d.say("The agent asks: %s. Offered: %s. Answered: %s.", title, strings.Join(offered, ", "), name)
	}
	a.send(map[string]any{"jsonrpc": "2.0", "id": m.ID, "result": map[string]any{"outcome": map[string]any{"outcome": "selected", "optionId": option}}})
}

func (a *demoAgent) send(v any) {
	b, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("demo: encode %T: %v", v, err))
	}
	_, _ = a.in.Write(append(b, '\n')) // an agent that is gone is noticed by its end
}

// call sends a request and waits for its answer.
func (a *demoAgent) call(method string, params, result any) error {
	a.mu.Lock()
	a.next++
	id := a.next
	a.mu.Unlock()
	a.send(map[string]any{"jsonrpc": "2.0", "id": id, "method": method, "params": params})
	var line json.RawMessage
	err := a.until("an answer to "+method, func() (bool, error) {
		a.mu.Lock()
		defer a.mu.Unlock()
		line = a.answers[id]
		return line != nil, nil
	})
	if err != nil {
		return err
	}
	var m struct {
		Result json.RawMessage `json:"result"`
		Error  *struct {
			Message string `json:"message"`
		} `json:"error"`
	}
	if err := json.Unmarshal(line, &m); err != nil {
		return fmt.Errorf("read the answer to %s: %w", method, err)
	}
	if m.Error != nil {
		return fmt.Errorf("%s: %s", method, m.Error.Message)
	}
	if result == nil {
		return nil
	}
	return json.Unmarshal(m.Result, result)
}

// until waits for a fact.
func (a *demoAgent) until(what string, ok func() (bool, error)) error {
	limit := time.NewTimer(demoLimit)
	defer limit.Stop()
	look := time.NewTicker(30 * time.Millisecond)
	defer look.Stop()
	for {
		if done, err := ok(); done || err != nil {
			return err
		}
		select {
		case <-a.changed:
		case <-look.C:
		case <-a.ended:
			return fmt.Errorf("the agent ended while waiting until %s: %s", what, strings.TrimSpace(a.errs.String()))
		case <-a.d.ctx.Done():
			return errors.New("interrupted")
		case <-limit.C:
			return fmt.Errorf("it took too long until %s", what)
		}
	}
}

// pid is the agent's process id, also after its end.
func (a *demoAgent) pid() int { return a.cmd.Process.Pid }

func (a *demoAgent) kill() {
	_ = a.cmd.Process.Kill() // it may have ended by itself
	<-a.ended
}

// end closes the agent's input, which ends it, and kills it when it does not.
func (a *demoAgent) end() {
	_ = a.in.Close() // it may have been closed with the process
	select {
	case <-a.ended:
	case <-time.After(endWithin):
		a.kill()
	}
}
