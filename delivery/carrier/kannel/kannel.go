// Package kannel hands messages to a Kannel's smsbox: a GET to sendsms (Kannel
// 1.4.5 User's Guide, "Using the HTTP interface to send SMS messages").
//
// Parts come cut: a part that has others goes with its user data header, which
// Kannel leaves as it is. Every message asks for reports of all five kinds
// (dlr-mask 31), at an address that names it.
//
// Kannel does not know a message that it gets twice. So a request whose answer
// was lost has an unknown outcome; one that was never written may go again. Each
// has a connection of its own, because on a kept one net/http may repeat a GET.
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

// Doer makes one request; *httpout.Client does, with OneShot set.
type Doer interface {
	Do(ctx context.Context, r outbox.Request) (httpout.Response, error)
}

// Options say where Kannel is. All but SMSC are required.
type Options struct {
	URL                string // of sendsms: http://127.0.0.1:13013/cgi-bin/sendsms
	Username, Password string // of a sendsms-user
	SMSC               string // the smsc-id to send over; empty: Kannel routes
	// Report returns where Kannel reports about a submission, without a fragment
	// and without a percent sign, which Kannel would replace.
	Report func(id string) string
}

// Client hands messages to one Kannel.
type Client struct {
	http Doer
	o    Options
	base *url.URL
	// fault is why the last request found no Kannel that takes ours.
	fault atomic.Pointer[string]
}

// New returns a client; it refuses what is no URL.
func New(d Doer, o Options) (*Client, error) {
	u, err := url.Parse(o.URL)
	if err != nil || u.Hostname() == "" || u.Scheme != "http" && u.Scheme != "https" || u.RawQuery != "" {
		return nil, errors.New("kannel: the address of sendsms is no URL, or has a query")
	}
	if o.Report == nil {
		return nil, errors.New("kannel: there is nowhere to report to")
	}
	return &Client{http: d, o: o, base: u}, nil
}

// Ready is always true: asking is the only way to learn more.
func (c *Client) Ready() bool { return true }

// Check returns why Kannel took no message the last time, if that was no fault
// of the message.
func (c *Client) Check(context.Context) error {
	if why := c.fault.Load(); why != nil {
		return errors.New(*why)
	}
	return nil
}

// Submit asks Kannel in the background. See carrier.Carrier.
func (c *Client) Submit(ctx context.Context, s carrier.Submission, done func(carrier.Outcome)) {
	go func() {
		o := c.ask(ctx, &s)
		if o.Throttled {
			c.fault.Store(&o.Reason)
		} else if o.Verdict != carrier.Unknown {
			c.fault.Store(nil)
		}
		done(o)
	}()
}

func (c *Client) ask(ctx context.Context, s *carrier.Submission) carrier.Outcome {
	var written atomic.Bool
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteHeaders: func() { written.Store(true) }})
	resp, err := c.http.Do(ctx, outbox.Request{Method: http.MethodGet, URL: c.url(s)})
	switch {
	case err == nil:
		return judge(resp)
	case written.Load():
		return carrier.Outcome{Verdict: carrier.Unknown, Reason: "kannel has not answered: " + err.Error()}
	}
	return carrier.Outcome{Verdict: carrier.Later, Throttled: true, Reason: "kannel cannot be reached: " + err.Error()}
}

// judge reads an answer: 202 is taken, 403 are our credentials, 503 comes while
// bearerbox is away.
func judge(r httpout.Response) carrier.Outcome {
	said := fmt.Sprintf("kannel answered with %d: %s", r.Status, firstLine(r.Excerpt()))
	switch {
	case r.Status >= 200 && r.Status < 300:
		return carrier.Outcome{Verdict: carrier.Accepted}
	case r.Status == http.StatusBadRequest:
		return carrier.Outcome{Verdict: carrier.Rejected, Reason: said}
	case r.Status >= 500 && r.Status != http.StatusServiceUnavailable:
		return carrier.Outcome{Verdict: carrier.Later, Reason: said}
	}
	after, _ := delivery.ParseRetryAfter(r.Header.Get("Retry-After"), time.Now())
	return carrier.Outcome{Verdict: carrier.Later, Throttled: true, Reason: said, After: after}
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return strings.TrimSpace(line)
}

// url is the request for a message.
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
