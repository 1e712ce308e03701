package provider

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"time"
)

// wireBody is the body of a streaming response. It notices what the SDK's reader swallows: whether the line [DONE] came, whether
// the connection broke, and whether this is an event stream at all. One goroutine reads it.
type wireBody struct {
	rc   io.ReadCloser
	done bool  // a line "data: [DONE]" was read
	err  error // of the connection; nil when the body ended cleanly
	line []byte
	page bool   // the first line begins like JSON or markup, so this is no event stream
	head []byte // the beginning of such a page
	read bool   // something other than white space came
}

// Only the beginning of a line decides whether it is the end mark.
const markLen = len("data: [DONE]")

// pageLen is how much of a refusal or of a page is looked at.
const pageLen = 64 << 10

func (b *wireBody) Read(p []byte) (int, error) {
	n, err := b.rc.Read(p)
	b.look(p[:n])
	if err != nil && !errors.Is(err, io.EOF) {
		b.err = err
	}
	return n, err
}

func (b *wireBody) Close() error { return b.rc.Close() }

func (b *wireBody) look(p []byte) {
	if !b.read {
		if rest := bytes.TrimLeft(p, " \t\r\n\ufeff"); len(rest) > 0 {
			b.read, b.page = true, rest[0] == '{' || rest[0] == '<'
		}
	}
	if b.page {
		b.head = append(b.head, p[:min(len(p), pageLen-len(b.head))]...)
		return
	}
	for len(p) > 0 && !b.done {
		end := bytes.IndexByte(p, '\n')
		part := p
		if end >= 0 {
			part, p = p[:end], p[end+1:]
		} else {
			p = nil
		}
		b.line = append(b.line, part[:min(len(part), markLen-len(b.line))]...)
		if end >= 0 {
			// As the SDK's reader: it stops at this line without saying so.
			data, ok := bytes.CutPrefix(b.line, []byte("data:"))
			b.done = ok && bytes.HasPrefix(bytes.TrimPrefix(data, []byte(" ")), []byte("[DONE]"))
			b.line = b.line[:0]
		}
	}
}

// watchdog ends a request whose endpoint is silent for too long. It is used by one goroutine; only its timer runs beside it.
type watchdog struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	timer  *time.Timer
}

// silence is the cause of a context that the watchdog ended.
type silence struct {
	what  string
	limit time.Duration
}

func (s *silence) Error() string { return fmt.Sprintf("the endpoint %s for %v", s.what, s.limit) }

func newWatchdog(parent context.Context) *watchdog {
	ctx, cancel := context.WithCancelCause(parent)
	return &watchdog{ctx: ctx, cancel: cancel}
}

// arm starts the limit anew.
func (w *watchdog) arm(limit time.Duration, what string) {
	w.disarm()
	w.timer = time.AfterFunc(limit, func() { w.cancel(&silence{what, limit}) })
}

func (w *watchdog) disarm() {
	if w.timer != nil {
		w.timer.Stop()
	}
}

// stop ends the request if it still runs. It may be called twice.
func (w *watchdog) stop() {
	w.disarm()
	w.cancel(nil)
}
