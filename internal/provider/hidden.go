package provider

import (
	"context"
	"errors"

	"holdfast/internal/secret"
	"holdfast/session"
)

// Hidden is a model at whose border secrets are masked: what it is asked, what it answers, and what an endpoint says of a refusal.
func Hidden(m session.Model, mask *secret.Masker) session.Model { return hidden{m, mask} }

type hidden struct {
	session.Model
	mask *secret.Masker
}

// Stream implements session.Model.
func (h hidden) Stream(ctx context.Context, req session.ModelRequest, onDelta func(session.Delta) error) (session.ModelResponse, error) {
	text, thought := h.mask.Stream(), h.mask.Stream()
	pass := func(d session.Delta) error {
		if d == (session.Delta{}) {
			return nil
		}
		return onDelta(d)
	}
	resp, err := h.Model.Stream(ctx, h.request(req), func(d session.Delta) error {
		if d.Thought != "" {
			return errors.Join(pass(session.Delta{Text: text.Pause()}), pass(session.Delta{Thought: thought.Write(d.Thought)}))
		}
		return errors.Join(pass(session.Delta{Thought: thought.Pause()}), pass(session.Delta{Text: text.Write(d.Text)}))
	})
	if err != nil { // what is held back may be the beginning of a secret whose end never came
		return resp, h.failed(err)
	}
	for _, d := range []session.Delta{{Thought: thought.Close()}, {Text: text.Close()}} {
		if err := pass(d); err != nil {
			return session.ModelResponse{}, err
		}
	}
	return h.response(resp), nil
}

// request is a request without secrets. An answer in its provider's own form goes back as it came, or not at all: some check signatures.
func (h hidden) request(req session.ModelRequest) session.ModelRequest {
	req.System = h.mask.Text(req.System)
	messages := make([]session.Message, len(req.Messages))
	for i, m := range req.Messages {
		native := m.Native
		m.Native = nil
		m = secret.Hide(h.mask, m)
		if native != nil && !h.holds(native) {
			m.Native = native
		}
		messages[i] = m
	}
	req.Messages = messages
	req.Tools = secret.Hide(h.mask, req.Tools)
	return req
}

func (h hidden) holds(n *session.Native) bool {
	for _, b := range n.Blocks {
		if h.mask.Has(string(b)) {
			return true
		}
	}
	return false
}

// response is an answer without secrets. The arguments of calls lose known values only: what else looks like a key there the model made up,
// and a file shall get it as it was meant.
func (h hidden) response(r session.ModelResponse) session.ModelResponse {
	text, thought := h.mask.Text(r.Text), h.mask.Text(r.Thought)
	if text != r.Text || thought != r.Thought {
		r.Native = nil
	}
	r.Text, r.Thought = text, thought
	calls := secret.Hide(h.mask, r.Calls)
	if r.Native != nil && h.holds(r.Native) {
		r.Native = nil
	}
	r.Calls = calls
	return r
}

func (h hidden) failed(err error) error {
	var me *session.ModelError
	if !errors.As(err, &me) || h.mask.Text(me.Message) == me.Message {
		return err
	}
	masked := *me
	masked.Message = h.mask.Text(me.Message)
	return &masked
}
