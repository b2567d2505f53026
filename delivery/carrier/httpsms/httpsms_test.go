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
)

var _ carrier.Carrier = (*Client)(nil)

// newClient posts to a carrier that a handler plays.
func newClient(t *testing.T, h http.HandlerFunc) *Client {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	out, err := httpout.New(httpout.Options{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, Timeout: 2 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	c, err := New(out, Options{URL: s.URL + "/sms", Token: "secret", Report: func(id string) string { return "http://gw/dlr?ref=" + id }})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func submit(t *testing.T, c *Client, s carrier.Submission) carrier.Outcome {
	t.Helper()
	done := make(chan carrier.Outcome, 1)
	c.Submit(t.Context(), s, func(o carrier.Outcome) { done <- o })
	return <-done
}

func TestAMessageAsTheCarrierSeesIt(t *testing.T) {
	for name, tc := range map[string]struct {
		s    carrier.Submission
		want string
	}{
		"a text": {carrier.Submission{From: "Example", Coding: 7, Text: "é", Data: []byte{5}},
			`{"id":"7-1-0","from":"Example","to":"447800000001","coding":7,"text":"é","report_url":"http://gw/dlr?ref=7-1-0"}`},
		"a part, flash, that replaces": {carrier.Submission{Coding: 16, Text: "П", UDH: []byte{5, 0, 3, 1, 2, 1}, Flash: true, Replace: true},
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
			if out := submit(t, c, tc.s); out != (carrier.Outcome{Verdict: carrier.Accepted}) {
				t.Errorf("outcome %+v", out)
			}
			if got != tc.want || key != "7-1-0" || auth != "Bearer secret" {
				t.Errorf("got  %s, key %q, %q\nwant %s", got, key, auth, tc.want)
			}
		})
	}
}

func TestWhatTheCarrierAnswers(t *testing.T) {
	for name, tc := range map[string]struct {
		status int
		body   string
		want   carrier.Outcome
		fault  bool
	}{
		"it takes it":                {200, `{"id":"M-1"}`, carrier.Outcome{Verdict: carrier.Accepted, ID: "M-1"}, false},
		"under a number":             {202, `{"id":77}`, carrier.Outcome{Verdict: carrier.Accepted, ID: "77"}, false},
		"and says no id":             {204, ``, carrier.Outcome{Verdict: carrier.Accepted}, false},
		"an id of null":              {200, `{"id":null}`, carrier.Outcome{Verdict: carrier.Accepted}, false},
		"an id that is too long":     {200, `{"id":"` + strings.Repeat("x", 65) + `"}`, carrier.Outcome{Verdict: carrier.Accepted}, false},
		"the number is none":         {422, `{"message":"no such number"}`, carrier.Outcome{Verdict: carrier.Rejected, Reason: "the carrier answered with 422: no such number"}, false},
		"it cannot read it":          {400, `<html>`, carrier.Outcome{Verdict: carrier.Rejected, Reason: "the carrier answered with 400"}, false},
		"it has it in hand already":  {409, ``, carrier.Outcome{Verdict: carrier.Later, Reason: "the carrier answered with 409"}, false},
		"it fails":                   {500, ``, carrier.Outcome{Verdict: carrier.Later, Reason: "the carrier answered with 500"}, false},
		"our token is wrong":         {401, ``, carrier.Outcome{Verdict: carrier.Later, Throttled: true, Reason: "the carrier answered with 401"}, true},
		"we have no credit there":    {402, ``, carrier.Outcome{Verdict: carrier.Later, Throttled: true, Reason: "the carrier answered with 402"}, true},
		"we are too fast":            {429, ``, carrier.Outcome{Verdict: carrier.Later, Throttled: true, Reason: "the carrier answered with 429", After: 7 * time.Second}, true},
		"it is away for a while":     {503, ``, carrier.Outcome{Verdict: carrier.Later, Throttled: true, Reason: "the carrier answered with 503", After: 7 * time.Second}, true},
		"what is there is a website": {301, ``, carrier.Outcome{Verdict: carrier.Later, Throttled: true, Reason: "the carrier answered with 301"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			c := newClient(t, func(w http.ResponseWriter, _ *http.Request) {
				if tc.want.After > 0 {
					w.Header().Set("Retry-After", "7")
				}
				w.WriteHeader(tc.status)
				if tc.status != http.StatusNoContent {
					_, _ = w.Write([]byte(tc.body))
				}
			})
			if out := submit(t, c, carrier.Submission{ID: "1-2-0", To: "1", Coding: 7}); out != tc.want {
				t.Errorf("got  %+v\nwant %+v", out, tc.want)
			}
			if err := c.Check(t.Context()); err != nil != tc.fault {
				t.Errorf("check: %v", err)
			}
		})
	}
}

func TestAnAnswerThatIsLostIsAskedForAgain(t *testing.T) {
	c := newClient(t, func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := w.(http.Hijacker).Hijack()
		if err == nil {
			_ = conn.Close()
		}
	})
	if out := submit(t, c, carrier.Submission{ID: "1-2-0", To: "1", Coding: 7}); out.Verdict != carrier.Later || !out.Throttled || !c.Ready() {
		t.Errorf("outcome %+v", out)
	}
}

func TestNewRefuses(t *testing.T) {
	if _, err := New(nil, Options{URL: "sms", Report: func(string) string { return "" }}); err == nil {
		t.Error("what is no URL was taken")
	}
	if _, err := New(nil, Options{URL: "http://h/"}); err == nil {
		t.Error("nowhere to report was taken")
	}
}
