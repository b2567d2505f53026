// Package httpsms hands messages to a carrier that takes JSON over HTTP, by a
// protocol of our own that docs/api/messaging.md describes for those who build
// the other side.
//
// Each request carries its Idempotency-Key: the other side takes one message
// for it, however often it comes. So a request whose answer was lost simply goes
// again, and no outcome stays unknown.
package httpsms

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/penstock/penstock/delivery"
	"github.com/penstock/penstock/delivery/carrier"
	"github.com/penstock/penstock/delivery/httpout"
	"github.com/penstock/penstock/relay/outbox"
)

// Doer makes one request; *httpout.Client does.
type Doer interface {
	Do(ctx context.Context, r outbox.Request) (httpout.Response, error)
}

// Options say where the carrier is. URL and Report are required.
type Options struct {
	URL   string
	Token string // sent as Authorization: Bearer, unless it is empty
	// Report returns where the carrier reports about a submission.
	Report func(id string) string
}

// Client hands messages to one carrier.
type Client struct {
	http  Doer
	o     Options
	fault atomic.Pointer[string] // why the last request found no carrier that takes ours
}

// New returns a client; it refuses what is no URL.
func New(d Doer, o Options) (*Client, error) {
	u, err := url.Parse(o.URL)
	if err != nil || u.Hostname() == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, errors.New("carrier: the URL is none")
	}
	if o.Report == nil {
		return nil, errors.New("carrier: there is nowhere to report to")
	}
	return &Client{http: d, o: o}, nil
}

// Ready is always true: asking is the only way to learn more.
func (c *Client) Ready() bool { return true }

// Check returns why the carrier took no message the last time, if that was no
// fault of the message.
func (c *Client) Check(context.Context) error {
	if why := c.fault.Load(); why != nil {
		return errors.New(*why)
	}
	return nil
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

// answer is the body of an answer; all of it may be missing.
type answer struct {
	ID      json.RawMessage `json:"id"`
	Message string          `json:"message"`
}

// Submit posts in the background. See carrier.Carrier.
func (c *Client) Submit(ctx context.Context, s carrier.Submission, done func(carrier.Outcome)) {
	go func() {
		o := c.post(ctx, &s)
		if o.Throttled {
			c.fault.Store(&o.Reason)
		} else {
			c.fault.Store(nil)
		}
		done(o)
	}()
}

func (c *Client) post(ctx context.Context, s *carrier.Submission) carrier.Outcome {
	req, err := c.request(s)
	if err != nil {
		return carrier.Outcome{Verdict: carrier.Rejected, Reason: "carrier: encode: " + err.Error()}
	}
	resp, err := c.http.Do(ctx, req)
	if err != nil {
		return carrier.Outcome{Verdict: carrier.Later, Throttled: true, Reason: "the carrier has not answered: " + err.Error()}
	}
	return judge(resp)
}

func (c *Client) request(s *carrier.Submission) (outbox.Request, error) {
	m := message{
		ID: s.ID, From: s.From, To: s.To, Coding: s.Coding, Text: s.Text, UDH: hex.EncodeToString(s.UDH),
		Flash: s.Flash, Replace: s.Replace, ReportURL: c.o.Report(s.ID),
	}
	if m.Text == "" {
		m.Data = hex.EncodeToString(s.Data)
	}
	body, err := json.Marshal(m)
	headers := map[string]string{"Idempotency-Key": s.ID, "Accept": "application/json"}
	if c.o.Token != "" {
		headers["Authorization"] = "Bearer " + c.o.Token
	}
	return outbox.Request{Method: http.MethodPost, URL: c.o.URL, ContentType: "application/json", Headers: headers, Body: body}, err
}

// judge reads an answer. What says that the message is bad rejects it; what says
// that we are not welcome (credentials, address, credit) keeps it for another
// time, and all others with it.
func judge(r httpout.Response) carrier.Outcome {
	var a answer
	_ = json.Unmarshal(r.Body, &a) // what is no JSON says nothing
	said := fmt.Sprintf("the carrier answered with %d", r.Status)
	if a.Message != "" {
		said += ": " + a.Message
	}
	switch r.Status {
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType, http.StatusUnprocessableEntity:
		return carrier.Outcome{Verdict: carrier.Rejected, Reason: said}
	case http.StatusRequestTimeout, http.StatusConflict, http.StatusTooEarly, http.StatusInternalServerError, http.StatusGatewayTimeout:
		return carrier.Outcome{Verdict: carrier.Later, Reason: said}
	}
	if r.Status >= 200 && r.Status < 300 {
		return carrier.Outcome{Verdict: carrier.Accepted, ID: idOf(a.ID)}
	}
	after, _ := delivery.ParseRetryAfter(r.Header.Get("Retry-After"), time.Now())
	return carrier.Outcome{Verdict: carrier.Later, Throttled: true, Reason: said, After: after}
}

// idOf is an id that was given as a string or a number; at most 64 characters.
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
