package fakemodel

import (
	"crypto/sha256"
	"encoding/json"
)

// The cache as the services have it. Chat completions and responses keep the beginning of every request, and charge a later one less as far as
// it begins with the same bytes, in steps and from a least length on. The messages wire keeps what lies before a mark, and looks from each mark
// some blocks back for what it kept. Both look at tools first, then at what the system says, then at the conversation.
const (
	bytesPerToken = 4
	cacheLeast    = 1024 // tokens
	cacheStep     = 128  // tokens
	cacheBack     = 20   // blocks
)

// cache is what the server has kept.
type cache struct {
	begun map[string][][]byte // by the name that the request gives the cache: beginnings
	kept  map[[32]byte]bool   // messages wire: digests of all up to a mark
}

// piece is one part of a request in the order in which the service reads it. mark is where the messages wire keeps what came so far.
type piece struct {
	raw  []byte
	mark bool
}

// Cache lets the server count what requests have in common, by their bytes, and report that instead of what replies say of their input.
func (s *Server) Cache() *Server {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cache = &cache{begun: map[string][][]byte{}, kept: map[[32]byte]bool{}}
	return s
}

// counted is a reply with the usage as the service would count it. A refused request is neither counted nor kept.
func (s *Server) counted(req Request, reply Reply) Reply {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cache == nil || reply.Usage == nil || reply.Status != 0 || reply.Page != "" {
		return reply
	}
	u := *reply.Usage
	if req.Family == "anthropic" {
		u.Prompt, u.CacheRead, u.CacheWrite = s.cache.marked(pieces(req))
	} else {
		u.Prompt, u.CacheRead = s.cache.prefix(req.CacheKey, pieces(req))
		u.CacheWrite = 0
	}
	reply.Usage, s.requests[req.N-1].Counted = &u, &u
	return reply
}

func (c *cache) prefix(name string, all []piece) (rest, read int64) {
	var whole []byte
	for _, p := range all {
		whole = append(append(whole, p.raw...), '\n')
	}
	for _, before := range c.begun[name] {
		read = max(read, int64(alike(before, whole))/bytesPerToken/cacheStep*cacheStep)
	}
	if read < cacheLeast {
		read = 0
	}
	c.begun[name] = append(c.begun[name], whole)
	return int64(len(whole))/bytesPerToken - read, read
}

func alike(a, b []byte) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}

func (c *cache) marked(all []piece) (rest, read, written int64) {
	sums, upTo := make([][32]byte, len(all)), make([]int64, len(all))
	h, size, last := sha256.New(), 0, int64(0)
	for i, p := range all {
		h.Write(append(p.raw, '\n'))
		size += len(p.raw) + 1
		sums[i], upTo[i] = [32]byte(h.Sum(nil)), int64(size/bytesPerToken)
	}
	for i, p := range all {
		if !p.mark || upTo[i] < cacheLeast {
			continue
		}
		last = upTo[i]
		for k := i; k >= max(0, i-cacheBack); k-- {
			if c.kept[sums[k]] {
				read = max(read, upTo[k])
				break
			}
		}
	}
	for i, p := range all {
		if p.mark && upTo[i] >= cacheLeast {
			c.kept[sums[i]] = true
		}
	}
	return int64(size/bytesPerToken) - max(last, read), read, max(last-read, 0)
}

// pieces are the parts of a request in the order in which the service reads them.
func pieces(req Request) []piece {
	var w struct {
		Tools        []json.RawMessage `json:"tools"`
		System       json.RawMessage   `json:"system"`
		Instructions json.RawMessage   `json:"instructions"`
		Input        json.RawMessage   `json:"input"`
		Messages     []json.RawMessage `json:"messages"`
	}
	if json.Unmarshal(req.Body, &w) != nil {
		return nil
	}
	out := []piece{{raw: []byte(req.Model)}}
	for _, t := range w.Tools {
		out = append(out, unmarked(t))
	}
	if req.Family == "anthropic" {
		if _, blocks, err := contentOf(w.System); err == nil {
			for _, b := range blocks {
				out = append(out, unmarked(b))
			}
		}
		for _, m := range w.Messages {
			var turn messagesTurn
			if json.Unmarshal(m, &turn) != nil {
				continue
			}
			if _, blocks, err := contentOf(turn.Content); err == nil {
				for _, b := range blocks {
					p := unmarked(b)
					p.raw = append([]byte(turn.Role+" "), p.raw...)
					out = append(out, p)
				}
			}
		}
		return out
	}
	out = append(out, piece{raw: w.Instructions})
	var input []json.RawMessage
	if json.Unmarshal(w.Input, &input) != nil && len(w.Input) > 0 {
		input = []json.RawMessage{w.Input}
	}
	for _, raw := range append(input, w.Messages...) {
		out = append(out, piece{raw: raw})
	}
	return out
}

// unmarked is a block without its mark, which is no part of what the service compares.
func unmarked(raw json.RawMessage) piece {
	var m map[string]json.RawMessage
	if json.Unmarshal(raw, &m) != nil {
		return piece{raw: raw}
	}
	mark := m["cache_control"]
	delete(m, "cache_control")
	return piece{raw: encode(m), mark: len(mark) > 0 && string(mark) != "null"}
}
