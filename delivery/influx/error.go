package influx

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	httpapi "github.com/influxdata/influxdb-client-go/v2/api/http"

	"github.com/penstock/penstock/decoders"
	"github.com/penstock/penstock/delivery"
	"github.com/penstock/penstock/relay"
)

// Error is a failed call of InfluxDB. It wraps relay.KindUnavailable and the cause.
type Error struct {
	Op         string // write, delete, query, probe or ping
	Status     int    // of HTTP; 0 if the server did not answer
	Reason     string // the server's message, clipped
	retryAfter time.Duration
	cause      error
}

// Error returns the operation, the status and the reason.
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

// RetryAfter returns the delay that the server requested; 0 if none.
func (e *Error) RetryAfter() time.Duration { return e.retryAfter }

func newError(op string, err error, now time.Time) *Error {
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	he, ok := errors.AsType[*httpapi.Error](err)
	if !ok || he.StatusCode == 0 {
		return &Error{Op: op, cause: err}
	}
	return &Error{
		Op: op, Status: he.StatusCode, Reason: errorReason(he),
		retryAfter: delivery.ParseRetryAfter(he.Header.Get("Retry-After"), now),
	}
}

type writeVerdict int

const (
	stored     writeVerdict = iota
	badLines                // at least one line was refused, others may be stored
	tooLarge                // no line was processed
	notApplied              // failed for a reason other than the lines
)

// classifyWriteError returns the verdict of a response about the lines of a write, and the
// reason of badLines and tooLarge. A 400 or 422 counts against the lines only if it comes from
// InfluxDB: the status of a proxy or of another server must not lose a reading.
func classifyWriteError(err error) (writeVerdict, string) {
	if err == nil {
		return stored, ""
	}
	he, ok := errors.AsType[*httpapi.Error](err)
	switch {
	case !ok:
	case he.StatusCode == http.StatusRequestEntityTooLarge:
		return tooLarge, errorReason(he)
	case he.StatusCode == http.StatusUnprocessableEntity, he.StatusCode == http.StatusBadRequest:
		if fromInfluxDB(he) {
			return badLines, errorReason(he)
		}
	}
	return notApplied, ""
}

// fromInfluxDB reports whether InfluxDB itself wrote an error: 1.x and 2.x set
// headers, 2.x and the cloud set a code in the JSON body; without a code the
// client sets it to the status line.
func fromInfluxDB(he *httpapi.Error) bool {
	return he.Code != "" && !strings.HasPrefix(he.Code, strconv.Itoa(he.StatusCode)) ||
		slices.ContainsFunc([]string{"X-Influxdb-Version", "X-Influxdb-Build", "X-Influxdb-Error", "X-Platform-Error-Code"},
			func(header string) bool { return he.Header.Get(header) != "" })
}

// errorReason returns the server's message on one line, clipped to 500 bytes, without the line
// of a batch that the server quotes.
func errorReason(he *httpapi.Error) string {
	s := he.Message
	if he.Header.Get("Content-Type") == msgpackType {
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
	return decoders.Clip(s, 500)
}
