package provider

import (
	"context"
	"errors"
	"sync"
	"time"
	"unicode/utf8"

	"holdfast/internal/secret"
	"holdfast/session"
)

// Recorder keeps what models answer as a script that plays the same again. One is used for all sessions of a process.
type Recorder struct {
	mask *secret.Masker
	path string
	fail func(error) // hears the first time that the file could not be written

	mu     sync.Mutex
	rules  []scriptRule
	failed bool
}

// NewRecorder begins a file. One that is there is replaced only with over set.
func NewRecorder(path string, over bool, mask *secret.Masker, fail func(error)) (*Recorder, error) {
	r := &Recorder{mask: mask, path: path, fail: fail}
	if err := beginRecording(path, over, r.bytes()); err != nil {
		return nil, err
	}
	return r, nil
}

// Wrap returns a model whose answers are recorded. The model's own secrets must be masked already, as Hidden does.
func (r *Recorder) Wrap(m session.Model) session.Model { return recorded{m, r} }

type recorded struct {
	session.Model
	to *Recorder
}

// Stream implements session.Model. The answer is kept before it is returned, so that nobody acts on one that is not in the file.
func (m recorded) Stream(ctx context.Context, req session.ModelRequest, onDelta func(session.Delta) error) (session.ModelResponse, error) {
	var h pieces
	began := time.Now()
	resp, err := m.Model.Stream(ctx, req, func(d session.Delta) error {
		h.add(d)
		return onDelta(d)
	})
	h.took = time.Since(began)
	rule := scriptRule{When: whenOf(req)}
	var me *session.ModelError
	switch {
	case err == nil:
		rule.answer(resp, req)
	case errors.As(err, &me):
		rule.failure(h, me, req.Cwd)
	case len(h.text) == 0: // stopped before anything came
		return resp, err
	default:
		rule.stopped(h, req.Cwd)
	}
	rule.pace(h)
	m.to.add(rule, survey(req))
	return resp, err
}

// pieces are what came of an answer.
type pieces struct {
	text, thought   []byte
	texts, thoughts int // deltas
	took            time.Duration
}

func (h *pieces) add(d session.Delta) {
	if d.Thought != "" {
		h.thought = append(h.thought, d.Thought...)
		h.thoughts++
		return
	}
	h.text = append(h.text, d.Text...)
	h.texts++
}

// add puts a rule where it is the first that holds for its request. Of two for the same request the first counts, an answer before an error:
// what the request says cannot tell them apart.
func (r *Recorder) add(rule scriptRule, s surveyed) {
	r.mu.Lock()
	defer r.mu.Unlock()
	at := len(r.rules)
	for i, old := range r.rules {
		if !old.When.condition().holds(s) {
			continue
		}
		if old.When.same(rule.When) {
			if old.Error == nil || rule.Error != nil {
				return
			}
			r.rules[i] = rule
			r.write()
			return
		}
		at = i
		break
	}
	r.rules = append(r.rules[:at], append([]scriptRule{rule}, r.rules[at:]...)...)
	r.write()
}

// write puts the whole script into the file. Work does not fail because its recording does.
func (r *Recorder) write() {
	data := r.bytes()
	err := errors.New("the recording is larger than a script may be; its newest answers are not in it")
	if len(data) <= maxScript {
		err = replaceRecording(r.path, data)
	}
	if err != nil && !r.failed {
		r.failed = true
		r.fail(err)
	}
}

// bytes is the script. It is masked anew each time: a value may have become known since.
func (r *Recorder) bytes() []byte {
	return encodeScript(secret.Hide(r.mask, r.rules))
}

// pace spreads the time that an answer took over its deltas, rounded to 5 ms.
func (r *scriptRule) pace(h pieces) {
	n := max(h.texts, h.thoughts, 1)
	n = min(n, maxChunks)
	if n > 1 {
		r.Chunks = n
	}
	const step = 5 * time.Millisecond
	deltas := min(n, utf8.RuneCount(h.text)) + min(n, utf8.RuneCount(h.thought)) + 1
	d := (h.took / time.Duration(deltas)).Round(step)
	r.Delay = min(d, maxDelay).Milliseconds()
}
