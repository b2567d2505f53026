package sip

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/penstock/penstock/decoders/cdr"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/job"
	"github.com/penstock/penstock/relay/outbox"
	"github.com/penstock/penstock/relay/relaytest"
)

func noon() time.Time { return time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC) }

// world is everything around a Service.
type world struct {
	jobs  map[string]job.Job
	made  []Order
	err   error // of making
	mails []outbox.Delivery
	sent  int
	now   time.Time
}

func (h *world) Submit(_ context.Context, j job.Job) error { h.jobs[j.ID] = j; return nil }

func (h *world) Get(_ context.Context, acct relay.AccountID, id string) (job.Job, error) {
	j, ok := h.jobs[id]
	if !ok || j.Account != acct {
		return j, relay.Errorf(relay.KindNotFound, "job %s", id)
	}
	return j, nil
}

func (h *world) Make(_ context.Context, o Order) (int64, error) {
	h.made = append(h.made, o)
	return 7, h.err
}

func (h *world) Create(_ context.Context, ds []outbox.Delivery, _ time.Time) (created []outbox.Delivery, err error) {
	for _, m := range h.mails {
		if m.ID == ds[0].ID {
			return nil, nil
		}
	}
	h.mails = append(h.mails, ds...)
	return ds, nil
}

func (h *world) Dispatch(ds []outbox.Delivery) { h.sent += len(ds) }

func newService(t *testing.T) (*Service, *world) {
	t.Helper()
	h := &world{jobs: map[string]job.Job{}, now: noon()}
	now := func() time.Time { return h.now }
	s := New(Deps{Jobs: h, Submit: h, Archives: h, Mails: outbox.Mailer{Sender: outbox.Sender{Store: h, Dispatcher: h, Now: now}, Domain: "gw"}, PublicURL: "https://gw", Now: now})
	return s, h
}

func TestRequest(t *testing.T) {
	s, h := newService(t)
	day := time.Date(2026, 11, 1, 0, 0, 0, 0, time.FixedZone("", 3600))
	o, err := s.Request(t.Context(), 3, Request{From: day, To: day.Add(time.Hour + 500*time.Millisecond), Format: UKv3a, Email: "a@example.com", Single: true})
	relaytest.NoError(t, err)
	if o.Handle == "" {
		t.Fatal("the order has no handle")
	}
	relaytest.Equal(t, "the end of the order", o.ExpiresAt(), noon().Add(2*time.Hour))
	relaytest.Equal(t, "whether the order is in UTC", o.From.Location() == time.UTC, true)
	if !o.To.Equal(day.Add(time.Hour + time.Second)) {
		t.Errorf("to %s", o.To)
	}
	var kept Order
	j := h.jobs[o.Handle]
	relaytest.NoError(t, json.Unmarshal(j.Input, &kept))
	relaytest.Equal(t, "the order in the job", kept, o)
	relaytest.Equal(t, "account, kind and retention of the job", []any{int(j.Account), j.Kind, j.Keep}, []any{3, Kind, Life})
	if _, err := s.Request(t.Context(), 3, Request{From: day, To: day}); err != nil {
		t.Errorf("a second: %v", err)
	}
	for name, bad := range map[string]Request{
		"to_date": {From: day, To: day.Add(-time.Second)},
		"format":  {From: day, To: day, Format: "UKv3"},
		"email":   {From: day, To: day, Email: "Me <a@example.com>\r\nBcc: x"},
	} {
		_, err := s.Request(t.Context(), 3, bad)
		if fields := relay.FieldsOf(err); len(fields) != 1 || len(fields[name]) != 1 {
			t.Errorf("%s: %v", name, fields)
		}
	}
	_, err = s.Request(t.Context(), 3, Request{From: day, To: day, Email: "jörg@example.com"})
	relaytest.Equal(t, "the problems of an address that is not ASCII", relay.FieldsOf(err), map[string][]string{"email": {"The email must be one mail address."}})
	if len(h.jobs) != 2 {
		t.Errorf("%d jobs", len(h.jobs))
	}
}

func TestAnArchiveIsThereWhileItsHandleWorks(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(h *world, j *job.Job)
		acct   relay.AccountID
		ready  bool
		gone   bool
	}{
		"it is being made":            {nil, 3, false, false},
		"it is ready":                 {func(_ *world, j *job.Job) { j.State = job.Completed }, 3, true, false},
		"it is another account's":     {func(_ *world, j *job.Job) { j.State = job.Completed }, 4, false, true},
		"it could not be made":        {func(_ *world, j *job.Job) { j.State = job.Failed }, 3, false, true},
		"it is another kind of job":   {func(_ *world, j *job.Job) { j.Kind, j.State = "token", job.Completed }, 3, false, true},
		"a second before two hours":   {func(h *world, j *job.Job) { j.State, h.now = job.Completed, noon().Add(2*time.Hour-time.Second) }, 3, true, false},
		"two hours after the request": {func(h *world, j *job.Job) { j.State, h.now = job.Completed, noon().Add(2*time.Hour) }, 3, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			s, h := newService(t)
			o, err := s.Request(t.Context(), 3, Request{From: noon(), To: noon()})
			relaytest.NoError(t, err)
			j := h.jobs[o.Handle]
			if tc.change != nil {
				tc.change(h, &j)
			}
			h.jobs[o.Handle] = j
			ready, err := s.Archive(t.Context(), tc.acct, o.Handle)
			relaytest.Equal(t, "whether the archive is ready", ready, tc.ready)
			relaytest.Equal(t, "whether the archive is not found", relay.KindOf(err) == relay.KindNotFound, tc.gone)
			if !tc.gone && err != nil {
				t.Error(err)
			}
		})
	}
}

