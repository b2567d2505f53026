package restv3

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/penstock/penstock/ingest/answertest"
	"github.com/penstock/penstock/ingest/httpd"
	"github.com/penstock/penstock/ingest/openapi/contracttest"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/job"
	"github.com/penstock/penstock/relay/relaytest"
	"github.com/penstock/penstock/relay/sim"
	"github.com/penstock/penstock/relay/usage"
)

// usageStore holds usage of November: three rows of the account 1. Methods that the
// surface does not call panic, because the embedded interfaces are nil.
type usageStore struct {
	usage.Records
	usage.SIMs
	usage.Exports
	jobs  map[string]job.Job
	files map[string]string
	down  bool
}

func (s *usageStore) Any(_ context.Context, acct relay.AccountID, span usage.Span, _ string) (bool, error) {
	return acct == 1 && span.To.After(clock().AddDate(0, 0, -19)), nil
}

func (s *usageStore) Rows(_ context.Context, _ string, offset, limit int) ([]usage.Row, error) {
	rows := []usage.Row{{ICCID: iccid("1"), Bytes: 7}, {ICCID: iccid("2"), Subscriber: "s1", Company: "Acme", Bytes: 9}, {ICCID: iccid("3"), Subscriber: "s1"}}
	return rows[min(offset, 3):min(offset+limit, 3)], nil
}

// noSubscribers finds no subscriber.
type noSubscribers struct{}

func (noSubscribers) Get(context.Context, relay.AccountID, string) (sim.Subscriber, error) {
	return sim.Subscriber{}, relay.Errorf(relay.KindNotFound, "subscriber")
}

func (s *usageStore) Submit(_ context.Context, j job.Job) error {
	if s.down {
		return relay.Errorf(relay.KindUnavailable, "redis: down")
	}
	j.State = job.Queued
	s.jobs[j.ID] = j
	return nil
}

func (s *usageStore) Get(_ context.Context, acct relay.AccountID, id string) (job.Job, error) {
	j, ok := s.jobs[id]
	if !ok || j.Account != acct {
		return j, relay.Errorf(relay.KindNotFound, "job")
	}
	return j, nil
}

func (s *usageStore) Make(context.Context, string, func(context.Context, io.Writer) (int64, error)) (int64, error) {
	return 0, nil
}

func (s *usageStore) Open(_ context.Context, name string) (io.ReadCloser, int64, error) {
	text, ok := s.files[name]
	if !ok {
		return nil, 0, relay.Errorf(relay.KindNotFound, "file")
	}
	return io.NopCloser(strings.NewReader(text)), int64(len(text)), nil
}

// tokenStore holds the tokens of the accounts 1, acme, and 2, globex.
type tokenStore struct{}

func (tokenStore) Token(_ context.Context, hash string) (account.Token, error) {
	for id, name := range []string{"", "acme", "globex"} {
		if hash == account.HashToken(name) {
			return account.Token{Account: relay.AccountID(id), Scopes: account.DefaultScopes()}, nil
		}
	}
	return account.Token{}, relay.Errorf(relay.KindNotFound, "token")
}

func (tokenStore) TokenBySource(context.Context, string) (account.Token, error) {
	return account.Token{}, relay.Errorf(relay.KindNotFound, "source")
}

// newReports returns the surface over a usageStore. It checks every answer against the contract.
func newReports(t *testing.T) (*api, *usageStore) {
	t.Helper()
	s := &usageStore{jobs: map[string]job.Job{}, files: map[string]string{}}
	service := usage.New(usage.Deps{Records: s, SIMs: s, Subscribers: noSubscribers{}, Jobs: s, Files: s, Exports: s, Now: clock})
	a := &api{t: t, check: contracttest.Open(t, OpenAPI()), app: httpd.New(httpd.Options{Logger: slog.New(slog.DiscardHandler)})}
	New(Deps{Usage: service}).Mount(a.app, httpd.NewAuth(httpd.AuthDeps{Tokens: tokenStore{}, Now: time.Now}))
	a.app.Use(httpd.NotFound)
	return a, s
}

