package operator

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/penstock/penstock/delivery"
	"github.com/penstock/penstock/delivery/httpout"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/outbox"
	"github.com/penstock/penstock/relay/provisioning"
	"github.com/penstock/penstock/relay/relaytest"
	"github.com/penstock/penstock/relay/sim"
)

var (
	_ provisioning.Operator = (*HTTP)(nil)
	_ SIMs                  = (*HTTP)(nil)
)

func command() provisioning.Command {
	return provisioning.Command{
		ID: "job-1", Account: 7, Action: provisioning.Activate, ICCID: "8944000000000000001", IMSI: "234150000000001", MSISDN: "447700900123",
		Services: []string{sim.Service4G}, Subscriber: "s1", At: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC),
	}
}

func TestResponsesToCommandsAreConvertedToReports(t *testing.T) {
	for name, tc := range map[string]struct {
		status       int
		header, body string
		want         provisioning.Report
		retryAfter   time.Duration // 0 if the operator is available, -1 if the error has no delay
	}{
		"completed":                                 {200, "", `{"status":"completed"}`, provisioning.Report{}, 0},
		"completed, with the state of the SIM":      {201, "", `{"status":"completed","state":"suspended"}`, provisioning.Report{State: sim.Suspended}, 0},
		"pending":                                   {202, "", `{"status":"pending"}`, provisioning.Report{Pending: true}, 0},
		"pending, with Retry-After":                 {202, "7", `{"status":"pending"}`, provisioning.Report{Pending: true, RetryAfter: 7 * time.Second}, 0},
		"the delay in the body has priority":        {202, "7", `{"status":"pending","retry_after":2.5}`, provisioning.Report{Pending: true, RetryAfter: 2500 * time.Millisecond}, 0},
		"a delay beyond the maximum":                {200, "", `{"status":"pending","retry_after":1e300}`, provisioning.Report{Pending: true, RetryAfter: time.Hour}, 0},
		"refused":                                   {200, "", `{"status":"refused","reason":"barred"}`, provisioning.Report{Refused: "The operator refused: barred."}, 0},
		"refused with a 422":                        {422, "", `{"status":"refused","reason":"no\nsuch SIM"}`, provisioning.Report{Refused: "The operator refused: nosuch SIM."}, 0},
		"refused without a reason":                  {409, "", `{"status":"refused"}`, provisioning.Report{Refused: "The operator refused: no reason was given."}, 0},
		"unavailable":                               {503, "30", `{"status":"refused"}`, provisioning.Report{}, 30 * time.Second},
		"an internal error":                         {500, "", `oops`, provisioning.Report{}, -1},
		"an unknown path":                           {404, "", `<html>`, provisioning.Report{}, -1},
		"an unknown token":                          {401, "", `{"message":"who are you"}`, provisioning.Report{}, -1},
		"completed, but with a 404":                 {404, "", `{"status":"completed"}`, provisioning.Report{}, -1},
		"a web page":                                {200, "", `<html>welcome</html>`, provisioning.Report{}, -1},
		"an unknown status":                         {200, "", `{"status":"done"}`, provisioning.Report{}, -1},
		"an unknown state":                          {200, "", `{"status":"completed","state":"asleep"}`, provisioning.Report{}, -1},
		"a redirect":                                {302, "", `{"status":"completed"}`, provisioning.Report{}, -1},
		"refused, but with a redirect":              {302, "", `{"status":"refused"}`, provisioning.Report{}, -1},
		"a response too long":                       {200, "", `{"status":"completed"}` + strings.Repeat(" ", 70<<10), provisioning.Report{}, -1},
		"the connection is closed after the effect": {0, "", ``, provisioning.Report{}, -1},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPeer(t)
			p.answer = func(string, int) (int, string, string) { return tc.status, tc.header, tc.body }
			got, err := p.client(t, HTTPOptions{}).Command(t.Context(), command())
			relaytest.Equal(t, "the report", got, tc.want)
			if tc.retryAfter == 0 {
				relaytest.NoError(t, err)
				return
			}
			relaytest.Equal(t, "the kind of the error", relay.KindOf(err), relay.KindUnavailable)
			gotRetryAfter := time.Duration(-1)
			if u, ok := errors.AsType[*provisioning.UnavailableError](err); ok && u.RetryAfter > 0 {
				gotRetryAfter = u.RetryAfter
			}
			relaytest.Equal(t, "the delay until a retry", gotRetryAfter, tc.retryAfter)
		})
	}
}

