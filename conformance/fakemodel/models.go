package fakemodel

import (
	"cmp"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Listing is what the server says when it is asked for its models.
type Listing struct {
	Models []Listed
	Status int           // of a refusal; 0 lists them
	Body   string        // of a refusal, or instead of a list
	Hang   chan struct{} // it says nothing before this is closed, or its client is gone
	Key    string        // what it wants; "" is content with everybody
	Page   int           // how many it gives at once on the messages wire; 0 for as many as it is asked for
}

// Listed is one model. Zero figures are not said.
type Listed struct {
	ID              string
	Context, Output int
}

// Lists lets the server list these models. Without it there is one, named fake.
func (s *Server) Lists(l Listing) *Server {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.listing = l
	return s
}

// list answers both wires, which share the path: the messages wire names its version.
func (s *Server) list(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	l := s.listing
	s.mu.Unlock()
	if l.Hang != nil {
		select {
		case <-l.Hang:
		case <-r.Context().Done():
			return
		}
	}
	messages := r.Header.Get("Anthropic-Version") != ""
	given := cmp.Or(r.Header.Get("X-Api-Key"), strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")) // the messages wire takes both
	switch {
	case l.Status != 0 || l.Body != "":
		if l.Status != 0 {
			w.WriteHeader(l.Status)
		}
		_, _ = w.Write([]byte(l.Body)) // the client may be gone
		return
	case l.Key != "" && given != l.Key:
		writeJSON(w, http.StatusUnauthorized, map[string]any{"error": map[string]any{"message": "Incorrect API key provided: " + given + ".", "type": "authentication_error"}})
		return
	}
	if l.Models == nil {
		l.Models = []Listed{{ID: "fake"}}
	}
	if messages {
		writeJSON(w, http.StatusOK, l.messages(r))
		return
	}
	data := []any{}
	for _, m := range l.Models {
		data = append(data, map[string]any{"id": m.ID, "object": "model", "created": 1, "owned_by": "fake"})
	}
	writeJSON(w, http.StatusOK, map[string]any{"object": "list", "data": data})
}

// messages is one page of the list on the messages wire.
func (l Listing) messages(r *http.Request) any {
	q := r.URL.Query()
	from := 1 + slices.IndexFunc(l.Models, func(m Listed) bool { return m.ID == q.Get("after_id") })
	n, err := strconv.Atoi(q.Get("limit"))
	if err != nil || n < 1 || n > 1000 {
		n = 20
	}
	if l.Page > 0 {
		n = min(n, l.Page)
	}
	page := l.Models[from:min(len(l.Models), from+n)]
	data := []any{}
	for _, m := range page {
		d := map[string]any{"type": "model", "id": m.ID, "display_name": m.ID, "created_at": time.Unix(0, 0).UTC()}
		if m.Context > 0 {
			d["max_input_tokens"] = m.Context
		}
		if m.Output > 0 {
			d["max_tokens"] = m.Output
		}
		data = append(data, d)
	}
	out := map[string]any{"data": data, "has_more": from+n < len(l.Models), "first_id": nil, "last_id": nil}
	if len(page) > 0 {
		out["first_id"], out["last_id"] = page[0].ID, page[len(page)-1].ID
	}
	return out
}
