package delivery

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// Limits of a schedule.
const (
	maxEntries = 100
	maxWait    = 30 * 24 * time.Hour
	jitter     = 0.2
)

// Schedule lists the delays between attempts: n entries allow n+1 attempts.
type Schedule []time.Duration

// DefaultSchedule spreads eleven attempts over about 47 hours.
func DefaultSchedule() Schedule {
	return Schedule{
		5 * time.Second, 30 * time.Second, 2 * time.Minute, 10 * time.Minute, 30 * time.Minute,
		time.Hour, 3 * time.Hour, 6 * time.Hour, 12 * time.Hour, 24 * time.Hour,
	}
}

// ParseSchedule parses a list such as "5s,30s,2m". An error names the entry,
// counted from 1.
func ParseSchedule(text string) (Schedule, error) {
	if strings.TrimSpace(text) == "" {
		return nil, errors.New("schedule: has no entry")
	}
	entries := strings.Split(text, ",")
	if len(entries) > maxEntries {
		return nil, fmt.Errorf("schedule: has %d entries, at most %d are allowed", len(entries), maxEntries)
	}
	s := make(Schedule, 0, len(entries))
	for i, entry := range entries {
		wait, err := time.ParseDuration(strings.TrimSpace(entry))
		if err != nil {
			return nil, fmt.Errorf("schedule: entry %d %q is not a duration such as 30s or 2h", i+1, entry)
		}
		if wait <= 0 || wait > maxWait {
			return nil, fmt.Errorf("schedule: entry %d %q is not between 0 and %s", i+1, entry, maxWait)
		}
		s = append(s, wait)
	}
	return s, nil
}

// Attempts returns how many attempts the schedule allows.
func (s Schedule) Attempts() int { return len(s) + 1 }

// Length returns the sum of all delays.
func (s Schedule) Length() time.Duration {
	var length time.Duration
	for _, wait := range s {
		length += wait
	}
	return length
}

// Next returns the delay after the given number of attempts (1 is the first), or
// false if none is left. random is in [0, 1) and adds a jitter of up to ±20 %;
// retryAfter is a lower bound.
func (s Schedule) Next(tries int, retryAfter time.Duration, random float64) (time.Duration, bool) {
	i := max(tries, 1) - 1
	if i >= len(s) {
		return 0, false
	}
	factor := 1 - jitter + 2*jitter*random
	return max(time.Duration(float64(s[i])*factor), retryAfter), true
}

// String returns the form that ParseSchedule reads.
func (s Schedule) String() string {
	texts := make([]string, len(s))
	for i, wait := range s {
		texts[i] = wait.String()
	}
	return strings.Join(texts, ",")
}
