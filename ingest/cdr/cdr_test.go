package cdr

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/penstock/penstock/decoders"
	"github.com/penstock/penstock/ingest/answertest"
	"github.com/penstock/penstock/ingest/httpd"
	"github.com/penstock/penstock/ingest/intake"
	"github.com/penstock/penstock/ingest/intake/intaketest"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/event"
	"github.com/penstock/penstock/relay/relaytest"
	"github.com/penstock/penstock/relay/sip"
	"github.com/penstock/penstock/relay/usage"
)

// tokens holds the tokens of a switch and of a customer.
type tokens struct{}

func (tokens) Token(_ context.Context, hash string) (account.Token, error) {
	switch hash {
	case account.HashToken("switch"):
		return account.Token{Account: 3, Scopes: []account.Scope{account.Carrier}}, nil
	case account.HashToken("customer"):
		return account.Token{Account: 3, Scopes: account.DefaultScopes()}, nil
	}
	return account.Token{}, relay.Errorf(relay.KindNotFound, "token")
}

func (tokens) TokenBySource(context.Context, string) (account.Token, error) {
	return account.Token{}, relay.Errorf(relay.KindNotFound, "source")
}

// log records the accepted entries.
type log struct {
	entries []intake.Entry
	err     error
}

func (l *log) Accept(_ context.Context, e *intake.Entry) (string, error) {
	l.entries = append(l.entries, *e)
	return "n1-c1", l.err
}

// post sends a request to the surface and compares the answer and the journalled post. An
// empty source means that nothing is journalled.
func (l *log) post(t *testing.T, req *http.Request, status int, answer, source, path, body string) {
	t.Helper()
	app := httpd.New(httpd.Options{})
	New(l, Options{}).Mount(app, httpd.NewAuth(httpd.AuthDeps{Tokens: tokens{}, Now: time.Now}))
	resp := relaytest.Must(app.Test(req))(t)
	got, _ := io.ReadAll(resp.Body)
	relaytest.Equal(t, "the status", resp.StatusCode, status)
	relaytest.Equal(t, "the answer", string(got), answer)
	if source == "" {
		relaytest.Equal(t, "the number of journalled posts", len(l.entries), 0)
		return
	}
	e := l.entries[0]
	relaytest.Equal(t, "the account", e.Account, 3)
	relaytest.Equal(t, "the source", e.Source, source)
	relaytest.Equal(t, "the path", e.Path, path)
	relaytest.Equal(t, "the body", string(e.Body), body)
}

func fixture(t *testing.T, name string) string {
	t.Helper()
	return string(relaytest.Must(os.ReadFile(filepath.Join("..", "..", "decoders", "cdr", "testdata", name)))(t))
}

func TestRecordsAreJournalledAsTheyCame(t *testing.T) {
	const good = `{"id":"a","start":"2026-11-20T00:00:00Z"}`
	for name, tc := range map[string]struct {
		token, body, source string
		err                 error
		status              int
		want                string
	}{
		"FreeSWITCH":                {"switch", fixture(t, "freeswitch.json"), "freeswitch", nil, 200, `{"data":{"id":"n1-c1","records":1,"refused":0}}`},
		"Asterisk":                  {"switch", fixture(t, "asterisk.csv"), "asterisk", nil, 200, `{"data":{"id":"n1-c1","records":2,"refused":0}}`},
		"JSON":                      {"switch", fixture(t, "records.jsonl"), "json", nil, 200, `{"data":{"id":"n1-c1","records":2,"refused":0}}`},
		"some invalid records":      {"switch", good + "\n{}", "json", nil, 200, `{"data":{"id":"n1-c1","records":1,"refused":1}}`},
		"only invalid records":      {"switch", "{}", "", nil, 422, `{"errors":{"body":["json: id: offset 0: is missing"]},"message":"The given data was invalid."}`},
		"a negative duration":       {"switch", `{"variables":{"uuid":"u","start_epoch":"1795253655","duration":"-5"}}`, "freeswitch", nil, 200, `{"data":{"id":"n1-c1","records":0,"refused":1}}`},
		"an end before the start":   {"switch", `{"id":"a","start":"2026-11-20T00:00:01Z","end":"2026-11-20T00:00:00Z"}`, "json", nil, 200, `{"data":{"id":"n1-c1","records":0,"refused":1}}`},
		"an empty body":             {"switch", "", "", nil, 422, `{"errors":{"body":["cdr: body: offset 0: is empty"]},"message":"The given data was invalid."}`},
		"an empty list":             {"switch", "[]", "", nil, 422, `{"errors":{"body":["cdr: body: offset 0: has no records"]},"message":"The given data was invalid."}`},
		"no token":                  {"", good, "", nil, 401, `{"message":"Unauthenticated."}`},
		"a token without the scope": {"customer", good, "", nil, 403, `{"message":"Forbidden."}`},
		"a full journal":            {"switch", good, "json", intake.ErrFull, 503, `{"message":"Service temporarily unavailable. Please try again later."}`},
		"too large a post":          {"switch", good, "json", intake.ErrTooLarge, 413, `{"message":"Request Entity Too Large"}`},
	} {
		t.Run(name, func(t *testing.T) {
			req := httptest.NewRequest("POST", "/inbound/cdr/sip", strings.NewReader(tc.body))
			req.SetBasicAuth("pbx", tc.token)
			(&log{err: tc.err}).post(t, req, tc.status, tc.want, tc.source, sipPath, tc.body)
		})
	}
}

