package client

import (
	"bytes"
	"time"

	"github.com/rs/zerolog"
)

// stderrLog writes a server's stderr into our log, masked, a limited number of lines a second.
type stderrLog struct {
	log    zerolog.Logger
	mask   *mask
	line   []byte
	window time.Time
	n      int
	lost   int
}

const (
	linesPerSecond = 20
	longestLine    = 4096
)

func newStderrLog(log zerolog.Logger, m *mask) *stderrLog { return &stderrLog{log: log, mask: m} }

func (l *stderrLog) Write(p []byte) (int, error) {
	for rest := p; len(rest) > 0; {
		part, after, ended := bytes.Cut(rest, []byte("\n"))
		if room := longestLine - len(l.line); room > 0 {
			l.line = append(l.line, part[:min(room, len(part))]...)
		}
		if ended {
			l.flush()
		}
		rest = after
	}
	return len(p), nil
}

func (l *stderrLog) flush() {
	defer func() { l.line = l.line[:0] }()
	if now := time.Now(); now.Sub(l.window) > time.Second {
		if l.lost > 0 {
			l.log.Info().Int("lines", l.lost).Msg("lines of the server's stderr were not logged")
		}
		l.window, l.n, l.lost = now, 0, 0
	}
	if l.n++; l.n > linesPerSecond {
		l.lost++
		return
	}
	l.log.Info().Str("line", head(l.mask.hide(string(l.line)), 1000)).Msg("stderr of an MCP server")
}
