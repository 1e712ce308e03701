package provider

import (
	"encoding/json"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	"holdfast/session"
)

// tellLimit fills in what an answer says of a limit that is used up. What the response asks for itself goes first, then what its body names of the
// very limit that was hit; the reset times of all limits are left for the end.
func tellLimit(me *session.ModelError, h http.Header, c complaint, now time.Time) {
	if d, said := askedFor(h, now); said {
		me.RetryAfter = d
	} else if me.Kind == session.ModelRateLimit {
		if me.RetryAfter = c.wait(now); me.RetryAfter == 0 {
			me.RetryAfter = untilReset(h, now)
		}
	}
	me.Account = me.Kind == session.ModelRateLimit && (c.code == "usage_limit_reached" || c.kind == "usage_limit_reached")
}

// wait is how long the body of an answer says that a limit is used up; 0 when it does not.
func (c complaint) wait(now time.Time) time.Duration {
	if d := c.member("resets_in_seconds", func(n float64) time.Duration { return span(n, time.Second) }); d > 0 {
		return d // whatever the clocks say
	}
	if d := c.member("resets_at", func(n float64) time.Duration {
		if n <= 1e9 { // no time
			return 0
		}
		d, _ := resetTime(strconv.FormatFloat(n, 'f', -1, 64), now)
		return d
	}); d > 0 {
		return d
	}
	if d := c.enclosed(now); d > 0 {
		return d
	}
	if c.code == "rate_limit_exceeded" {
		return tryAgainIn(c.message)
	}
	return 0
}

// member reads a number of the error.
func (c complaint) member(name string, read func(float64) time.Duration) time.Duration {
	var n float64
	if raw, ok := c.inner[name]; !ok || json.Unmarshal(raw, &n) != nil {
		return 0
	}
	return read(n)
}

// enclosed reads the headers that a gateway puts into the body: those of whoever it asked.
func (c complaint) enclosed(now time.Time) time.Duration {
	var meta struct{ Headers map[string]json.RawMessage }
	if json.Unmarshal(c.inner["metadata"], &meta) != nil {
		return 0
	}
	h := http.Header{}
	for name, raw := range meta.Headers {
		h.Set(name, scalar(raw))
	}
	if d, said := askedFor(h, now); said {
		return d
	}
	return untilReset(h, now)
}

var (
	againIn = regexp.MustCompile(`(?i)\btry again in ((?:\d{1,9}(?:\.\d{1,9})?(?:d|h|ms|m|s))+)(?:[.,;)\s]|$)`)
	oneUnit = regexp.MustCompile(`(\d+(?:\.\d+)?)(d|h|ms|m|s)`)
	units   = map[string]time.Duration{"d": 24 * time.Hour, "h": time.Hour, "m": time.Minute, "s": time.Second, "ms": time.Millisecond}
)

// tryAgainIn reads the time that a message ends with: "try again in 1h2m3s".
func tryAgainIn(message string) (d time.Duration) {
	m := againIn.FindStringSubmatch(message)
	if m == nil {
		return 0
	}
	for _, u := range oneUnit.FindAllStringSubmatch(strings.ToLower(m[1]), -1) {
		n, _ := strconv.ParseFloat(u[1], 64) // the expression lets nothing else through
		d = min(d+span(n, units[u[2]]), maxRetryAfter)
	}
	return d
}
