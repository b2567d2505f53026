package operator

import (
	"errors"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/penstock/penstock/delivery"
	"github.com/penstock/penstock/delivery/httpout"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/outbox"
	"github.com/penstock/penstock/relay/provisioning"
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

func TestWhatTheBackEndSaysOfACommand(t *testing.T) {
	for name, tc := range map[string]struct {
		status       int
		header, body string
		want         provisioning.Report
		again        time.Duration // unavailable, and when to ask again; -1: it does not say
	}{
		"done":                                 {200, "", `{"status":"completed"}`, provisioning.Report{}, 0},
		"done, with the SIM's state":           {201, "", `{"status":"completed","state":"suspended"}`, provisioning.Report{State: sim.Suspended}, 0},
		"not at the end":                       {202, "", `{"status":"pending"}`, provisioning.Report{Pending: true}, 0},
		"not at the end, with a time":          {202, "7", `{"status":"pending"}`, provisioning.Report{Pending: true, After: 7 * time.Second}, 0},
		"the body's time goes before":          {202, "7", `{"status":"pending","retry_after":2.5}`, provisioning.Report{Pending: true, After: 2500 * time.Millisecond}, 0},
		"a time that is far off":               {200, "", `{"status":"pending","retry_after":1e300}`, provisioning.Report{Pending: true, After: time.Hour}, 0},
		"refused":                              {200, "", `{"status":"refused","reason":"barred"}`, provisioning.Report{Refused: "The operator refused: barred."}, 0},
		"refused with a 422":                   {422, "", `{"status":"refused","reason":"no\nsuch SIM"}`, provisioning.Report{Refused: "The operator refused: nosuch SIM."}, 0},
		"refused without a reason":             {409, "", `{"status":"refused"}`, provisioning.Report{Refused: "The operator refused: no reason was given."}, 0},
		"busy":                                 {503, "30", `{"status":"refused"}`, provisioning.Report{}, 30 * time.Second},
		"a fault":                              {500, "", `oops`, provisioning.Report{}, -1},
		"a path that is not there":             {404, "", `<html>`, provisioning.Report{}, -1},
		"a token that is not known":            {401, "", `{"message":"who are you"}`, provisioning.Report{}, -1},
		"completed, but with a 404":            {404, "", `{"status":"completed"}`, provisioning.Report{}, -1},
		"a page in the back end's place":       {200, "", `<html>welcome</html>`, provisioning.Report{}, -1},
		"a word that is none":                  {200, "", `{"status":"done"}`, provisioning.Report{}, -1},
		"a state that is none":                 {200, "", `{"status":"completed","state":"asleep"}`, provisioning.Report{}, -1},
		"a redirect":                           {302, "", `{"status":"completed"}`, provisioning.Report{}, -1},
		"more than an answer may have":         {200, "", `{"status":"completed"}` + strings.Repeat(" ", 70<<10), provisioning.Report{}, -1},
		"the connection breaks after the work": {0, "", ``, provisioning.Report{}, -1},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPeer(t)
			p.answer = func(string, int) (int, string, string) { return tc.status, tc.header, tc.body }
			got, err := p.reach(t, HTTPOptions{}).Command(t.Context(), command())
			if tc.again == 0 {
				if err != nil || got != tc.want {
					t.Fatalf("%+v, %v", got, err)
				}
				return
			}
			if relay.KindOf(err) != relay.KindUnavailable || got != (provisioning.Report{}) {
				t.Fatalf("%+v, %v", got, err)
			}
			after := time.Duration(-1)
			if u, ok := errors.AsType[*provisioning.Unavailable](err); ok && u.After > 0 {
				after = u.After
			}
			if after != tc.again {
				t.Errorf("again in %s, want %s", after, tc.again)
			}
		})
	}
}

func TestACommandOnTheWire(t *testing.T) {
	p := newPeer(t)
	if _, err := p.reach(t, HTTPOptions{}).Command(t.Context(), command()); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"id": "job-1", "action": "activate_sim", "iccid": "8944000000000000001", "imsi": "234150000000001", "msisdn": "447700900123",
		"services": []any{"service_4g"}, "subscriber_id": "s1", "requested_at": "2026-03-01T12:00:00Z",
	}
	if got := p.field(t, "job-1"); !reflect.DeepEqual(got, want) {
		t.Errorf("%v", got)
	}
	path, h := p.first()
	if path != "POST /v1/commands" || h.Get("Authorization") != "Bearer t0" || h.Get("Content-Type") != "application/json" {
		t.Errorf("%s %v", path, h)
	}
}

func TestACommandThatIsRepeatedActsOnce(t *testing.T) {
	p := newPeer(t)
	p.answer = func(_ string, n int) (int, string, string) {
		switch n {
		case 1:
			return 0, "", "" // done, but nobody hears of it
		case 2:
			return 502, "", "bad gateway"
		}
		return 200, "", `{"status":"completed"}`
	}
	h := p.reach(t, HTTPOptions{})
	var err error
	for range 3 {
		_, err = h.Command(t.Context(), command())
	}
	if asked, effects := p.count("job-1"); err != nil || effects != 1 || asked != 3 {
		t.Errorf("%v: %d effects of %d requests", err, effects, asked)
	}
}