// addJob requests a report, sets the state and row count of its job, and returns the job id.
func (s *usageStore) addJob(a *api, path string, state job.State, count int) string {
	a.t.Helper()
	data := a.expectParts("acme", "POST", path, `{"start_time":"2026-11-01T00:00:00Z","end_time":"2026-11-30"}`, 200, `"message":`, `"data":{"id":"`)
	id := fmt.Sprint(data["id"])
	j := s.jobs[id]
	j.State, j.Result = state, json.RawMessage(fmt.Sprintf(`{"count":%d}`, count))
	s.jobs[id] = j
	return id
}

func TestReportsAreRequested(t *testing.T) {
	a, s := newReports(t)
	invalid := func(field, text string) string {
		return `{"message":"The given data was invalid.","errors":{"` + field + `":["` + text + `"]}}`
	}
	for _, path := range []string{"/v3/mno/job/cdr", "/v3/mno/job/usage"} {
		for name, tc := range map[string]struct {
			token, body string
			status      int
			want        string
		}{
			"no start":            {"acme", `{"end_time":"2026-11-02"}`, 422, invalid("start_time", "The start time field is required.")},
			"a blank start":       {"acme", `{"start_time":" ","end_time":"2026-11-02"}`, 422, invalid("start_time", "The start time field is required.")},
			"invalid time":        {"acme", `{"start_time":"soon","end_time":"2026-11-02"}`, 422, invalid("start_time", "The start time must be an ISO 8601 date and time, like 2026-01-31T12:00:00Z.")},
			"a number":            {"acme", `{"start_time":7,"end_time":"2026-11-02"}`, 422, invalid("start_time", "The start time must be a string.")},
			"an end at the start": {"acme", `{"start_time":"2026-11-02T01:00:00+01:00","end_time":"2026-11-02"}`, 422, invalid("end_time", "The end time must be a date after start time.")},
			"more than 31 days":   {"acme", `{"start_time":"2026-11-01","end_time":"2026-12-02T00:00:00.000001Z"}`, 422, invalid("end_time", "The end time must be at most 31 days after start time.")},
			"invalid JSON":        {"acme", `{`, 422, invalid("body", "Invalid JSON.")},
		} {
			t.Run(path+" "+name, func(t *testing.T) { a.expect(tc.token, "POST", path, tc.body, tc.status, tc.want) })
		}
	}
	const noRecords = `{"success":false,"message":"No CDR records found for the given period."}`
	a.expect("acme", "POST", "/v3/mno/job/cdr", `{"start_time":"2026-10-01","end_time":"2026-11-01"}`, 404, noRecords)
	a.expect("globex", "POST", "/v3/mno/job/cdr", `{"start_time":"2026-11-01","end_time":"2026-12-01"}`, 404, noRecords)
	a.expect("acme", "POST", "/v3/mno/job/cdr", `{"start_time":"2026-11-01","end_time":"2026-12-02","subscriber_id":"s9"}`, 422,
		invalid("subscriber_id", "The selected subscriber id is invalid."))
	if len(s.jobs) != 0 {
		t.Errorf("%d jobs created, want 0", len(s.jobs))
	}
	a.expectParts("acme", "POST", "/v3/mno/job/usage?start_time=2026-11-01T00:00:00%2B0100&end_time=2026-11-30T12:00:00&name=Mine", "", 200, `"Usage report requested."`)
	for _, j := range s.jobs {
		relaytest.Equal(t, "the name", j.Name, "Mine")
		answertest.Contains(t, "the input", string(j.Input), `"from":"2026-10-31T23:00:00Z","to":"2026-11-30T12:00:00Z"`)
	}
	for start, end := range map[string]string{"20261101T0000+0100": "2026-11-30T12:00", "2026-10-31T23Z": "20261130T120000Z", "2026-W44-6T23:00:00": "2026-334T12,0", "2026-10-31 23:00": "2026-11-30T13:00:00.000+01"} {
		clear(s.jobs)
		a.expectParts("acme", "POST", "/v3/mno/job/usage", fmt.Sprintf(`{"start_time":%q,"end_time":%q}`, start, end), 200, `"Usage report requested."`)
		for _, j := range s.jobs {
			if !strings.Contains(string(j.Input), `"from":"2026-10-31T23:00:00Z","to":"2026-11-30T12:00:00Z"`) {
				t.Errorf("%s to %s: unexpected job input %s", start, end, j.Input)
			}
		}
	}
	a.expectParts("acme", "POST", "/v3/mno/job/usage", `{"start_time":"2026-10-01T00:00","end_time":"20261031T2400"}`, 200, `"Usage report requested."`) // without usage
	s.down = true
	a.expect("acme", "POST", "/v3/mno/job/cdr", `{"start_time":"2026-11-01","end_time":"2026-12-02"}`, 424, `{"success":false,"message":"Service temporarily unavailable. Please try again later."}`)
}

