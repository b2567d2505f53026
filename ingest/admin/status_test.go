package admin

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/penstock/penstock/ingest/admin/traffic"
	"github.com/penstock/penstock/ingest/answertest"
	"github.com/penstock/penstock/relay/event"
	"github.com/penstock/penstock/relay/relaytest"
	"github.com/penstock/penstock/relay/user"
)

func TestTheWatchRecordsTheStartOfEachState(t *testing.T) {
	var checkErr error
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	w := newWatch([]Backend{{Name: "records", Check: func(context.Context) error { return checkErr }}}, func() time.Time { return now })
	refused := errors.New("connection refused")
	for _, step := range []struct {
		name    string
		err     error
		since   int // minutes
		lastErr int // minutes; -1 for none
	}{
		{"at the start", nil, 0, -1},
		{"still up after a minute", nil, 0, -1},
		{"down", refused, 2, 2},
		{"still down", errors.New("no route to host"), 2, 3},
		{"up again", nil, 4, 3},
		{"still up", nil, 4, 3},
	} {
		checkErr = step.err
		s := w.check(t.Context())[0]
		begin := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
		if !errors.Is(s.Err, step.err) {
			t.Errorf("%s: error = %v, want %v", step.name, s.Err, step.err)
		}
		relaytest.Equal(t, step.name+": since", s.Since, begin.Add(time.Duration(step.since)*time.Minute))
		relaytest.Equal(t, step.name+": there is a last error", s.LastErr != nil, step.lastErr >= 0)
		if step.lastErr >= 0 {
			relaytest.Equal(t, step.name+": the time of the last error", s.LastErrAt, begin.Add(time.Duration(step.lastErr)*time.Minute))
		}
		now = now.Add(time.Minute)
	}
}

func TestAPanicInACheckIsAnError(t *testing.T) {
	down := CheckBackends(t.Context(), []Backend{
		{Name: "cache", Check: func(context.Context) error { panic("check panicked") }},
		{Name: "records", Check: func(context.Context) error { return nil }},
	})
	if len(down) != 1 || down["cache"] == nil {
		t.Errorf("back ends that are down = %v, want cache", down)
	}
}

func TestTheStatusHasTheErrorsOfBackEnds(t *testing.T) {
	o := newOperatorAPIWithEvents(t)
	o.backend = errors.New("no route to 10.0.0.1")
	answer := o.call("GET /admin/status", "")
	var got struct{ Data statusJSON }
	relaytest.NoError(t, json.Unmarshal([]byte(strings.TrimPrefix(answer, "200 ")), &got))
	s := got.Data
	relaytest.Equal(t, "the node", s.Node, "n1")
	relaytest.Equal(t, "ready", s.Ready, false)
	if len(s.Backends) != 2 || len(s.Journals) != 2 {
		t.Fatalf("back ends = %d, journals = %d, want 2 and 2", len(s.Backends), len(s.Journals))
	}
	o.backend = nil
	backends := got.Data.Backends
	backends[1].Since, backends[1].LastErrorAt = "", nil
	want := backendStatusJSON{Name: "readings", Status: "down", Error: "no route to 10.0.0.1", LastError: "no route to 10.0.0.1"}
	if diff := cmp.Diff(want, backends[1]); diff != "" {
		t.Errorf("status of the back end differs (-want +got):\n%s", diff)
	}
	j := got.Data.Journals[0]
	relaytest.Equal(t, "the kind of the journal", j.Kind, "uplink")
	relaytest.Equal(t, "the number of accepted entries", j.Accepted, 4)
	if j.Bytes == 0 {
		t.Error("size of the journal = 0, want more")
	}
	answertest.Contains(t, "the status after the outage", o.call("GET /admin/status", ""), `"ready":true`, `"last_error":"no route to 10.0.0.1"`)
}

func TestEventsAreListedFromTheJournalWhileTheDatabaseIsDown(t *testing.T) {
	o := newOperatorAPIWithEvents(t)
	normalAnswer := o.call("GET /admin/events?limit=2", "")
	relaytest.NoError(t, o.db.Close())
	var page struct {
		Data []eventJSON
		Meta searchMeta
	}
	answer := o.call("GET /admin/events?limit=4", "")
	relaytest.NoError(t, json.Unmarshal([]byte(strings.TrimPrefix(answer, "200 ")), &page))
	if len(page.Data) != 4 {
		t.Fatalf("answer = %s, want 4 events (answer before the outage: %s)", answer, normalAnswer)
	}
	for _, e := range page.Data {
		want := event.Unknown
		if e.Raw == "waits" { // not processed yet according to the checkpoint
			want = event.Pending
		}
		relaytest.Equal(t, "the state of "+e.ID, e.State, want)
		if e.Raw == "" {
			t.Errorf("raw data of %s is empty", e.ID)
		}
	}
	answertest.Contains(t, "the page", page.Meta.Stale, "The database does not answer")
	if page.Meta.Next == "" {
		t.Error("cursor of the next page is empty")
	}
	nextPage := o.call("GET /admin/events?limit=4&cursor="+page.Meta.Next, "")
	answertest.HasPrefix(t, "the next page", nextPage, "200 ")
	answertest.NotContains(t, "the next page", nextPage, page.Data[0].ID+`"`)
	if got := o.call("GET /admin/events?state=quarantined", ""); !strings.HasPrefix(got, "503 ") {
		t.Errorf("answer for quarantined events = %s, want 503", got)
	}
}

