package delivery

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// MaxRetryAfter caps the delay that a target may ask for, so that a mistake on
// its side does not delay a delivery for years.
const MaxRetryAfter = 24 * time.Hour

// ParseRetryAfter parses a Retry-After header (RFC 9110, section 10.2.3): whole
// seconds, or an HTTP date relative to now. The result is between 0 and
// MaxRetryAfter; ok is false if the value is neither form.
func ParseRetryAfter(value string, now time.Time) (wait time.Duration, ok bool) {
	value = strings.Trim(value, " \t")
	if isDigits(value) {
		return secondsToRetryAfter(value), true
	}
	at, err := http.ParseTime(value)
	if err != nil {
		return 0, false
	}
	return min(max(at.Sub(now), 0), MaxRetryAfter), true
}

func isDigits(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }

func secondsToRetryAfter(digits string) time.Duration {
	n, err := strconv.ParseInt(digits, 10, 32)
	if err != nil || n > int64(MaxRetryAfter/time.Second) {
		return MaxRetryAfter
	}
	return time.Duration(n) * time.Second
}