func TestTheBackEndIsAskedWhetherItIsReady(t *testing.T) {
	p, now := newPeer(t), time.Unix(1000, 0)
	status := 503
	p.answer = func(key string, _ int) (int, string, string) {
		if key != "" {
			return 200, "", `{"status":"completed"}`
		}
		return status, "", ""
	}
	h := p.reach(t, HTTPOptions{Now: func() time.Time { return now }})
	asked := func() int { n, _ := p.count(""); return n }
	err := h.Ready(t.Context(), "")
	if path, _ := p.first(); relay.KindOf(err) != relay.KindUnavailable || path != "GET /v1/ready" {
		t.Fatalf("%v, %q", err, path)
	}
	status = 204
	for range 2 { // the second trusts the first
		if err := h.Ready(t.Context(), ""); err != nil || asked() != 2 {
			t.Fatalf("%v, asked %d times", err, asked())
		}
	}
	now = now.Add(time.Minute)
	if _, err := h.Command(t.Context(), command()); err != nil {
		t.Fatal(err)
	}
	if err := h.Ready(t.Context(), ""); err != nil || asked() != 2 {
		t.Fatalf("after a command: %v, asked %d times", err, asked())
	}
	now = now.Add(time.Minute)
	status = 500
	if err := h.Ready(t.Context(), ""); err == nil {
		t.Error("trusted for too long")
	}
}

func TestTooManyCommandsWait(t *testing.T) {
	p := newPeer(t)
	began, release := make(chan struct{}), make(chan struct{})
	p.answer = func(string, int) (int, string, string) {
		began <- struct{}{}
		<-release
		return 200, "", `{"status":"completed"}`
	}
	h := p.reach(t, HTTPOptions{MaxConcurrent: 1, SlotTimeout: time.Millisecond})
	first := make(chan error)
	go func() {
		_, err := h.Command(t.Context(), command())
		first <- err
	}()
	<-began
	_, err := h.Command(t.Context(), command())
	if u, ok := errors.AsType[*provisioning.Unavailable](err); !ok || u.After <= 0 || relay.KindOf(err) != relay.KindUnavailable {
		t.Errorf("%v", err)
	}
	close(release)
	if err := <-first; err != nil {
		t.Error(err)
	}
}

func TestABackEndOutOfReach(t *testing.T) {
	client, err := httpout.New(httpout.Options{})
	if err != nil {
		t.Fatal(err)
	}
	h, err := NewHTTP(client, HTTPOptions{URL: "http://127.0.0.1:9"}) // which may not be reached
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.Command(t.Context(), command()); relay.KindOf(err) != relay.KindUnavailable {
		t.Error(err)
	}
	if err := h.Ready(t.Context(), ""); relay.KindOf(err) != relay.KindUnavailable {
		t.Error(err)
	}
	if _, err := h.Deliver(t.Context(), "d1", outbox.SIM{}); delivery.Classify(0, nil, err, time.Now()).Class != delivery.Fault {
		t.Error(err)
	}
	for _, bad := range []string{"", "ftp://x/", "http://", "%", "http://x/?a=b"} {
		if _, err := NewHTTP(client, HTTPOptions{URL: bad}); err == nil {
			t.Errorf("%q", bad)
		}
	}
}

func TestMessagesForASIM(t *testing.T) {
	for name, tc := range map[string]struct {
		status int
		body   string
		class  delivery.Class
	}{
		"taken":                             {200, `{"status":"completed"}`, delivery.Delivered},
		"taken without a word":              {204, ``, delivery.Delivered},
		"refused":                           {200, `{"status":"refused","reason":"no such SIM"}`, delivery.Dead},
		"refused with a 404":                {404, `{"status":"refused"}`, delivery.Dead},
		"busy":                              {429, ``, delivery.Retry},
		"a fault":                           {500, ``, delivery.Retry},
		"a path that is not there":          {404, `<html>`, delivery.Fault},
		"a token that is not known":         {401, ``, delivery.Fault},
		"nobody knows whether it was taken": {0, ``, delivery.Fault},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPeer(t)
			p.answer = func(string, int) (int, string, string) { return tc.status, "", tc.body }
			m := outbox.SIM{ICCID: "8944000000000000001", From: "447700900123", To: "447800000001", Data: []byte{1, 255}, UDH: []byte{5}, Coding: 8}
			r, err := p.reach(t, HTTPOptions{}).Deliver(t.Context(), "d1", m)
			class := delivery.Delivered
			if err != nil {
				class = delivery.Classify(0, nil, err, time.Now()).Class
			}
			path, header := p.first()
			if class != tc.class || r.Simulated || path != "POST /v1/messages" || header.Get("Idempotency-Key") != "d1" {
				t.Errorf("%v %+v, %v, %s", class, r, err, path)
			}
			if tc.status == http.StatusOK {
				want := map[string]any{"id": "d1", "iccid": m.ICCID, "from": m.From, "to": m.To, "data": "01ff", "udh": "05", "coding": 8.0}
				if got := p.field(t, "d1"); !reflect.DeepEqual(got, want) {
					t.Errorf("%v", got)
				}
			}
		})
	}
}

func FuzzParseAnswer(f *testing.F) {
	f.Add([]byte(`{"status":"completed","state":"active"}`))
	f.Add([]byte(`{"status":"pending","retry_after":1e9}`))
	f.Add([]byte(`{"status":"refused","reason":"\u0000é"}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		a, err := parseResponse(body)
		if err != nil {
			return
		}
		r := a.report(-time.Second)
		if r.After > time.Hour || len(r.Refused) > maxReason+100 || r.Pending && r.Refused != "" {
			t.Errorf("%+v", r)
		}
	})
}