func TestRunMakesTheArchiveAndNotifiesOnce(t *testing.T) {
	s, h := newService(t)
	o, err := s.Request(t.Context(), 3, Request{From: noon(), To: noon().Add(time.Hour), Email: "a@example.com"})
	relaytest.NoError(t, err)
	for range 2 { // the second after a crash between the mail and the end of the job
		if got, err := s.Run(t.Context(), h.jobs[o.Handle]); err != nil || got.(map[string]int64)["calls"] != 7 {
			t.Fatal(got, err)
		}
	}
	if len(h.made) != 2 || len(h.mails) != 1 {
		t.Fatalf("made %d archives and %d mails, want 2 and 1", len(h.made), len(h.mails))
	}
	relaytest.Equal(t, "the order of the archive", h.made[0], o)
	relaytest.Equal(t, "the number of dispatched mails", h.sent, 1)
	m := h.mails[0]
	const want = "The call records from 2026-11-20 12:00:00 to 2026-11-20 13:00:00 (UTC) are ready: 7 calls.\n\n" +
		"Fetch them with your API token before 2026-11-20 14:00:00 UTC from\nhttps://gw/v2/sip/cdr/HANDLE/download\n"
	relaytest.Equal(t, "the text of the mail", strings.ReplaceAll(m.Mail.Text, o.Handle, "HANDLE"), want)
	relaytest.Equal(t, "address, kind and account of the mail", []any{m.Mail.To, m.Kind, int(m.Account)}, []any{"a@example.com", outbox.KindNotice, 3})
	relaytest.Equal(t, "subject and message id of the mail", []string{m.MessageID, m.Mail.MessageID}, []string{o.Handle, o.Handle + "-ready@gw"})
}

func TestRunLeavesWhatItMust(t *testing.T) {
	s, h := newService(t)
	o, err := s.Request(t.Context(), 3, Request{From: noon(), To: noon(), Email: "a@example.com"})
	relaytest.NoError(t, err)
	mine := h.jobs[o.Handle]
	h.err = relay.Errorf(relay.KindUnavailable, "still being made")
	if _, err := s.Run(t.Context(), mine); relay.KindOf(err) != relay.KindUnavailable || len(h.mails) != 0 {
		t.Errorf("not made: %v", err)
	}
	h.now = noon().Add(3 * time.Hour)
	for _, j := range []job.Job{mine, {ID: "x", Input: []byte("{")}} {
		if _, err := s.Run(t.Context(), j); err == nil {
			t.Error("no error")
		} else if _, ends := job.Reason(err); !ends {
			t.Errorf("%v does not end the job", err)
		}
	}
}

func TestLayout(t *testing.T) {
	at := noon()
	for name, tc := range map[string]struct {
		call cdr.Call
		want string
	}{
		"a call": {
			cdr.Call{ID: "c1", Start: at, Answer: at.Add(1500 * time.Millisecond), End: at.Add(time.Minute), From: "447700900123", To: "sip:a@b", Duration: 60, Billsec: 58, Disposition: "ANSWERED", Trunk: "t"},
			"c1|2026-11-20 12:00:00|2026-11-20 12:00:01.5|2026-11-20 12:01:00|447700900123|sip:a@b|60|58|ANSWERED|t",
		},
		"missing times": {cdr.Call{ID: "c1", Start: at}, "c1|2026-11-20 12:00:00|||||0|0||"},
		"what a spreadsheet would run": {
			cdr.Call{ID: "=cmd()", Start: at, From: "+44", To: "-1", Disposition: "@x", Trunk: "\t=1"},
			"'=cmd()|2026-11-20 12:00:00|||'+44|'-1|0|0|'@x|'\t=1",
		},
		"the same signs elsewhere": {cdr.Call{ID: "a=1", Start: at, From: "a@b"}, "a=1|2026-11-20 12:00:00|||a@b||0|0||"},
	} {
		t.Run(name, func(t *testing.T) {
			row := Row(tc.call)
			if got := strings.Join(row, "|"); got != tc.want || len(row) != len(Header()) {
				t.Errorf("%q", got)
			}
		})
	}
}
