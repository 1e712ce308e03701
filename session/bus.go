package session

import (
	"sync"

	"holdfast/internal/secret"
)

// Live is something a follower in this process learns before or besides the log. Exactly one part is set.
type Live struct {
	Wake bool // the log has grown
	// Text is a fragment of the item's text at Offset bytes; it is not committed yet.
	Item   ItemID
	Kind   ItemKind
	Offset int
	Text   string
	Output *Output // what a running call has printed so far
	Call   string  // the item of that call is Item
	Thread string
	Run    RunID
	// Compaction says how a compaction goes that will be Item when it is committed; Text is why it failed.
	Compaction CompactionState
}

// Subscription receives what happens to one session in this process. A slow reader loses fragments and keeps the wake: the log
// holds everything that counts.
type Subscription struct {
	bus  *bus
	id   SessionID
	mu   sync.Mutex
	q    []Live
	bell chan struct{}
}

// Bell rings when Next has something.
func (s *Subscription) Bell() <-chan struct{} { return s.bell }

// Next takes everything queued.
func (s *Subscription) Next() []Live {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := s.q
	s.q = nil
	return q
}

// Close ends the subscription.
func (s *Subscription) Close() { s.bus.remove(s) }

const maxQueued = 20000

func (s *Subscription) push(l Live) {
	s.mu.Lock()
	switch n := len(s.q); {
	case l.Wake && n > 0 && s.q[n-1].Wake:
	case n >= maxQueued && !l.Wake:
	default:
		s.q = append(s.q, l)
	}
	s.mu.Unlock()
	select {
	case s.bell <- struct{}{}:
	default:
	}
}

type bus struct {
	mask *secret.Masker
	mu   sync.Mutex
	subs map[SessionID][]*Subscription
}

func newBus(m *secret.Masker) *bus { return &bus{mask: m, subs: map[SessionID][]*Subscription{}} }

func (b *bus) subscribe(id SessionID) *Subscription {
	s := &Subscription{bus: b, id: id, bell: make(chan struct{}, 1)}
	b.mu.Lock()
	b.subs[id] = append(b.subs[id], s)
	b.mu.Unlock()
	return s
}

func (b *bus) remove(s *Subscription) {
	b.mu.Lock()
	defer b.mu.Unlock()
	kept := b.subs[s.id][:0:0]
	for _, o := range b.subs[s.id] {
		if o != s {
			kept = append(kept, o)
		}
	}
	if len(kept) == 0 {
		delete(b.subs, s.id)
		return
	}
	b.subs[s.id] = kept
}

func (b *bus) publish(id SessionID, l Live) {
	if l.Output != nil { // fragments of text come masked from the model's side
		out := secret.Hide(b.mask, *l.Output)
		l.Output = &out
	}
	b.mu.Lock()
	subs := b.subs[id]
	b.mu.Unlock()
	for _, s := range subs {
		s.push(l)
	}
}

func (b *bus) wakeAll() {
	b.mu.Lock()
	var all []*Subscription
	for _, subs := range b.subs {
		all = append(all, subs...)
	}
	b.mu.Unlock()
	for _, s := range all {
		s.push(Live{Wake: true})
	}
}
