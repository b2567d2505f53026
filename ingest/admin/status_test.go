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
	"github.com/penstock/penstock/relay/event"
)

func TestTheWatchSaysSinceWhenABackEndIsAsItIs(t *testing.T) {
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
		if !errors.Is(s.Err, step.err) || s.Since != begin.Add(time.Duration(step.since)*time.Minute) {
			t.Errorf("%s: %v since %s", step.name, s.Err, s.Since)
		}
		if (step.last < 0) != (s.LastErr == nil) || step.last >= 0 && s.LastErrAt != begin.Add(time.Duration(step.last)*time.Minute) {
			t.Errorf("%s: the last error is %v of %s", step.name, s.LastErr, s.LastErrAt)
		}
		now = now.Add(time.Minute)
	}
}

func TestTheStatusSaysWhatIsDown(t *testing.T) {
	o := arrive(t)
	o.backend = errors.New("no route to 10.0.0.1")
	answer := o.ask("GET /admin/status", "")
	var got struct{ Data statusJSON }
	must(t, json.Unmarshal([]byte(strings.TrimPrefix(answer, "200 ")), &got))
	at := "2026-03-01T12:00:00.000Z"
	if s := got.Data; s.Node != "n1" || s.Ready || len(s.Backends) != 2 || len(s.Journals) != 2 {
		t.Fatalf("the status is %s", answer)
	}
	o.backend = nil
	now := got.Data.Backends
	now[1].Since, now[1].LastErrorAt = "", nil
	want := backendStatusJSON{Name: "readings", Status: "down", Error: "no route to 10.0.0.1", LastError: "no route to 10.0.0.1"}
	if diff := cmp.Diff(want, now[1]); diff != "" {
		t.Error(diff)
	}
	if j := got.Data.Journals[0]; j.Kind != "uplink" || j.Accepted != 4 || j.Bytes == 0 {
		t.Errorf("the journal is %+v", j)
	}
	if again := o.ask("GET /admin/status", ""); !strings.Contains(again, `"ready":true`) || !strings.Contains(again, `"last_error":"no route to 10.0.0.1"`) {
		t.Errorf("after it: %s, at %s", again, at)
	}
}

func TestEventsAreListedFromTheJournalWhileTheDatabaseIsDown(t *testing.T) {
	o := arrive(t)
	before := o.ask("GET /admin/events?limit=2", "")
	must(t, o.db.Close())
	var page eventsJSON
	answer := o.ask("GET /admin/events?limit=4", "")
	if err := json.Unmarshal([]byte(strings.TrimPrefix(answer, "200 ")), &page); err != nil || len(page.Data) != 4 {
		t.Fatalf("%s (before: %s)", answer, before)
	}
	for _, e := range page.Data {
		want := event.Unknown
		if e.Raw == "waits" { // is not processed yet, which the journal knows
			want = event.Pending
		}
		if e.State != want || e.Raw == "" {
			t.Errorf("%+v", e)
		}
	}
	if !strings.Contains(page.Meta.Stale, "The database does not answer") || page.Meta.Next == "" {
		t.Errorf("the page says %+v", page.Meta)
	}
	next := o.ask("GET /admin/events?limit=4&cursor="+page.Meta.Next, "")
	if !strings.HasPrefix(next, "200 ") || strings.Contains(next, page.Data[0].ID+`"`) {
		t.Errorf("the next page: %s", next)
	}
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
		must(t, json.Unmarshal([]byte(strings.TrimPrefix(o.ask("GET /admin/traffic"+query, ""), "200 ")), &got))
		d := got.Data
		if d.Step != want.step || len(d.Series) != 1 || len(d.Series[0].Values) != want.n {
			t.Fatalf("%q: %+v", query, d)
		}
		sum := 0
		for _, v := range d.Series[0].Values {
			if v != nil {
				sum += int(*v) //nolint:gosec // small figures of a test
			}
		}
		if sum != want.sum || d.Series[0].Values[0] != nil {
			t.Errorf("%q: the sum is %d", query, sum)
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