func TestCommandRequestsHaveTheFieldsOfTheCommand(t *testing.T) {
	p := newPeer(t)
	relaytest.Must(p.client(t, HTTPOptions{}).Command(t.Context(), command()))(t)
	want := map[string]any{
		"id": "job-1", "action": "activate_sim", "iccid": "8944000000000000001", "imsi": "234150000000001", "msisdn": "447700900123",
		"services": []any{"service_4g"}, "subscriber_id": "s1", "requested_at": "2026-03-01T12:00:00Z",
	}
	relaytest.Equal(t, "the body", p.body(t, "job-1"), want)
	path, h := p.firstRequest(t)
	relaytest.Equal(t, "the request", path, "POST /v1/commands")
	relaytest.Equal(t, "Authorization", h.Get("Authorization"), "Bearer t0")
	relaytest.Equal(t, "Content-Type", h.Get("Content-Type"), "application/json")
}

func TestARepeatedCommandIsPerformedOnce(t *testing.T) {
	p := newPeer(t)
	p.answer = func(_ string, n int) (int, string, string) {
		switch n {
		case 1:
			return 0, "", "" // performed, but the response is lost
		case 2:
			return 502, "", "bad gateway"
		}
		return 200, "", `{"status":"completed"}`
	}
	h := p.client(t, HTTPOptions{})
	var err error
	for range 3 {
		_, err = h.Command(t.Context(), command())
	}
	relaytest.NoError(t, err)
	requests, effects := p.count("job-1")
	relaytest.Equal(t, "the number of requests", requests, 3)
	relaytest.Equal(t, "the number of effects", effects, 1)
}

func TestReadyIsCachedForTheTTL(t *testing.T) {
	p, clock := newPeer(t), relaytest.NewClock(time.Unix(1000, 0))
	status := 503
	p.answer = func(key string, _ int) (int, string, string) {
		if key != "" {
			return 200, "", `{"status":"completed"}`
		}
		return status, "", ""
	}
	h := p.client(t, HTTPOptions{Now: clock.Now})
	expectRequests := func(label string) {
		t.Helper()
		n, _ := p.count("")
		relaytest.Equal(t, "the number of requests "+label, n, 2)
	}
	relaytest.Equal(t, "the kind of the error", relay.KindOf(h.Ready(t.Context(), "")), relay.KindUnavailable)
	path, _ := p.firstRequest(t)
	relaytest.Equal(t, "the request", path, "GET /v1/ready")
	status = 204
	for range 2 { // the second call uses the cached result
		relaytest.NoError(t, h.Ready(t.Context(), ""))
		expectRequests("within the TTL")
	}
	clock.Advance(time.Minute)
	relaytest.Must(h.Command(t.Context(), command()))(t)
	relaytest.NoError(t, h.Ready(t.Context(), ""))
	expectRequests("after a command")
	clock.Advance(time.Minute)
	status = 500
	if err := h.Ready(t.Context(), ""); err == nil {
		t.Error("Ready returned no error after the TTL")
	}
}

func TestCommandsBeyondTheLimitAreRetriedLater(t *testing.T) {
	p := newPeer(t)
	began, release := make(chan struct{}), make(chan struct{})
	p.answer = func(string, int) (int, string, string) {
		began <- struct{}{}
		<-release
		return 200, "", `{"status":"completed"}`
	}
	h := p.client(t, HTTPOptions{MaxConcurrent: 1, SlotTimeout: time.Millisecond})
	result := make(chan error)
	go func() {
		_, err := h.Command(t.Context(), command())
		result <- err
	}()
	<-began
	_, err := h.Command(t.Context(), command())
	relaytest.Equal(t, "the kind of the error", relay.KindOf(err), relay.KindUnavailable)
	if u, ok := errors.AsType[*provisioning.UnavailableError](err); !ok || u.RetryAfter <= 0 {
		t.Errorf("error = %v, want one with a delay until a retry", err)
	}
	close(release)
	relaytest.NoError(t, <-result)
}

