package cdr

import (
	"context"
	"errors"
	"io"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/penstock/penstock/ingest/httpd"
	"github.com/penstock/penstock/ingest/intake"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/event"
	"github.com/penstock/penstock/relay/sip"
	"github.com/penstock/penstock/relay/usage"
)

// tokens knows a switch and a customer.
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

// log is a journal.
type log struct {
	entries []intake.Entry
	err     error
}

func (l *log) Accept(_ context.Context, e *intake.Entry) (string, error) {
	l.entries = append(l.entries, *e)
	return "n1-c1", l.err
}

func fixture(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("..", "..", "decoders", "cdr", "testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
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
		"some that cannot be read":  {"switch", good + "\n{}", "json", nil, 200, `{"data":{"id":"n1-c1","records":1,"refused":1}}`},
		"none that can be read":     {"switch", "{}", "", nil, 422, `{"errors":{"body":["json: id: offset 0: is missing"]},"message":"The given data was invalid."}`},
		"nothing":                   {"switch", "", "", nil, 422, `{"errors":{"body":["cdr: body: offset 0: is empty"]},"message":"The given data was invalid."}`},
		"an empty list":             {"switch", "[]", "", nil, 422, `{"errors":{"body":["cdr: body: offset 0: holds no records"]},"message":"The given data was invalid."}`},
		"no token":                  {"", good, "", nil, 401, `{"message":"Unauthenticated."}`},
		"a token without the scope": {"customer", good, "", nil, 403, `{"message":"Forbidden."}`},
		"a full journal":            {"switch", good, "json", intake.ErrFull, 503, `{"message":"Service temporarily unavailable. Please try again later."}`},
		"too large a post":          {"switch", good, "json", intake.ErrTooLarge, 413, `{"message":"Request Entity Too Large"}`},
	} {
		t.Run(name, func(t *testing.T) {
			l := &log{err: tc.err}
			app := httpd.New(httpd.Options{})
			New(l, Options{}).Mount(app, httpd.NewAuth(tokens{}, "", time.Now))
			req := httptest.NewRequest("POST", "/inbound/cdr/sip", strings.NewReader(tc.body))
			req.SetBasicAuth("pbx", tc.token)
			resp, err := app.Test(req)
			if err != nil {
				t.Fatal(err)
			}
			got, _ := io.ReadAll(resp.Body)
			if resp.StatusCode != tc.status || string(got) != tc.want {
				t.Errorf("%d %s", resp.StatusCode, got)
			}
			if tc.source == "" {
				if len(l.entries) != 0 {
					t.Error("it was journalled")
				}
				return
			}
			if e := l.entries[0]; e.Account != 3 || e.Source != tc.source || string(e.Body) != tc.body {
				t.Errorf("%+v", e)
			}
		})
	}
}

// keeper keeps records.
type keeper struct {
	kept []sip.Record
	puts int
	err  error
}

func (k *keeper) Put(_ context.Context, records []sip.Record) error {
	k.kept = append(k.kept, records...)
	k.puts++
	return k.err
}

func TestTheProcessorKeepsRecords(t *testing.T) {
	k := &keeper{}
	many := strings.Repeat(`{"id":"b","start":"2026-11-20T00:00:00Z"}`+"\n", most)
	items := []intake.Item{
		{ID: "n1-c1", Seq: 1, Entry: intake.Entry{Account: 3, Source: "json", Body: []byte(`{"id":"a","start":"2026-11-20T00:00:00Z"}` + "\n{}")}},
		{ID: "n1-c2", Seq: 2, Entry: intake.Entry{Account: 4, Source: "json", Body: []byte(many)}},
		{ID: "n1-c3", Seq: 3, Entry: intake.Entry{Account: 5, Source: "asterisk", Body: []byte(fixture(t, "asterisk.csv"))}},
	}
	statuses, err := NewProcessor(k, nil).Process(t.Context(), items)
	want := event.Status{ID: "n1-c1", Seq: 1, State: event.Quarantined, Reason: "json: id: offset 42: is missing", Account: 3, Source: "json"}
	if err != nil || len(statuses) != 1 || statuses[0] != want {
		t.Errorf("%+v, %v", statuses, err)
	}
	if len(k.kept) != 3+most || k.puts != 2 || k.kept[0].Account != 3 || k.kept[len(k.kept)-1].Account != 5 {
		t.Errorf("%d records in %d puts", len(k.kept), k.puts)
	}
	k.err = relay.Errorf(relay.KindUnavailable, "full")
	if _, err := NewProcessor(k, nil).Process(t.Context(), items); !errors.Is(err, k.err) {
		t.Error(err)
	}
}

