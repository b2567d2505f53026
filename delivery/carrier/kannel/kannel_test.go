package kannel

import (
	"context"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"sync/atomic"
	"testing"
	"time"

	"github.com/penstock/penstock/delivery/carrier"
	"github.com/penstock/penstock/delivery/httpout"
	"github.com/penstock/penstock/relay/relaytest"
)

var _ carrier.Carrier = (*Client)(nil)

// newClient returns a client of a Kannel that h implements.
func newClient(t *testing.T, h http.HandlerFunc, change ...func(*Options)) *Client {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	doer := relaytest.Must(httpout.New(httpout.Options{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, Timeout: 2 * time.Second, OneShot: true}))(t)
	o := Options{
		URL: s.URL + "/cgi-bin/sendsms", Username: "us", Password: "secret",
		Report: func(id string) string { return "http://gw/inbound/dlr/kannel/k?ref=" + id },
	}
	for _, f := range change {
		f(&o)
	}
	return relaytest.Must(New(doer, o))(t)
}

func submit(ctx context.Context, c *Client, s carrier.Submission) carrier.Result {
	done := make(chan carrier.Result, 1)
	c.Submit(ctx, s, func(o carrier.Result) { done <- o })
	return <-done
}

func TestRequestsHaveTheParametersOfTheMessage(t *testing.T) {
	report := "http://gw/inbound/dlr/kannel/k?ref=7-1-0&type=%d&answer=%A&time=%T"
	base := url.Values{"username": {"us"}, "password": {"secret"}, "to": {"447800000001"}, "dlr-mask": {"31"}, "dlr-url": {report}}
	for name, tc := range map[string]struct {
		s    carrier.Submission
		want url.Values
	}{
		"a text":                          {carrier.Submission{From: "Example", Coding: 7, Text: "é & €", Data: []byte{5}}, url.Values{"from": {"Example"}, "coding": {"0"}, "charset": {"UTF-8"}, "text": {"é & €"}}},
		"a part":                          {carrier.Submission{UDH: []byte{5, 0, 3, 1, 2, 1}, Coding: 7, Text: "a"}, url.Values{"udh": {"\x05\x00\x03\x01\x02\x01"}, "coding": {"0"}, "charset": {"UTF-8"}, "text": {"a"}}},
		"octets":                          {carrier.Submission{Coding: 8, Data: []byte{0, 255}}, url.Values{"coding": {"1"}, "text": {"\x00\xff"}}},
		"UCS-2":                           {carrier.Submission{Coding: 16, Text: "П", Data: []byte{4, 0x1f}}, url.Values{"coding": {"2"}, "charset": {"UTF-16BE"}, "text": {"\x04\x1f"}}},
		"flash":                           {carrier.Submission{Coding: 7, Text: "a", Flash: true}, url.Values{"coding": {"0"}, "charset": {"UTF-8"}, "text": {"a"}, "mclass": {"0"}}},
		"a message that replaces another": {carrier.Submission{Coding: 7, Text: "a", Replace: true}, url.Values{"coding": {"0"}, "charset": {"UTF-8"}, "text": {"a"}, "pid": {"65"}}},
	} {
		t.Run(name, func(t *testing.T) {
			var got url.Values
			c := newClient(t, func(w http.ResponseWriter, r *http.Request) {
				got = r.URL.Query()
				w.WriteHeader(http.StatusAccepted)
			})
			tc.s.ID, tc.s.To = "7-1-0", "447800000001"
			relaytest.Equal(t, "the outcome", submit(t.Context(), c, tc.s), carrier.Result{Verdict: carrier.Accepted})
			maps.Copy(tc.want, base)
			relaytest.Equal(t, "the parameters", got, tc.want)
		})
	}
}

func TestResponsesAreConvertedToOutcomes(t *testing.T) {
	for name, tc := range map[string]struct {
		status    int
		body      string
		want      carrier.Result
		unhealthy bool
	}{
		"accepted":           {202, "0: Accepted for delivery", carrier.Result{Verdict: carrier.Accepted}, false},
		"queued":             {202, "3: Queued for later delivery", carrier.Result{Verdict: carrier.Accepted}, false},
		"an invalid message": {400, "Sender missing\nx", carrier.Result{Verdict: carrier.Rejected, Reason: "kannel answered with 400: Sender missing"}, false},
		"a wrong password":   {403, "Authorization failed", carrier.Result{Verdict: carrier.RetryLater, PauseQueue: true, Reason: "kannel answered with 403: Authorization failed"}, true},
		"bearerbox is down":  {503, "Temporal failure, try again later.", carrier.Result{Verdict: carrier.RetryLater, PauseQueue: true, Reason: "kannel answered with 503: Temporal failure, try again later."}, true},
		"an internal error":  {500, "", carrier.Result{Verdict: carrier.RetryLater, Reason: "kannel answered with 500: "}, false},
		"another server":     {404, "", carrier.Result{Verdict: carrier.RetryLater, PauseQueue: true, Reason: "kannel answered with 404: "}, true},
		"a redirect":         {302, "", carrier.Result{Verdict: carrier.RetryLater, PauseQueue: true, Reason: "kannel answered with 302: "}, true},
	} {
		t.Run(name, func(t *testing.T) {
			c := newClient(t, func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(tc.status)
				_, _ = w.Write([]byte(tc.body))
			})
			relaytest.Equal(t, "the outcome", submit(t.Context(), c, carrier.Submission{ID: "1-2-0", To: "1", Coding: 7}), tc.want)
			if err := c.Check(t.Context()); err != nil != tc.unhealthy {
				t.Errorf("Check() = %v, want an error: %t", err, tc.unhealthy)
			}
		})
	}
}

func TestALostResponseIsUnknownAndARefusedConnectionIsNot(t *testing.T) {
	var requests atomic.Int32
	c := newClient(t, func(w http.ResponseWriter, _ *http.Request) {
		requests.Add(1)
		conn, _, err := w.(http.Hijacker).Hijack()
		if err == nil {
			_ = conn.Close()
		}
	})
	got := submit(t.Context(), c, carrier.Submission{ID: "1-2-0", To: "1", Coding: 7})
	relaytest.Equal(t, "the verdict of a lost response", got.Verdict, carrier.Unknown)
	relaytest.Equal(t, "the number of requests", requests.Load(), 1)
	c = newClient(t, nil, func(o *Options) { o.URL = "http://127.0.0.1:1/cgi-bin/sendsms" })
	got = submit(t.Context(), c, carrier.Submission{ID: "1-2-0", To: "1", Coding: 7})
	relaytest.Equal(t, "verdict and PauseQueue after a refused connection", [2]any{got.Verdict, got.PauseQueue}, [2]any{carrier.RetryLater, true})
	relaytest.Equal(t, "the client is ready for a retry", c.Ready(), true)
	if c.Check(t.Context()) == nil {
		t.Error("Check does not report the refused connection")
	}
}

func TestInvalidOptionsAreRefused(t *testing.T) {
	report := func(string) string { return "" }
	for name, o := range map[string]Options{
		"no URL":             {Report: report},
		"another scheme":     {URL: "ftp://h/x", Report: report},
		"a query":            {URL: "http://h/x?y=1", Report: report},
		"no Report function": {URL: "http://h/x"},
	} {
		if _, err := New(nil, o); err == nil {
			t.Errorf("options with %s were accepted", name)
		}
	}
}
