// Package kannel submits messages to a Kannel's smsbox: a GET to sendsms (Kannel
// 1.4.5 User's Guide, "Using the HTTP interface to send SMS messages").
//
// Each request has one part of a message, with its user data header, which Kannel leaves
// unchanged, and requests all five kinds of reports (dlr-mask 31) at a URL with the part's id.
//
// Kannel does not recognize duplicates. A request whose response was lost has an unknown
// outcome. A request that was not written may be retried. Each request has its own connection,
// because net/http may repeat a GET on a kept-alive connection.
package kannel

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/penstock/penstock/delivery"
	"github.com/penstock/penstock/delivery/carrier"
	"github.com/penstock/penstock/delivery/httpout"
	"github.com/penstock/penstock/relay/outbox"
)

// Options configures a client. All fields but SMSC are required.
type Options struct {
	URL                string // of sendsms, for example http://127.0.0.1:13013/cgi-bin/sendsms
	Username, Password string // of a sendsms-user
	SMSC               string // the smsc-id; if it is empty, Kannel selects the SMSC
	// Report returns the URL at which Kannel reports about a submission, without
	// a fragment and without a percent sign, which Kannel would replace.
	Report func(id string) string
}

// Client submits messages to one Kannel.
type Client struct {
	carrier.Health
	http httpout.Doer // with OneShot set
	o    Options
	base *url.URL
}

// New returns a client, or an error if an option is invalid.
func New(d httpout.Doer, o Options) (*Client, error) {
	u, err := httpout.ValidURL(o.URL)
	if err != nil || u.RawQuery != "" {
		return nil, errors.New("kannel: the address of sendsms must be a URL without a query")
	}
	if o.Report == nil {
		return nil, errors.New("kannel: Report is required")
	}
	return &Client{http: d, o: o, base: u}, nil
}

// Submit sends the request in the background. See carrier.Carrier.
func (c *Client) Submit(ctx context.Context, s carrier.Submission, done func(carrier.Result)) {
	c.SubmitAsync(func() carrier.Result { return c.send(ctx, &s) }, done)
}

func (c *Client) send(ctx context.Context, s *carrier.Submission) carrier.Result {
	var written atomic.Bool
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteHeaders: func() { written.Store(true) }})
	resp, err := c.http.Do(ctx, outbox.Request{Method: http.MethodGet, URL: c.url(s)})
	switch {
	case err == nil:
		return resultOf(resp)
	case written.Load():
		return carrier.Result{Verdict: carrier.Unknown, Reason: "kannel has not answered: " + delivery.PublicReason(err), Cause: "kannel has not answered: " + err.Error()}
	}
	return carrier.Result{Verdict: carrier.RetryLater, PauseQueue: true, Reason: "kannel cannot be reached: " + delivery.PublicReason(err), Cause: "kannel cannot be reached: " + err.Error()}
}

// resultOf converts a response: 2xx means accepted, 403 invalid credentials, 503 that bearerbox is
// unavailable.
func resultOf(r httpout.Response) carrier.Result {
	firstLine, _, _ := strings.Cut(r.Excerpt(), "\n")
	reason := fmt.Sprintf("kannel answered with %d: %s", r.Status, strings.TrimSpace(firstLine))
	switch {
	case r.OK():
		return carrier.Result{Verdict: carrier.Accepted}
	case r.Status == http.StatusBadRequest:
		return carrier.Result{Verdict: carrier.Rejected, Reason: reason}
	case r.Status >= 500 && r.Status != http.StatusServiceUnavailable:
		return carrier.Result{Verdict: carrier.RetryLater, Reason: reason}
	}
	retryAfter := delivery.ParseRetryAfter(r.Header.Get("Retry-After"), time.Now())
	return carrier.Result{Verdict: carrier.RetryLater, PauseQueue: true, Reason: reason, RetryAfter: retryAfter}
}

func (c *Client) url(s *carrier.Submission) string {
	q := url.Values{
		"username": {c.o.Username}, "password": {c.o.Password}, "to": {s.To},
		"dlr-mask": {"31"}, "dlr-url": {c.o.Report(s.ID) + "&type=%d&answer=%A&time=%T"},
	}
	for key, value := range map[string]string{"from": s.From, "smsc": c.o.SMSC, "udh": string(s.UDH)} {
		if value != "" {
			q.Set(key, value)
		}
	}
	switch s.Coding {
	case 7:
		q.Set("coding", "0")
		q.Set("charset", "UTF-8")
		q.Set("text", s.Text)
	case 8:
		q.Set("coding", "1")
		q.Set("text", string(s.Data))
	default:
		q.Set("coding", "2")
		q.Set("charset", "UTF-16BE")
		q.Set("text", string(s.Data))
	}
	if s.Flash {
		q.Set("mclass", "0")
	}
	if s.Replace {
		q.Set("pid", "65") // replace short message type 1
	}
	u := *c.base
	u.Path = cmp.Or(u.Path, "/cgi-bin/sendsms")
	u.RawQuery = q.Encode()
	return u.String()
}