func TestTrafficIsListedByMinuteAndByFiveMinutes(t *testing.T) {
	ring := traffic.Open(filepath.Join(t.TempDir(), "ring"), []traffic.Series{{Name: "uplink"}}, slog.New(slog.DiscardHandler))
	o := newOperatorAPI(t)
	o.surface.Traffic = ring
	ring.Add(o.now.Add(-time.Minute), []uint64{3})
	ring.Add(o.now, []uint64{4})
	for query, want := range map[string]struct{ step, n, sum int }{"": {60, 60, 7}, "?range=hour": {60, 60, 7}, "?range=day": {300, 288, 7}} {
		var got struct{ Data trafficJSON }
		relaytest.NoError(t, json.Unmarshal([]byte(strings.TrimPrefix(o.call("GET /admin/traffic"+query, ""), "200 ")), &got))
		d := got.Data
		relaytest.Equal(t, query+": the step", d.Step, want.step)
		if len(d.Series) != 1 {
			t.Fatalf("%q: series = %d, want 1", query, len(d.Series))
		}
		if n := len(d.Series[0].Values); n != want.n {
			t.Fatalf("%q: values = %d, want %d", query, n, want.n)
		}
		sum := 0
		for _, v := range d.Series[0].Values {
			if v != nil {
				sum += int(*v) //nolint:gosec // small figures of a test
			}
		}
		relaytest.Equal(t, query+": the sum", sum, want.sum)
		if v := d.Series[0].Values[0]; v != nil {
			t.Errorf("%q: first value = %d, want null", query, *v)
		}
	}
	if got := o.call("GET /admin/traffic?range=year", ""); !strings.HasPrefix(got, "422 ") {
		t.Errorf("answer for an unknown range = %s, want 422", got)
	}
}

func TestAccountsAreListed(t *testing.T) {
	o := newOperatorAPI(t)
	o.call("PUT /admin/inventory", `{"accounts":[{"name":"acme","credit":7,"permissions":["mvno"],"callback_url":"https://u:pass@example.com/hook?key=abc"}]}`)
	o.call("POST /admin/accounts", `{"name":"globex"}`)
	const acme = `{"id":1,"name":"acme","permissions":["mvno"],"callback_url":"https://u:***@example.com/hook?key=***","signed":false,"credit":7,"document":"default"}`
	const globex = `{"id":2,"name":"globex","permissions":[],"callback_url":"","signed":false,"credit":0,"document":null}`
	relaytest.Equal(t, "the accounts", o.call("GET /admin/accounts", ""), `200 {"data":[`+acme+`,`+globex+`]}`)
	status, _ := o.signIn(user.Account, 1).send("GET /admin/accounts/globex", "")
	relaytest.Equal(t, "the status of another account for the role account", status, 404)
	_, viewerAnswer := o.signIn(user.Viewer, 0).send("GET /admin/accounts/acme", "")
	relaytest.Equal(t, "the account for a viewer", viewerAnswer, `{"data":`+strings.Replace(acme, "/hook?key=***", "/…", 1)+`}`)
}

func TestAccountsAreManaged(t *testing.T) {
	o := newOperatorAPI(t)
	o.call("PUT /admin/inventory", `{"accounts":[{"name":"acme"}]}`)
	for _, step := range []struct{ request, body, want string }{
		{"POST /admin/accounts", `{"name":"globex","credit":10}`, `"id":2,"name":"globex"`},
		{"POST /admin/accounts", `{"name":"globex"}`, "409 "},
		{"POST /admin/accounts", `{"name":"two\nlines"}`, `"name":["expected one line`},
		{"POST /admin/accounts", `{"name":"2"}`, "The name must not be a number"},
		{"POST /admin/accounts", `{"name":"rich","credit":2000000000000000}`, `"credit":["The credit must be at most 1125899906842624."]`},
		{"GET /admin/accounts/rich", "", "404 "},
		{"PATCH /admin/accounts/2", `{"permissions":["mvno"],"callback_url":"https://example.com/hook","webhook_secret":["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"]}`, `"permissions":["mvno"],"callback_url":"https://example.com/hook","signed":true`},
		{"PATCH /admin/accounts/globex", `{"callback_url":"http://example.com"}`, "422 "},
		{"PATCH /admin/accounts/globex", `{"callback_url":"https://10.0.0.1/"}`, "422 "},
		{"GET /admin/accounts/globex", "", `"permissions":["mvno"],"callback_url":"https://example.com/hook","signed":true,"credit":10,"document":null`},
		{"POST /admin/accounts/globex/credit", `{"amount":-4,"reason":"Wrong price"}`, `"credits":-4,"balance":6,"reason":"adjusted","reference":"Wrong price"`},
		{"POST /admin/accounts/globex/credit", `{"amount":-7,"reason":"Wrong price"}`, "402 "},
		{"POST /admin/accounts/globex/credit", `{"amount":1}`, "422 "},
		{"DELETE /admin/accounts/acme", "", "The inventory document default declares the account"},
		{"POST /admin/tokens", `{"account":"globex"}`, "201 "},
		{"DELETE /admin/accounts/globex", "", "The account holds credit."},
		{"POST /admin/accounts/globex/credit", `{"amount":-6,"reason":"Closing"}`, `"balance":0`},
		{"DELETE /admin/accounts/globex", "", "204"},
		{"GET /admin/accounts/globex", "", "404 "},
		{"GET /admin/tokens", "", `200 {"data":[]}`},
		{"POST /admin/accounts", `{"name":"globex"}`, `"id":3,"name":"globex"`},
		{"GET /admin/audit?operation=adjustCredit&outcome=done", "", `"target":"globex"`},
		{"GET /admin/audit?operation=changeAccount&outcome=done", "", `"webhook_secrets":["***"]`},
	} {
		answertest.Contains(t, step.request+" "+step.body, o.call(step.request, step.body), step.want)
	}
}
