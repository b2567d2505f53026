package influx

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	httpapi "github.com/influxdata/influxdb-client-go/v2/api/http"

	"github.com/penstock/penstock/relay"
)

// Error is a call that InfluxDB did not carry out. Its kind is
// relay.KindUnavailable; a context's error and a network's stay reachable.
type Error struct {
	Op     string // write, query, probe or ping
	Status int    // of HTTP; 0 when there was no answer
	Reason string // the server's words, shortened
	paused bool
	wait   time.Duration
	cause  error
}

// Error says what was tried and what the server made of it.
func (e *Error) Error() string {
	if e.Status == 0 {
		return fmt.Sprintf("influx: %s: %v", e.Op, e.cause)
	}
	return fmt.Sprintf("influx: %s: %d %s", e.Op, e.Status, e.Reason)
}

// Unwrap returns the kind and the cause.
func (e *Error) Unwrap() []error {
	kind := relay.Errorf(relay.KindUnavailable, "the reading store is not available")
	if e.cause == nil {
		return []error{kind}
	}
	return []error{kind, e.cause}
}

// RetryAfter is how long the server asked to be left alone; 0 when it did not.
func (e *Error) RetryAfter() time.Duration { return e.wait }

// Paused reports that trying again does not help until a person has changed
// the token, the bucket or the address: 401, 403, 404, a redirection, or a 400
// that no InfluxDB has said.
func (e *Error) Paused() bool { return e.paused }

// newError makes an Error of what the client returned.
func newError(op string, err error, now time.Time) *Error {
	if own, ok := errors.AsType[*Error](err); ok {
		return own
	}
	he, ok := errors.AsType[*httpapi.Error](err)
	if !ok || he.StatusCode == 0 {
		return &Error{Op: op, cause: err}
	}
	return &Error{
		Op: op, Status: he.StatusCode, Reason: reason(he),
		paused: he.StatusCode < 500 && he.StatusCode != http.StatusTooManyRequests && he.StatusCode != http.StatusRequestTimeout,
		wait:   retryAfter(he.Header.Get("Retry-After"), now),
	}
}

// retryAfter reads both forms of the header (RFC 9110, 10.2.3).
func retryAfter(header string, now time.Time) time.Duration {
	if n, err := strconv.ParseUint(header, 10, 32); err == nil {
		return time.Duration(n) * time.Second
	}
	if at, err := http.ParseTime(header); err == nil {
		return max(0, at.Sub(now))
	}
	return 0
}

// verdict is what an answer to a write means for its lines.
type verdict int

const (
	stored   verdict = iota
	badLines         // at least one line is refused, others may be stored
	tooLarge         // nothing was looked at
	undone           // not the lines' fault
)

type judgement struct {
	verdict verdict
	reason  string
}

// judge reads the answer to a write. A 400 counts against the lines only if an
// InfluxDB said it: a proxy's or a wrong port's 400 must not cost a reading.
func judge(err error) judgement {
	if err == nil {
		return judgement{verdict: stored}
	}
	he, ok := errors.AsType[*httpapi.Error](err)
	if !ok {
		return judgement{verdict: undone}
	}
	switch {
	case he.StatusCode == http.StatusRequestEntityTooLarge:
		return judgement{tooLarge, reason(he)}
	case he.StatusCode == http.StatusUnprocessableEntity, he.StatusCode == http.StatusBadRequest:
		if spoken(he) {
			return judgement{badLines, reason(he)}
		}
	}
	return judgement{verdict: undone}
}

// spoken reports whether InfluxDB itself wrote an error: 1.x and 2.x sign with
// headers, 2.x and the cloud name a code in the JSON body; where there is none
// the client puts the status line in its place.
func spoken(he *httpapi.Error) bool {
	for _, h := range []string{"X-Influxdb-Version", "X-Influxdb-Build", "X-Influxdb-Error", "X-Platform-Error-Code"} {
		if he.Header.Get(h) != "" {
			return true
		}
	}
	return he.Code != "" && !strings.HasPrefix(he.Code, strconv.Itoa(he.StatusCode))
}

// reason is the server's message on one line, at most 500 bytes, and without
// the line of a batch that the server quotes.
func reason(he *httpapi.Error) string {
	s := he.Message
	if he.Header.Get("Content-Type") == packedType {
		s = he.Header.Get("X-Influxdb-Error")
	}
	if s == "" {
		s = http.StatusText(he.StatusCode)
	}
	s = strings.Join(strings.Fields(strings.ToValidUTF8(s, "?")), " ")
	if quote := strings.Index(s, "unable to parse '"); quote >= 0 {
		if end := strings.LastIndex(s, "': "); end > quote {
			s = s[:quote] + "unable to parse" + s[end+1:]
		}
	}
	if len(s) > 500 {
		s = strings.ToValidUTF8(s[:500], "") + "…"
	}
	return s
}
