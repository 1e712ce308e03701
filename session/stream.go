package session

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"
)

// Streamed text is committed when this much time has passed or this many bytes have gathered, an eighth of a long text, and at every boundary. A crash loses
// at most that, and it was never acknowledged as saved.
const (
	flushEvery = 300 * time.Millisecond
	flushBytes = 4096
	flushShare = 8 // a text is stored whole each time: a long one in larger steps, so that it costs no more than its length
)

// stream is one answer while it arrives. delta is called by the model's goroutine, flushes also by a timer; mu guards both.
type stream struct {
	t      *turn
	req    Request
	native bool // the request holds answers in their native form

	mu      sync.Mutex
	agent   part
	thought part
	timer   *time.Timer
	pending int
	halted  bool
	err     error // of a flush by the timer
}

// part is one message of the answer.
type part struct {
	item   Item
	text   []byte
	stored bool
}

func newStream(t *turn, req Request) *stream {
	s := &stream{t: t, req: req}
	for p, kind := range map[*part]ItemKind{&s.agent: ItemAgent, &s.thought: ItemThought} {
		p.item = Item{ID: ItemID(t.e.NewID()), Kind: kind, State: ItemOpen, Body: ItemBody{Response: req.ID}}
	}
	return s
}

// delta passes a fragment on at once and sees that it is committed soon.
func (s *stream) delta(d Delta) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.t.pulse.beat()
	if s.err != nil {
		return s.err
	}
	p, text := &s.agent, d.Text
	if d.Thought != "" {
		p, text = &s.thought, d.Thought
	}
	if text == "" {
		return nil
	}
	s.t.e.bus.publish(s.t.a.id, Live{Item: p.item.ID, Kind: p.item.Kind, Offset: len(p.text), Text: text, Thread: s.t.setup.Thread, Run: s.t.run.ID})
	p.text = append(p.text, text...)
	s.pending += len(text)
	if s.pending >= max(flushBytes, len(p.text)/flushShare) {
		return s.flush()
	}
	if s.timer == nil {
		s.timer = time.AfterFunc(flushEvery, s.onTimer)
	}
	return nil
}

func (s *stream) onTimer() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.halted {
		return
	}
	if err := s.flush(); err != nil {
		s.err = err
	}
}

// flush commits what has arrived. The caller holds mu.
func (s *stream) flush() error {
	if s.timer != nil {
		s.timer.Stop()
		s.timer = nil
	}
	if s.pending == 0 {
		return nil
	}
	s.pending = 0
	return s.commit(context.Background(), "text.flushed", func(tx Tx) error { return s.putParts(tx, ItemOpen) })
}

// halt ends flushing by the timer; what follows belongs to one goroutine.
func (s *stream) halt() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.halted = true
	if s.timer != nil {
		s.timer.Stop()
	}
}

// commit is the turn's, and keeps track of what is stored by what was committed: a transaction may run again, or not at all.
func (s *stream) commit(ctx context.Context, point string, fn func(Tx) error) error {
	agent, thought := s.agent.stored, s.thought.stored
	back := func() { s.agent.stored, s.thought.stored = agent, thought }
	err := s.t.commit(ctx, point, func(tx Tx) error {
		back()
		return fn(tx)
	})
	if err != nil {
		back()
	}
	return err
}

// putParts writes the thought and the answer as far as they have come.
func (s *stream) putParts(tx Tx, state ItemState) error {
	for _, p := range []*part{&s.thought, &s.agent} {
		if len(p.text) == 0 && (p == &s.thought || state == ItemOpen) {
			continue
		}
		if err := s.put(tx, p, state); err != nil {
			return err
		}
	}
	return nil
}

func (s *stream) put(tx Tx, p *part, state ItemState) error {
	p.item.State, p.item.Body.Text = state, string(p.text)
	if p.stored {
		return tx.UpdateItem(p.item, s.t.e.Now())
	}
	p.stored = true
	return s.t.insert(tx, &p.item, s.t.run, s.t.att)
}

// lost keeps what arrived of an answer that will never be complete, and says what is known about its request.
func (s *stream) lost(ctx context.Context, cause error) error {
	s.req.settle(ModelResponse{}, cause, s.t.e.Now())
	return s.commit(ctx, "response.lost", func(tx Tx) error {
		if err := tx.UpdateRequest(s.req); err != nil {
			return err
		}
		if len(s.agent.text)+len(s.thought.text) > 0 {
			if err := s.putParts(tx, ItemInterrupted); err != nil {
				return err
			}
		}
		if s.refusedNative(cause) {
			return s.forget(tx)
		}
		return nil
	})
}

// settle says what is known about a request that was answered, or failed.
func (r *Request) settle(resp ModelResponse, cause error, now time.Time) {
	r.State, r.SettledAt = RequestUnknown, now
	var me *ModelError
	switch {
	case cause == nil:
		r.Input, r.Output, r.Parts = resp.Usage.Input, resp.Usage.Output, resp.Usage.Parts
		if resp.Usage.Known {
			r.State = RequestSettled
		}
	case errors.As(cause, &me) && me.Status >= 400:
		r.State = RequestSettled // refused: nothing was generated
	}
}

// store commits a complete answer with its calls. An answer without calls ends the turn in the same transaction.
func (s *stream) store(ctx context.Context, resp ModelResponse) (more bool, finish Finish, err error) {
	s.agent.text, s.thought.text = []byte(resp.Text), []byte(resp.Thought)
	s.agent.item.Body.Native = resp.Native
	t := s.t
	s.req.settle(resp, nil, t.e.Now())
	if resp.Usage.Known {
		t.counting = counting{int64(t.size), resp.Usage.Input}
	}
	ends := len(resp.Calls) == 0
	var observed any
	if ends {
		if observed, err = t.driver().Observe(ctx, t.sess, t.run); err != nil {
			return false, "", err
		}
	}
	point := "response.stored"
	if ends {
		point = "turn.ended"
	}
	free := false
	err = s.commit(ctx, point, func(tx Tx) (err error) {
		if err := tx.UpdateRequest(s.req); err != nil {
			return err
		}
		if free, err = t.lifts(tx); err != nil {
			return err
		}
		if err := s.putParts(tx, ItemComplete); err != nil {
			return err
		}
		if err := t.plan(tx, t.run, t.att, s.req.ID, resp.Calls, false); err != nil {
			return err
		}
		if ends {
			if err := s.tellSilence(tx, resp); err != nil {
				return err
			}
			return t.endIn(tx, resp.Finish, observed, 1)
		}
		run, err := tx.Run(t.run.ID)
		if err != nil {
			return err
		}
		run.CommitPoint++
		run.Faults = 0
		t.run = run
		return tx.UpdateRun(run, t.e.Now())
	})
	if err == nil && free {
		t.spread()
	}
	if err == nil && ends {
		err = errEnded
	}
	t.circling(resp.Calls)
	return !ends, resp.Finish, err
}

// tellSilence says it when the answer to a message has nothing in it: otherwise the turn would end without a word.
func (s *stream) tellSilence(tx Tx, resp ModelResponse) error {
	if s.t.run.Kind != RunPrompt || strings.TrimSpace(resp.Text) != "" {
		return nil
	}
	text := "The model's answer is empty."
	if resp.Finish == FinishRefusal {
		text = "The model, or a filter before it, refused to answer."
	}
	return s.t.insert(tx, &Item{Kind: ItemMarker, State: ItemComplete, Body: ItemBody{Text: text}}, s.t.run, s.t.att)
}