// callStore records the saved calls.
type callStore struct {
	records []sip.Record
	puts    int
	err     error
}

func (s *callStore) Put(_ context.Context, records []sip.Record) error {
	s.records = append(s.records, records...)
	s.puts++
	return s.err
}

func TestProcessorSavesCallRecords(t *testing.T) {
	calls := &callStore{}
	batch := strings.Repeat(`{"id":"b","start":"2026-11-20T00:00:00Z"}`+"\n", maxBatch)
	items := []intake.Item{
		{ID: "n1-c1", Seq: 1, Entry: intake.Entry{Account: 3, Source: "json", Body: []byte(`{"id":"a","start":"2026-11-20T00:00:00Z"}` + "\n{}")}},
		{ID: "n1-c2", Seq: 2, Entry: intake.Entry{Account: 4, Source: "json", Body: []byte(batch)}},
		{ID: "n1-c4", Seq: 4, Entry: intake.Entry{Account: 3, Source: "json", Body: []byte(`{"id":"a","start":"2026-11-20T00:00:01Z","end":"2026-11-20T00:00:00Z"}`)}},
		{ID: "n1-c5", Seq: 5, Entry: intake.Entry{Account: 5, Source: "json", Body: []byte(`{"id":"b","start":"2026-11-20T00:00:00Z","cost":1}`)}},
		{ID: "n1-c3", Seq: 3, Entry: intake.Entry{Account: 5, Source: "asterisk", Body: []byte(fixture(t, "asterisk.csv"))}},
	}
	statuses, err := intaketest.Process(t.Context(), NewProcessor(calls, nil), items...)
	want := event.Status{ID: "n1-c1", Seq: 1, State: event.Quarantined, Reason: "json: id: offset 42: is missing", Account: 3, Source: "json"}
	relaytest.NoError(t, err)
	relaytest.Equal(t, "the statuses", statuses, []event.Status{want, {
		ID: "n1-c4", Seq: 4, State: event.Quarantined, Reason: "json: end: offset 0: is before the start", Account: 3, Source: "json",
	}, {
		ID: "n1-c5", Seq: 5, State: event.Done, Account: 5, Source: "json", Notes: decoders.Notes{"json: cost: offset 0: unknown field ignored"},
	}})
	if len(calls.records) != 4+maxBatch {
		t.Fatalf("%d records, want %d", len(calls.records), 4+maxBatch)
	}
	relaytest.Equal(t, "the number of puts", calls.puts, 2)
	relaytest.Equal(t, "the account of the first record", calls.records[0].Account, 3)
	relaytest.Equal(t, "the account of the last record", calls.records[len(calls.records)-1].Account, 5)
	calls.err = relay.Errorf(relay.KindUnavailable, "full")
	if _, err := intaketest.Process(t.Context(), NewProcessor(calls, nil), items...); !errors.Is(err, calls.err) {
		t.Errorf("error of Process = %v, want %v", err, calls.err)
	}
}

func TestRecordsOfSIMsAreJournalledUnderTheirPath(t *testing.T) {
	for name, tc := range map[string]struct {
		body, source string
		status       int
		want         string
	}{
		"JSON lines":            {fixture(t, "uses.jsonl"), "json", 200, `{"data":{"id":"n1-c1","records":3,"refused":0}}`},
		"CSV":                   {fixture(t, "uses.csv"), "csv", 200, `{"data":{"id":"n1-c1","records":3,"refused":0}}`},
		"some invalid records":  {fixture(t, "uses.csv") + "x,y\n", "csv", 200, `{"data":{"id":"n1-c1","records":3,"refused":1}}`},
		"a negative byte count": {`{"id":"a","iccid":"89","start_time":"2026-11-20T00:00:00Z","type":"data","bytes":-1}`, "json", 200, `{"data":{"id":"n1-c1","records":0,"refused":1}}`},
		"a call record":         {`{"id":"a","start":"2026-11-20T00:00:00Z"}`, "", 422, `{"errors":{"body":["json: iccid: offset 0: must be 1 to 32 digits or letters"]},"message":"The given data was invalid."}`},
	} {
		t.Run(name, func(t *testing.T) {
			req := httptest.NewRequest("POST", "/Inbound/cdr/sim?x=1", strings.NewReader(tc.body))
			req.Header.Set("X-Auth-Token", "switch")
			(&log{}).post(t, req, tc.status, tc.want, tc.source, simPath, tc.body)
		})
	}
}