func TestCDRFileIsStreamed(t *testing.T) {
	a, s := newReports(t)
	id := s.addJob(a, "/v3/mno/job/cdr", job.Processing, 0)
	a.expect("acme", "GET", "/v3/mno/job/"+id+"/cdr/stream", "", 422, `{"success":false,"message":"Job is not completed."}`)
	const noFile = `{"success":false,"message":"File not found."}`
	id = s.addJob(a, "/v3/mno/job/cdr", job.Completed, 1)
	a.expect("acme", "GET", "/v3/mno/job/"+id+"/cdr/stream", "", 404, noFile)
	s.files[id] = strings.Repeat("id,iccid\n", 100_000)
	a.expect("acme", "GET", "/v3/mno/job/"+id+"/cdr/stream", "", 200, s.files[id]) // the headers are checked against the contract
	a.expect("globex", "GET", "/v3/mno/job/"+id+"/cdr/stream", "", 404, noFile)
	a.expect("acme", "GET", "/v3/mno/job/none/cdr/stream", "", 404, noFile)
	a.expect("acme", "GET", "/v3/mno/job/"+s.addJob(a, "/v3/mno/job/usage", job.Completed, 1)+"/cdr/stream", "", 404, noFile)
	a.expect("acme", "GET", "/v3/mno/job/"+s.addJob(a, "/v3/mno/job/cdr", job.Failed, 1)+"/cdr/stream", "", 404, noFile)
}

func TestUsageReportIsPaged(t *testing.T) {
	a, s := newReports(t)
	id := s.addJob(a, "/v3/mno/job/usage", job.Queued, 0)
	a.expect("acme", "GET", "/v3/mno/job/"+id+"/usage", "", 422, `{"success":false,"message":"Job is not completed."}`)
	id = s.addJob(a, "/v3/mno/job/usage", job.Completed, 3)
	const span = `"start_date":"2026-11-01T00:00:00.000000Z","end_date":"2026-11-30T00:00:00.000000Z"`
	row1 := `{"iccid":"` + iccid("1") + `","subscriber_id":"","subscriber_company_name":"",` + span + `,"usage":7,"unit":"bytes"}`
	row2 := `{"iccid":"` + iccid("2") + `","subscriber_id":"s1","subscriber_company_name":"Acme",` + span + `,"usage":9,"unit":"bytes"}`
	a.expect("acme", "GET", "/v3/mno/job/"+id+"/usage?per_page=2", "", 200, `{"success":true,"message":"Usage report found.","data":[`+row1+`,`+row2+
		`],"meta":{"current_page":1,"last_page":2,"per_page":2,"total":3,"count":2}}`)
	a.expectParts("acme", "GET", "/v3/mno/job/"+id+"/usage?per_page=2&page=2", "", 200, iccid("3"), `"total":3,"count":1`)
	a.expect("acme", "GET", "/v3/mno/job/"+id+"/usage?page=9", "", 200, `{"success":true,"message":"Usage report found.","data":[],"meta":{"current_page":9,"last_page":1,"per_page":25,"total":3,"count":0}}`)
	a.expect("acme", "GET", "/v3/mno/job/"+id+"/usage?per_page=501", "", 422, `{"success":false,"message":"Validation error.","errors":{"per_page":["The per page must be a number from 1 to 500."]}}`)
	a.expect("globex", "GET", "/v3/mno/job/"+id+"/usage", "", 404, `{"success":false,"message":"Invalid job."}`)
	a.expect("acme", "GET", "/v3/mno/job/"+s.addJob(a, "/v3/mno/job/cdr", job.Completed, 1)+"/usage", "", 404, `{"success":false,"message":"Invalid job."}`)
}
