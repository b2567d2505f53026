package delivery

import (
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"
)

const jitter = 0.2

// Schedule lists the delays between attempts: n entries allow n+1 attempts.
type Schedule []time.Duration

// DefaultSchedule spreads eleven attempts over about 47 hours.
func DefaultSchedule() Schedule {
	return Schedule{
		5 * time.Second, 30 * time.Second, 2 * time.Minute, 10 * time.Minute, 30 * time.Minute,
		time.Hour, 3 * time.Hour, 6 * time.Hour, 12 * time.Hour, 24 * time.Hour,
	}
}

// Length returns the sum of all delays.
func (s Schedule) Length() time.Duration {
	var length time.Duration
	for _, delay := range s {
		length += delay
	}
	return length
}

// Next returns the delay after the given number of attempts (1 is the first), or
// false if no delay is left. random, in [0, 1), adds a jitter of up to ±20 %;
// retryAfter is a lower bound.
func (s Schedule) Next(tries int, retryAfter time.Duration, random float64) (time.Duration, bool) {
	i := max(tries, 1) - 1
	if i >= len(s) {
		return 0, false
	}
	factor := 1 - jitter + 2*jitter*random
	return max(time.Duration(float64(s[i])*factor), retryAfter), true
}

// MaxRetryAfter caps the delay that a target may request, so that a mistake on its side does
// not delay a delivery for years.
const MaxRetryAfter = 24 * time.Hour

// ParseRetryAfter parses a Retry-After header (RFC 9110, section 10.2.3): whole
// seconds, or an HTTP date relative to now. The result is between 0 and
// MaxRetryAfter; it is 0 if the value has neither form.
func ParseRetryAfter(value string, now time.Time) time.Duration {
	value = strings.Trim(value, " \t")
	if seconds, err := strconv.ParseUint(value, 10, 32); err == nil || errors.Is(err, strconv.ErrRange) {
		return min(time.Duration(seconds)*time.Second, MaxRetryAfter)
	}
	t, err := http.ParseTime(value)
	if err != nil {
		return 0
	}
	return min(max(t.Sub(now), 0), MaxRetryAfter)
}
