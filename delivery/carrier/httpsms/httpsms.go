// Package httpsms submits messages to a carrier that accepts JSON over HTTP, with the protocol
// that docs/api/messaging.md describes for implementers of the carrier's side.
//
// The carrier accepts repeated requests with the same Idempotency-Key only once. A request whose
// response was lost is therefore retried, and no outcome stays unknown.
package httpsms

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/penstock/penstock/delivery"
	"github.com/penstock/penstock/delivery/carrier"
	"github.com/penstock/penstock/delivery/httpout"
)

// Options configures a client. URL and Report are required.
type Options struct {
	URL   string
	Token string // sent as Authorization: Bearer; empty disables it
	// Report returns the URL at which the carrier reports about a submission.
	Report func(id string) string
}

// Client submits messages to one carrier.
type Client struct {
	carrier.Health
	http httpout.Doer
	o    Options
}

// New returns a client, or an error if an option is invalid.
func New(d httpout.Doer, o Options) (*Client, error) {
	if _, err := httpout.ValidURL(o.URL); err != nil {
		return nil, errors.New("carrier: the URL must be http or https with a host")
	}
	if o.Report == nil {
		return nil, errors.New("carrier: Report is required")
	}
	return &Client{http: d, o: o}, nil
}

// message is the body of a request.
type message struct {
	ID        string `json:"id"`
	From      string `json:"from,omitempty"`
	To        string `json:"to"`
	Coding    int    `json:"coding"`
	Text      string `json:"text,omitempty"`
	Data      string `json:"data,omitempty"` // hex
	UDH       string `json:"udh,omitempty"`  // hex, with its length
	Flash     bool   `json:"flash,omitempty"`
	Replace   bool   `json:"replace,omitempty"`
	ReportURL string `json:"report_url"`
}

// response is the body of a response; all fields are optional.
type response struct {
	ID      json.RawMessage `json:"id"`
	Message string          `json:"message"`
}

// Submit posts the message in the background. See carrier.Carrier.
func (c *Client) Submit(ctx context.Context, s carrier.Submission, done func(carrier.Result)) {
	c.SubmitAsync(func() carrier.Result { return c.post(ctx, &s) }, done)
}

func (c *Client) post(ctx context.Context, s *carrier.Submission) carrier.Result {
	m := message{
		ID: s.ID, From: s.From, To: s.To, Coding: s.Coding, Text: s.Text, UDH: hex.EncodeToString(s.UDH),
		Flash: s.Flash, Replace: s.Replace, ReportURL: c.o.Report(s.ID),
	}
	if m.Text == "" {
		m.Data = hex.EncodeToString(s.Data)
	}
	body, err := json.Marshal(m)
	if err != nil {
		return carrier.Result{Verdict: carrier.Rejected, NotSubmitted: true, Reason: "carrier: encode: " + err.Error()}
	}
	req := httpout.JSONRequest(http.MethodPost, c.o.URL, c.o.Token, body)
	req.Headers["Idempotency-Key"] = s.ID
	resp, err := c.http.Do(ctx, req)
	if err != nil {
		const reason = "the carrier has not answered: "
		return carrier.Result{Verdict: carrier.RetryLater, PauseQueue: true, Reason: reason + delivery.PublicReason(err), Cause: reason + err.Error()}
	}
	return resultOf(resp)
}

// resultOf converts a response. A status that concerns the message rejects the message. A status
// that concerns the gateway (credentials, address, credit) pauses the queue.
func resultOf(r httpout.Response) carrier.Result {
	var a response
	_ = json.Unmarshal(r.Body, &a) // a body that is not JSON is ignored
	reason := fmt.Sprintf("the carrier answered with %d", r.Status)
	if a.Message != "" {
		reason += ": " + a.Message
	}
	switch r.Status {
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType, http.StatusUnprocessableEntity:
		return carrier.Result{Verdict: carrier.Rejected, Reason: reason}
	case http.StatusRequestTimeout, http.StatusConflict, http.StatusTooEarly, http.StatusInternalServerError, http.StatusGatewayTimeout:
		return carrier.Result{Verdict: carrier.RetryLater, Reason: reason}
	}
	if r.OK() {
		return carrier.Result{Verdict: carrier.Accepted, ID: idOf(a.ID)}
	}
	retryAfter := delivery.ParseRetryAfter(r.Header.Get("Retry-After"), time.Now())
	return carrier.Result{Verdict: carrier.RetryLater, PauseQueue: true, Reason: reason, RetryAfter: retryAfter}
}

// idOf returns the text of an id; empty if the id is null or longer than 64 bytes.
func idOf(raw json.RawMessage) string {
	var s string
	if err := json.Unmarshal(raw, &s); err != nil {
		s = strings.Trim(string(raw), "{}[]")
	}
	if s == "null" || len(s) > 64 {
		return ""
	}
	return s
}
