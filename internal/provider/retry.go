package provider

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// maxRetryAfter keeps a provider's slip (a date in the wrong unit) from turning into an overflow.
const maxRetryAfter = 7 * 24 * time.Hour

// askedFor reads milliseconds, seconds or a date.
func askedFor(h http.Header, now time.Time) (time.Duration, bool) {
	for _, f := range []struct {
		name string
		unit time.Duration
	}{{"Retry-After-Ms", time.Millisecond}, {"Retry-After", time.Second}} {
		text := strings.TrimSpace(h.Get(f.name))
		if n, err := strconv.ParseFloat(text, 64); err == nil {
			return span(n, f.unit), true
		}
	}
	if at, err := http.ParseTime(strings.TrimSpace(h.Get("Retry-After"))); err == nil {
		return min(max(at.Sub(now), 0), maxRetryAfter), true
	}
	return 0, false
}

// limitHeaders say of one limit each how much is left of it and when it is full again.
var limitHeaders = []struct{ left, reset string }{
	{"X-Ratelimit-Remaining-Requests", "X-Ratelimit-Reset-Requests"},
	{"X-Ratelimit-Remaining-Tokens", "X-Ratelimit-Reset-Tokens"},
	{"Anthropic-Ratelimit-Requests-Remaining", "Anthropic-Ratelimit-Requests-Reset"},
	{"Anthropic-Ratelimit-Tokens-Remaining", "Anthropic-Ratelimit-Tokens-Reset"},
	{"Anthropic-Ratelimit-Input-Tokens-Remaining", "Anthropic-Ratelimit-Input-Tokens-Reset"},
	{"Anthropic-Ratelimit-Output-Tokens-Remaining", "Anthropic-Ratelimit-Output-Tokens-Reset"},
	{"X-Ratelimit-Remaining", "X-Ratelimit-Reset"},
	{"Ratelimit-Remaining", "Ratelimit-Reset"},
}

// untilReset is when all used-up limits are full again. When none is said to be used up, which one was hit is not known, and the first
// that is full again may be it.
func untilReset(h http.Header, now time.Time) time.Duration {
	var empty, first time.Duration
	for _, l := range limitHeaders {
		d, ok := resetTime(strings.TrimSpace(h.Get(l.reset)), now)
		if !ok {
			continue
		}
		if strings.TrimSpace(h.Get(l.left)) == "0" {
			empty = max(empty, d)
		}
		if first == 0 || d < first {
			first = d
		}
	}
	if empty > 0 {
		return empty
	}
	return first
}

// resetTime reads the spellings in use: "6m0s", seconds, seconds or milliseconds since 1970, and a date.
func resetTime(text string, now time.Time) (time.Duration, bool) {
	if n, err := strconv.ParseFloat(text, 64); err == nil {
		switch {
		case n > 1e12:
			return min(max(time.UnixMilli(int64(min(n, 1e15))).Sub(now), 0), maxRetryAfter), true
		case n > 1e9:
			return min(max(time.Unix(int64(n), 0).Sub(now), 0), maxRetryAfter), true
		}
		return span(n, time.Second), true
	}
	if d, err := time.ParseDuration(text); err == nil {
		return min(max(d, 0), maxRetryAfter), true
	}
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		return min(max(at.Sub(now), 0), maxRetryAfter), true
	}
	return 0, false
}

func span(n float64, unit time.Duration) time.Duration {
	if !(n > 0) { // also not a number
		return 0
	}
	return time.Duration(min(n*float64(unit), float64(maxRetryAfter)))
}
