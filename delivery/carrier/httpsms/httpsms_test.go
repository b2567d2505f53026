package httpsms

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/penstock/penstock/delivery/carrier"
	"github.com/penstock/penstock/delivery/httpout"
	"github.com/penstock/penstock/relay/relaytest"
)

var _ carrier.Carrier = (*Client)(nil)

// newClient returns a client of a carrier that h implements.
func newClient(t *testing.T, h http.HandlerFunc) *Client {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	doer := relaytest.Must(httpout.New(httpout.Options{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, Timeout: 2 * time.Second}))(t)
	o := Options{URL: s.URL + "/sms", Token: "secret", Report: func(id string) string { return "http://gw/dlr?ref=" + id }}
	return relaytest.Must(New(doer, o))(t)
}

func submit(t *testing.T, c *Client, s carrier.Submission) carrier.Result {
	t.Helper()
	done := make(chan carrier.Result, 1)
	c.Submit(t.Context(), s, func(o carrier.Result) { done <- o })
	return <-done
}

func TestRequestsHaveTheFieldsOfTheMessage(t *testing.T) {
	for name, tc := range map[string]struct {
		s    carrier.Submission
		want string
	}{
		"a text": {carrier.Submission{From: "Example", Coding: 7, Text: "é", Data: []byte{5}},
			`{"id":"7-1-0","from":"Example","to":"447800000001","coding":7,"text":"é","report_url":"http://gw/dlr?ref=7-1-0"}`},
		"a flash part with Replace": {carrier.Submission{Coding: 16, Text: "П", UDH: []byte{5, 0, 3, 1, 2, 1}, Flash: true, Replace: true},
			`{"id":"7-1-0","to":"447800000001","coding":16,"text":"П","udh":"050003010201","flash":true,"replace":true,"report_url":"http://gw/dlr?ref=7-1-0"}`},
		"octets": {carrier.Submission{Coding: 8, Data: []byte{0, 255}},
			`{"id":"7-1-0","to":"447800000001","coding":8,"data":"00ff","report_url":"http://gw/dlr?ref=7-1-0"}`},
	} {
		t.Run(name, func(t *testing.T) {
			var got, key, auth string
			c := newClient(t, func(_ http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				got, key, auth = string(body), r.Header.Get("Idempotency-Key"), r.Header.Get("Authorization")
			})
			tc.s.ID, tc.s.To = "7-1-0", "447800000001"
			relaytest.Equal(t, "the outcome", submit(t, c, tc.s), carrier.Result{Verdict: carrier.Accepted})
			relaytest.Equal(t, "the body", got, tc.want)
			relaytest.Equal(t, "Idempotency-Key", key, "7-1-0")
			relaytest.Equal(t, "Authorization", auth, "Bearer secret")
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
		"accepted":                   {200, `{"id":"M-1"}`, carrier.Result{Verdict: carrier.Accepted, ID: "M-1"}, false},
		"an id that is a number":     {202, `{"id":77}`, carrier.Result{Verdict: carrier.Accepted, ID: "77"}, false},
		"no id":                      {204, ``, carrier.Result{Verdict: carrier.Accepted}, false},
		"an id of null":              {200, `{"id":null}`, carrier.Result{Verdict: carrier.Accepted}, false},
		"an id that is too long":     {200, `{"id":"` + strings.Repeat("x", 65) + `"}`, carrier.Result{Verdict: carrier.Accepted}, false},
		"an invalid number":          {422, `{"message":"no such number"}`, carrier.Result{Verdict: carrier.Rejected, Reason: "the carrier answered with 422: no such number"}, false},
		"a bad request":              {400, `<html>`, carrier.Result{Verdict: carrier.Rejected, Reason: "the carrier answered with 400"}, false},
		"the same id is in progress": {409, ``, carrier.Result{Verdict: carrier.RetryLater, Reason: "the carrier answered with 409"}, false},
		"an internal error":          {500, ``, carrier.Result{Verdict: carrier.RetryLater, Reason: "the carrier answered with 500"}, false},
		"a wrong token":              {401, ``, carrier.Result{Verdict: carrier.RetryLater, PauseQueue: true, Reason: "the carrier answered with 401"}, true},
		"no credit":                  {402, ``, carrier.Result{Verdict: carrier.RetryLater, PauseQueue: true, Reason: "the carrier answered with 402"}, true},
		"too many requests":          {429, ``, carrier.Result{Verdict: carrier.RetryLater, PauseQueue: true, Reason: "the carrier answered with 429", RetryAfter: 7 * time.Second}, true},
		"unavailable":                {503, ``, carrier.Result{Verdict: carrier.RetryLater, PauseQueue: true, Reason: "the carrier answered with 503", RetryAfter: 7 * time.Second}, true},
		"a redirect":                 {301, ``, carrier.Result{Verdict: carrier.RetryLater, PauseQueue: true, Reason: "the carrier answered with 301"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			c := newClient(t, func(w http.ResponseWriter, _ *http.Request) {
				if tc.want.RetryAfter > 0 {
					w.Header().Set("Retry-After", "7")
				}
				w.WriteHeader(tc.status)
				if tc.status != http.StatusNoContent {
					_, _ = w.Write([]byte(tc.body))
				}
			})
			relaytest.Equal(t, "the outcome", submit(t, c, carrier.Submission{ID: "1-2-0", To: "1", Coding: 7}), tc.want)
			if err := c.Check(t.Context()); err != nil != tc.unhealthy {
				t.Errorf("Check() = %v, want an error: %t", err, tc.unhealthy)
			}
		})
	}
}

func TestALostResponseIsRetried(t *testing.T) {
	c := newClient(t, func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := w.(http.Hijacker).Hijack()
		if err == nil {
			_ = conn.Close()
		}
	})
	got := submit(t, c, carrier.Submission{ID: "1-2-0", To: "1", Coding: 7})
	relaytest.Equal(t, "verdict and PauseQueue after a lost response", [2]any{got.Verdict, got.PauseQueue}, [2]any{carrier.RetryLater, true})
	relaytest.Equal(t, "the client is ready for a retry", c.Ready(), true)
}

func TestInvalidOptionsAreRefused(t *testing.T) {
	if _, err := New(nil, Options{URL: "sms", Report: func(string) string { return "" }}); err == nil {
		t.Error("a relative URL was accepted")
	}
	if _, err := New(nil, Options{URL: "http://h/"}); err == nil {
		t.Error("options without a Report function were accepted")
	}
}
