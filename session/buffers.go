package session

import "context"

// Buffers gives the text of a file as the user's editor shows it, saved or not. It is false when the editor does not say.
type Buffers func(ctx context.Context, path string) (text string, ok bool)

// OfferBuffers lets calls of a session read from an attached editor until the returned function is called. The newest offer counts.
func (e *Engine) OfferBuffers(id SessionID, b Buffers) (withdraw func()) {
	mine := &b
	e.buffers.Store(id, mine)
	return func() { e.buffers.CompareAndDelete(id, mine) }
}

// buffer is where a call reads what is in the editor. Reviews and evidence are about what is on disk.
func (c *call) buffer() Buffers {
	b, ok := c.t.e.buffers.Load(c.t.a.id)
	if !ok || c.t.setup.Reviewer || c.item.Body.Tool.ByCode {
		return nil
	}
	return *b.(*Buffers)
}
