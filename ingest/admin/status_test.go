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
)

func TestTheWatchReportsSinceWhenABackEndIsUpOrDown(t *testing.T) {
	var down error
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	w := newWatch([]Backend{{Name: "records", Check: func(context.Context) error { return down }}}, func() time.Time { return now })
	refused := errors.New("connection refused")
	for _, step := range []struct {
		name  string
		err   error
		since int // minutes
		last  int // of the last error; -1 for none
	}{
		{"at the start", nil, 0, -1},
		{"a minute later, still up", nil, 0, -1},
		{"down", refused, 2, 2},
		{"still down", errors.New("no route to host"), 2, 3},
		{"up again", nil, 4, 3},
		{"still up", nil, 4, 3},
	} {
		down = step.err
		s := w.check(t.Context())[0]
		begin := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
		if !errors.Is(s.Err, step.err) {
			t.Errorf("%s: the error %v, want %v", step.name, s.Err, step.err)
		}
		relaytest.Equal(t, step.name+": since", s.Since, begin.Add(time.Duration(step.since)*time.Minute))
		relaytest.Equal(t, step.name+": there is a last error", s.LastErr != nil, step.last >= 0)
		if step.last >= 0 {
			relaytest.Equal(t, step.name+": the time of the last error", s.LastErrAt, begin.Add(time.Duration(step.last)*time.Minute))
		}
		now = now.Add(time.Minute)
	}
}

func TestABackEndWhoseCheckPanicsIsDown(t *testing.T) {
	down := Down(t.Context(), []Backend{
		{Name: "cache", Check: func(context.Context) error { panic("a fault of the check") }},
		{Name: "records", Check: func(context.Context) error { return nil }},
	})
	if len(down) != 1 || down["cache"] == nil {
		t.Errorf("%v are down, want the cache", down)
	}
}

func TestTheStatusSaysWhatIsDown(t *testing.T) {
	o := arrive(t)
	o.backend = errors.New("no route to 10.0.0.1")
	answer := o.ask("GET /admin/status", "")
	var got struct{ Data statusJSON }
	relaytest.NoError(t, json.Unmarshal([]byte(strings.TrimPrefix(answer, "200 ")), &got))
	at := "2026-03-01T12:00:00.000Z"
	s := got.Data
	relaytest.Equal(t, "the node", s.Node, "n1")
	relaytest.Equal(t, "it is ready", s.Ready, false)
	if len(s.Backends) != 2 || len(s.Journals) != 2 {
		t.Fatalf("%d back ends and %d journals, want 2 and 2", len(s.Backends), len(s.Journals))
	}
	o.backend = nil
	now := got.Data.Backends
	now[1].Since, now[1].LastErrorAt = "", nil
	want := backendStatusJSON{Name: "readings", Status: "down", Error: "no route to 10.0.0.1", LastError: "no route to 10.0.0.1"}
	if diff := cmp.Diff(want, now[1]); diff != "" {
		t.Error(diff)
	}
	j := got.Data.Journals[0]
	relaytest.Equal(t, "the kind of the journal", j.Kind, "uplink")
	relaytest.Equal(t, "the number of entries accepted", j.Accepted, 4)
	if j.Bytes == 0 {
		t.Error("the journal has 0 bytes")
	}
	answertest.Contains(t, "the status afterwards, at "+at, o.ask("GET /admin/status", ""), `"ready":true`, `"last_error":"no route to 10.0.0.1"`)
}

func TestEventsAreListedFromTheJournalWhileTheDatabaseIsDown(t *testing.T) {
	o := arrive(t)
	before := o.ask("GET /admin/events?limit=2", "")
	relaytest.NoError(t, o.db.Close())
	var page struct {
		Data []eventJSON
		Meta eventsMeta
	}
	answer := o.ask("GET /admin/events?limit=4", "")
	relaytest.NoError(t, json.Unmarshal([]byte(strings.TrimPrefix(answer, "200 ")), &page))
	if len(page.Data) != 4 {
		t.Fatalf("%s (before: %s)", answer, before)
	}
	for _, e := range page.Data {
		want := event.Unknown
		if e.Raw == "waits" { // is not processed yet, which the journal knows
			want = event.Pending
		}
		relaytest.Equal(t, "the state of "+e.ID, e.State, want)
		if e.Raw == "" {
			t.Errorf("the event %s has no bytes", e.ID)
		}
	}
	answertest.Contains(t, "the page", page.Meta.Stale, "The database does not answer")
	if page.Meta.Next == "" {
		t.Error("the page has no next page")
	}
	next := o.ask("GET /admin/events?limit=4&cursor="+page.Meta.Next, "")
	answertest.Begins(t, "the next page", next, "200 ")
	answertest.Lacks(t, "the next page", next, page.Data[0].ID+`"`)
	if got := o.ask("GET /admin/events?state=quarantined", ""); !strings.HasPrefix(got, "503 ") {
		t.Errorf("those of a state: %s", got)
	}
}

func TestTrafficIsShownByMinuteAndByFiveMinutes(t *testing.T) {
	ring := traffic.Open(filepath.Join(t.TempDir(), "ring"), []traffic.Series{{Name: "uplink"}}, slog.New(slog.DiscardHandler))
	o := newOffice(t)
	o.surface.Traffic = ring
	ring.Add(o.now.Add(-time.Minute), []uint64{3})
	ring.Add(o.now, []uint64{4})
	for query, want := range map[string]struct{ step, n, sum int }{"": {60, 60, 7}, "?range=hour": {60, 60, 7}, "?range=day": {300, 288, 7}} {
		var got struct{ Data trafficJSON }
		relaytest.NoError(t, json.Unmarshal([]byte(strings.TrimPrefix(o.ask("GET /admin/traffic"+query, ""), "200 ")), &got))
		d := got.Data
		relaytest.Equal(t, query+": the step", d.Step, want.step)
		if len(d.Series) != 1 {
			t.Fatalf("%q: %d series, want one", query, len(d.Series))
		}
		if n := len(d.Series[0].Values); n != want.n {
			t.Fatalf("%q: %d values, want %d", query, n, want.n)
		}
		sum := 0
		for _, v := range d.Series[0].Values {
			if v != nil {
				sum += int(*v) //nolint:gosec // small figures of a test
			}
		}
		relaytest.Equal(t, query+": the sum", sum, want.sum)
		if first := d.Series[0].Values[0]; first != nil {
			t.Errorf("%q: the first value is %d, want none", query, *first)
		}
	}
	if got := o.ask("GET /admin/traffic?range=year", ""); !strings.HasPrefix(got, "422 ") {
		t.Errorf("a range that is none: %s", got)
	}
}

func TestAccountsAreNamed(t *testing.T) {
	o := newOffice(t)
	o.ask("PUT /admin/inventory", `{"accounts":[{"name":"acme"},{"name":"globex"}]}`)
	if got, want := o.ask("GET /admin/accounts", ""), `200 {"data":[{"id":1,"name":"acme"},{"id":2,"name":"globex"}]}`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
