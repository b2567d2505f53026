package operator

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/penstock/penstock/delivery"
	"github.com/penstock/penstock/delivery/httpout"
	"github.com/penstock/penstock/relay/provisioning"
	"github.com/penstock/penstock/relay/sim"
)

type commandJSON struct {
	ID          string   `json:"id"`
	Action      string   `json:"action"`
	ICCID       string   `json:"iccid"`
	IMSI        string   `json:"imsi,omitempty"`
	MSISDN      string   `json:"msisdn,omitempty"`
	Services    []string `json:"services,omitempty"`
	Subscriber  string   `json:"subscriber_id,omitempty"`
	RequestedAt string   `json:"requested_at"`
}

type messageJSON struct {
	ID     string `json:"id"`
	ICCID  string `json:"iccid"`
	From   string `json:"from"`
	To     string `json:"to"`
	Text   string `json:"text,omitempty"`
	Data   string `json:"data,omitempty"` // hex
	UDH    string `json:"udh,omitempty"`  // hex
	Coding int    `json:"coding"`
}

// The statuses of a response.
const (
	completed = "completed"
	pending   = "pending"
	refused   = "refused"
)

type response struct {
	Status     string  `json:"status"`
	State      string  `json:"state"`
	Reason     string  `json:"reason"`
	RetryAfter float64 `json:"retry_after"` // seconds
}

// responseOf parses a response. A refusal may have a 4xx status. Any other response must have
// a 2xx status, so that the response of a proxy does not end a job.
func responseOf(resp httpout.Response) (response, error) {
	if resp.Status < 200 || resp.Status > 499 || resp.BodyErr != nil || resp.Truncated {
		return response{}, fmt.Errorf("the back end answered with status %d", resp.Status)
	}
	r, err := parseResponse(resp.Body)
	if err != nil || resp.Status > 299 && (r.Status != refused || resp.Status < 400) {
		return response{}, errors.Join(fmt.Errorf("the back end answered with status %d", resp.Status), err)
	}
	return r, nil
}

func parseResponse(body []byte) (response, error) {
	var r response
	if err := json.Unmarshal(body, &r); err != nil {
		return response{}, fmt.Errorf("response: %w", err)
	}
	switch r.Status {
	case completed, pending, refused:
	default:
		return response{}, errors.New("response: status must be completed, pending or refused")
	}
	if r.State != "" && !slices.Contains(sim.States(), sim.State(r.State)) {
		return response{}, errors.New("response: state must be pending, active, suspended or terminated")
	}
	return r, nil
}

// reason returns the reason without unprintable characters, clipped.
func (r response) reason() string {
	text := strings.Map(func(c rune) rune {
		if !unicode.IsPrint(c) {
			return -1
		}
		return c
	}, r.Reason)
	return cmp.Or(delivery.ClipReason(text), "no reason was given")
}

// maxRetryAfter caps the delay that the back end may request.
const maxRetryAfter = time.Hour

// report converts the response to a command. retryAfter is the delay in its header.
func (r response) report(retryAfter time.Duration) provisioning.Report {
	if seconds := r.RetryAfter; seconds > 0 {
		retryAfter = time.Duration(min(seconds, maxRetryAfter.Seconds()) * float64(time.Second))
	}
	report := provisioning.Report{State: sim.State(r.State)}
	switch r.Status {
	case pending:
		report.Pending, report.RetryAfter = true, min(retryAfter, maxRetryAfter)
	case refused:
		report.Refused = "The operator refused: " + r.reason() + "."
	}
	return report
}