// meter records usage; ICCIDs that end in 25 are unknown.
type meter struct {
	records []usage.Record
	takes   int
	err     error
}

func (m *meter) Take(_ context.Context, records []usage.Record) (unknown []int, err error) {
	m.takes++
	for i, r := range records {
		if strings.HasSuffix(r.Use.ICCID, "25") {
			unknown = append(unknown, i)
		}
	}
	m.records = append(m.records, records...)
	return unknown, m.err
}

func TestProcessorMetersSIMUsage(t *testing.T) {
	calls, m := &callStore{}, &meter{}
	const line = `{"id":"b","iccid":"8944500000000000025","start_time":"2026-11-20T00:00:00Z","type":"sms"}` + "\n"
	items := []intake.Item{
		{ID: "n1-c1", Seq: 1, Entry: intake.Entry{Account: 3, Source: "json", Path: simPath, Body: []byte(fixture(t, "uses.jsonl") + "{}")}},
		{ID: "n1-c2", Seq: 2, Entry: intake.Entry{Account: 4, Source: "json", Path: sipPath, Body: []byte(`{"id":"a","start":"2026-11-20T00:00:00Z"}`)}},
		{ID: "n1-c3", Seq: 3, Entry: intake.Entry{Account: 5, Source: "json", Path: simPath, Body: []byte(strings.Repeat(line, maxBatch))}},
		{ID: "n1-c4", Seq: 4, Entry: intake.Entry{Account: 6, Source: "csv", Path: simPath, Body: []byte(fixture(t, "uses.csv"))}},
	}
	statuses, err := intaketest.Process(t.Context(), NewProcessor(calls, m), items...)
	relaytest.NoError(t, err)
	relaytest.Equal(t, "the number of usage records", len(m.records), 6+maxBatch)
	relaytest.Equal(t, "the number of batches of usage records", m.takes, 2)
	relaytest.Equal(t, "the number of call records", len(calls.records), 1)
	if len(statuses) != 3 {
		t.Fatalf("%d statuses, want 3", len(statuses))
	}
	const unknownSIM = `record "2": the account has no SIM 8944500000000000025`
	relaytest.Equal(t, "the first sequence", statuses[0].Seq, 1)
	answertest.HasPrefix(t, "the first reason", statuses[0].Reason, "json: id: offset")
	if !strings.HasSuffix(statuses[0].Reason, "\n"+unknownSIM) {
		t.Errorf("the first reason does not end with %q: %s", unknownSIM, statuses[0].Reason)
	}
	relaytest.Equal(t, "the second sequence", statuses[1].Seq, 3)
	relaytest.Equal(t, "the number of errors reported", strings.Count(statuses[1].Reason, "\n")+1, maxReported)
	relaytest.Equal(t, "the third reason", statuses[2].Reason, unknownSIM)
	relaytest.Equal(t, "the third state", statuses[2].State, event.Quarantined)
	relaytest.Equal(t, "the third account", statuses[2].Account, 6)
	m.err = relay.Errorf(relay.KindUnavailable, "redis: down")
	if _, err := intaketest.Process(t.Context(), NewProcessor(calls, m), items...); !errors.Is(err, m.err) {
		t.Errorf("error of Process = %v, want %v", err, m.err)
	}
}

func TestDescribeCountsTheRecords(t *testing.T) {
	p := NewProcessor(nil, nil)
	uses := fixture(t, "uses.jsonl")
	for _, tc := range []struct{ path, body, want string }{
		{sipPath, "", "0 call records"},
		{sipPath, fixture(t, "records.jsonl"), "2 call records"},
		{simPath, uses[:strings.IndexByte(uses, '\n')], "1 usage record"},
		{simPath, uses, "3 usage records"},
	} {
		got := intaketest.Describe(p, &intake.Entry{Path: tc.path, Source: "json", Body: []byte(tc.body)})
		relaytest.Equal(t, "the description of "+tc.path, got, tc.want)
	}
}