func TestAnUnreachableBackEndIsUnavailable(t *testing.T) {
	client := relaytest.Must(httpout.New(httpout.Options{}))(t)
	h := relaytest.Must(NewHTTP(client, HTTPOptions{URL: "http://127.0.0.1:9"}))(t) // an address that is not allowed
	_, err := h.Command(t.Context(), command())
	relaytest.Equal(t, "the kind of a command's error", relay.KindOf(err), relay.KindUnavailable)
	relaytest.Equal(t, "the kind of Ready's error", relay.KindOf(h.Ready(t.Context(), "")), relay.KindUnavailable)
	_, err = h.Deliver(t.Context(), "d1", outbox.SIM{})
	relaytest.Equal(t, "the class of a message", delivery.Classify(0, nil, err, time.Now()).Class, delivery.Fault)
	for _, bad := range []string{"", "ftp://x/", "http://", "%", "http://x/?a=b"} {
		if _, err := NewHTTP(client, HTTPOptions{URL: bad}); err == nil {
			t.Errorf("the URL %q was accepted", bad)
		}
	}
}

func TestResponsesToMessagesAreClassified(t *testing.T) {
	for name, tc := range map[string]struct {
		status int
		body   string
		class  delivery.Class
	}{
		"accepted":                {200, `{"status":"completed"}`, delivery.Delivered},
		"accepted without a body": {204, ``, delivery.Delivered},
		"refused":                 {200, `{"status":"refused","reason":"no such SIM"}`, delivery.Dead},
		"refused with a 404":      {404, `{"status":"refused"}`, delivery.Dead},
		"unavailable":             {429, ``, delivery.Retry},
		"an internal error":       {500, ``, delivery.Retry},
		"an unknown path":         {404, `<html>`, delivery.Fault},
		"an unknown token":        {401, ``, delivery.Fault},
		"the connection is closed after the effect": {0, ``, delivery.Fault},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPeer(t)
			p.answer = func(string, int) (int, string, string) { return tc.status, "", tc.body }
			m := outbox.SIM{ICCID: "8944000000000000001", From: "447700900123", To: "447800000001", Data: []byte{1, 255}, UDH: []byte{5}, Coding: 8}
			r, err := p.client(t, HTTPOptions{}).Deliver(t.Context(), "d1", m)
			class := delivery.Delivered
			if err != nil {
				class = delivery.Classify(0, nil, err, time.Now()).Class
			}
			relaytest.Equal(t, "the class", class, tc.class)
			relaytest.Equal(t, "the result is simulated", r.Simulated, false)
			path, header := p.firstRequest(t)
			relaytest.Equal(t, "the request", path, "POST /v1/messages")
			relaytest.Equal(t, "Idempotency-Key", header.Get("Idempotency-Key"), "d1")
			if tc.status == http.StatusOK {
				want := map[string]any{"id": "d1", "iccid": m.ICCID, "from": m.From, "to": m.To, "data": "01ff", "udh": "05", "coding": 8.0}
				relaytest.Equal(t, "the body", p.body(t, "d1"), want)
			}
		})
	}
}

func FuzzParseResponse(f *testing.F) {
	f.Add([]byte(`{"status":"completed","state":"active"}`))
	f.Add([]byte(`{"status":"pending","retry_after":1e9}`))
	f.Add([]byte(`{"status":"refused","reason":"\u0000é"}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		parsed, err := parseResponse(body)
		if err != nil {
			return
		}
		r := parsed.report(-time.Second)
		if r.RetryAfter > time.Hour || len(r.Refused) > 400 || r.Pending && r.Refused != "" {
			t.Errorf("report: Pending = %t, RetryAfter = %s, Refused = %q", r.Pending, r.RetryAfter, r.Refused)
		}
	})
}