func TestRecordsOfSIMsAreJournalledUnderTheirPath(t *testing.T) {
	for name, tc := range map[string]struct {
		body, source string
		status       int
		want         string
	}{
		"JSON lines":               {fixture(t, "uses.jsonl"), "json", 200, `{"data":{"id":"n1-c1","records":3,"refused":0}}`},
		"CSV":                      {fixture(t, "uses.csv"), "csv", 200, `{"data":{"id":"n1-c1","records":3,"refused":0}}`},
		"some that cannot be read": {fixture(t, "uses.csv") + "x,y\n", "csv", 200, `{"data":{"id":"n1-c1","records":3,"refused":1}}`},
		"a call":                   {`{"id":"a","start":"2026-11-20T00:00:00Z"}`, "", 422, `{"errors":{"body":["json: iccid: offset 0: want 1 to 32 digits or letters"]},"message":"The given data was invalid."}`},
	} {
		t.Run(name, func(t *testing.T) {
			l := &log{}
			app := httpd.New(httpd.Options{})
			New(l, Options{}).Mount(app, httpd.NewAuth(tokens{}, "", time.Now))
			req := httptest.NewRequest("POST", "/Inbound/cdr/sim?x=1", strings.NewReader(tc.body))
			req.Header.Set("X-Auth-Token", "switch")
			resp, err := app.Test(req)
			if err != nil {
				t.Fatal(err)
			}
			got, _ := io.ReadAll(resp.Body)
			if resp.StatusCode != tc.status || string(got) != tc.want {
				t.Errorf("%d %s", resp.StatusCode, got)
			}
			if tc.source == "" {
				if len(l.entries) != 0 {
					t.Error("it was journalled")
				}
				return
			}
			if e := l.entries[0]; e.Account != 3 || e.Source != tc.source || e.Path != simPath || string(e.Body) != tc.body {
				t.Errorf("%+v", e)
			}
		})
	}
}

// counted is a meter to which some SIMs are strange.
type counted struct {
	taken []usage.Record
	takes int
	err   error
}

func (c *counted) Take(_ context.Context, records []usage.Record) (unknown []int, err error) {
	c.takes++
	for i, r := range records {
		if strings.HasSuffix(r.Use.ICCID, "25") {
			unknown = append(unknown, i)
		}
	}
	c.taken = append(c.taken, records...)
	return unknown, c.err
}

func TestTheProcessorCountsWhatSIMsUsed(t *testing.T) {
	k, m := &keeper{}, &counted{}
	const line = `{"id":"b","iccid":"8944500000000000025","start_time":"2026-11-20T00:00:00Z","type":"sms"}` + "\n"
	items := []intake.Item{
		{ID: "n1-c1", Seq: 1, Entry: intake.Entry{Account: 3, Source: "json", Path: simPath, Body: []byte(fixture(t, "uses.jsonl") + "{}")}},
		{ID: "n1-c2", Seq: 2, Entry: intake.Entry{Account: 4, Source: "json", Path: sipPath, Body: []byte(`{"id":"a","start":"2026-11-20T00:00:00Z"}`)}},
		{ID: "n1-c3", Seq: 3, Entry: intake.Entry{Account: 5, Source: "json", Path: simPath, Body: []byte(strings.Repeat(line, most))}},
		{ID: "n1-c4", Seq: 4, Entry: intake.Entry{Account: 6, Source: "csv", Path: simPath, Body: []byte(fixture(t, "uses.csv"))}},
	}
	statuses, err := NewProcessor(k, m).Process(t.Context(), items)
	if err != nil || len(statuses) != 3 || len(m.taken) != 6+most || m.takes != 2 || len(k.kept) != 1 {
		t.Fatalf("%d statuses, %d uses in %d takes, %d calls: %v", len(statuses), len(m.taken), m.takes, len(k.kept), err)
	}
	const unknownSIM = `record "2": the account has no SIM 8944500000000000025`
	if r := statuses[0].Reason; statuses[0].Seq != 1 || !strings.HasPrefix(r, "json: id: offset") || !strings.HasSuffix(r, "\n"+unknownSIM) {
		t.Error(r)
	}
	if r := statuses[1].Reason; statuses[1].Seq != 3 || strings.Count(r, "\n") != maxReported-1 {
		t.Error(r)
	}
	if statuses[2].Reason != unknownSIM || statuses[2].State != event.Quarantined || statuses[2].Account != 6 {
		t.Errorf("%+v", statuses[2])
	}
	m.err = relay.Errorf(relay.KindUnavailable, "redis: down")
	if _, err := NewProcessor(k, m).Process(t.Context(), items); !errors.Is(err, m.err) {
		t.Error(err)
	}
}
