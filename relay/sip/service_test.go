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

// fakeDeps implements the dependencies of a Service.
type fakeDeps struct {
	jobs       map[string]job.Job
	orders     []Order
	err        error // returned by Make
	mails      []outbox.Delivery
	dispatched int
	now        time.Time
}

func (f *fakeDeps) Submit(_ context.Context, j job.Job) error { f.jobs[j.ID] = j; return nil }

func (f *fakeDeps) Get(_ context.Context, acct relay.AccountID, id string) (job.Job, error) {
	j, ok := f.jobs[id]
	if !ok || j.Account != acct {
		return j, relay.Errorf(relay.KindNotFound, "job %s", id)
	}
	return j, nil
}

func (f *fakeDeps) Make(_ context.Context, o Order) (int64, error) {
	f.orders = append(f.orders, o)
	return 7, f.err
}

func (f *fakeDeps) Create(_ context.Context, deliveries []outbox.Delivery, _ time.Time) (created []outbox.Delivery, err error) {
	for _, m := range f.mails {
		if m.ID == deliveries[0].ID {
			return nil, nil
		}
	}
	f.mails = append(f.mails, deliveries...)
	return deliveries, nil
}

func (f *fakeDeps) Dispatch(deliveries []outbox.Delivery) { f.dispatched += len(deliveries) }

func newService(t *testing.T) (*Service, *fakeDeps) {
	t.Helper()
	f := &fakeDeps{jobs: map[string]job.Job{}, now: noon()}
	now := func() time.Time { return f.now }
	s := New(Deps{Jobs: f, Submit: f, Archives: f, Mails: outbox.Mailer{Sender: outbox.Sender{Store: f, Dispatcher: f, Now: now}, Domain: "gw"}, PublicURL: "https://gw", Now: now})
	return s, f
}

func TestRequest(t *testing.T) {
	s, f := newService(t)
	day := time.Date(2026, 11, 1, 0, 0, 0, 0, time.FixedZone("", 3600))
	o, err := s.Request(t.Context(), 3, Request{From: day, To: day.Add(time.Hour + 500*time.Millisecond), Format: UKv3a, Email: "a@example.com", Single: true})
	relaytest.NoError(t, err)
	if o.Handle == "" {
		t.Fatal("the order has no handle")
	}
	relaytest.Equal(t, "the expiry of the order", o.ExpiresAt(), noon().Add(2*time.Hour))
	relaytest.Equal(t, "whether the order is in UTC", o.From.Location() == time.UTC, true)
	if !o.To.Equal(day.Add(time.Hour + time.Second)) {
		t.Errorf("end of the order = %s, want an hour and a second after its start", o.To)
	}
	var stored Order
	j := f.jobs[o.Handle]
	relaytest.NoError(t, json.Unmarshal(j.Input, &stored))
	relaytest.Equal(t, "the order in the job", stored, o)
	relaytest.Equal(t, "account, kind and retention of the job", []any{int(j.Account), j.Kind, j.Retention}, []any{3, Kind, HandleLifetime})
	if _, err := s.Request(t.Context(), 3, Request{From: day, To: day}); err != nil {
		t.Errorf("a request without options: %v", err)
	}
	for name, request := range map[string]Request{
		"to_date": {From: day, To: day.Add(-time.Second)},
		"format":  {From: day, To: day, Format: "UKv3"},
		"email":   {From: day, To: day, Email: "Me <a@example.com>\r\nBcc: x"},
	} {
		_, err := s.Request(t.Context(), 3, request)
		if fields := relay.FieldsOf(err); len(fields) != 1 || len(fields[name]) != 1 {
			t.Errorf("%s: invalid fields = %v, want one problem of this field", name, fields)
		}
	}
	_, err = s.Request(t.Context(), 3, Request{From: day, To: day, Email: "jörg@example.com"})
	relaytest.Equal(t, "the problems of an address that is not ASCII", relay.FieldsOf(err), map[string][]string{"email": {"The email must be one mail address."}})
	if len(f.jobs) != 2 {
		t.Errorf("%d jobs, want 2", len(f.jobs))
	}
}

func TestAnArchiveIsFoundWhileItsHandleIsValid(t *testing.T) {
	for name, tc := range map[string]struct {
		change   func(f *fakeDeps, j *job.Job)
		acct     relay.AccountID
		ready    bool
		notFound bool
	}{
		"the job is pending":          {nil, 3, false, false},
		"the job is completed":        {func(_ *fakeDeps, j *job.Job) { j.State = job.Completed }, 3, true, false},
		"the job of another account":  {func(_ *fakeDeps, j *job.Job) { j.State = job.Completed }, 4, false, true},
		"the job has failed":          {func(_ *fakeDeps, j *job.Job) { j.State = job.Failed }, 3, false, true},
		"a job of another kind":       {func(_ *fakeDeps, j *job.Job) { j.Kind, j.State = "token", job.Completed }, 3, false, true},
		"a second before two hours":   {func(f *fakeDeps, j *job.Job) { j.State, f.now = job.Completed, noon().Add(2*time.Hour-time.Second) }, 3, true, false},
		"two hours after the request": {func(f *fakeDeps, j *job.Job) { j.State, f.now = job.Completed, noon().Add(2*time.Hour) }, 3, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			s, f := newService(t)
			o, err := s.Request(t.Context(), 3, Request{From: noon(), To: noon()})
			relaytest.NoError(t, err)
			j := f.jobs[o.Handle]
			if tc.change != nil {
				tc.change(f, &j)
			}
			f.jobs[o.Handle] = j
			ready, err := s.ArchiveReady(t.Context(), tc.acct, o.Handle)
			relaytest.Equal(t, "whether the archive is ready", ready, tc.ready)
			relaytest.Equal(t, "whether the archive is not found", relay.KindOf(err) == relay.KindNotFound, tc.notFound)
			if !tc.notFound && err != nil {
				t.Error(err)
			}
		})
	}
}

func TestRunMakesTheArchiveAndNotifiesOnce(t *testing.T) {
	s, f := newService(t)
	o, err := s.Request(t.Context(), 3, Request{From: noon(), To: noon().Add(time.Hour), Email: "a@example.com"})
	relaytest.NoError(t, err)
	for range 2 { // the second run simulates a restart after the mail was stored and before the job was completed
		if got, err := s.Run(t.Context(), f.jobs[o.Handle]); err != nil || got.(map[string]int64)["calls"] != 7 {
			t.Fatal(got, err)
		}
	}
	if len(f.orders) != 2 || len(f.mails) != 1 {
		t.Fatalf("%d archives and %d mails, want 2 and 1", len(f.orders), len(f.mails))
	}
	relaytest.Equal(t, "the order of the archive", f.orders[0], o)
	relaytest.Equal(t, "the number of dispatched mails", f.dispatched, 1)
	m := f.mails[0]
	const want = "The call records from 2026-11-20 12:00:00 to 2026-11-20 13:00:00 (UTC) are ready: 7 calls.\n\n" +
		"Fetch them with your API token before 2026-11-20 14:00:00 UTC from\nhttps://gw/v2/sip/cdr/HANDLE/download\n"
	relaytest.Equal(t, "the text of the mail", strings.ReplaceAll(m.Mail.Text, o.Handle, "HANDLE"), want)
	relaytest.Equal(t, "address, kind and account of the mail", []any{m.Mail.To, m.Kind, int(m.Account)}, []any{"a@example.com", outbox.KindNotice, 3})
	relaytest.Equal(t, "object of the delivery and Message-ID of the mail", []string{m.MessageID, m.Mail.MessageID}, []string{o.Handle, o.Handle + "-ready@gw"})
}

func TestRunRetriesUnavailableAndFailsExpiredOrInvalidJobs(t *testing.T) {
	s, f := newService(t)
	o, err := s.Request(t.Context(), 3, Request{From: noon(), To: noon(), Email: "a@example.com"})
	relaytest.NoError(t, err)
	orderJob := f.jobs[o.Handle]
	f.err = relay.Errorf(relay.KindUnavailable, "the archive is not complete")
	if _, err := s.Run(t.Context(), orderJob); relay.KindOf(err) != relay.KindUnavailable || len(f.mails) != 0 {
		t.Errorf("an incomplete archive: %v with %d mails, want kind unavailable without a mail", err, len(f.mails))
	}
	f.now = noon().Add(3 * time.Hour)
	for _, j := range []job.Job{orderJob, {ID: "x", Input: []byte("{")}} {
		if _, err := s.Run(t.Context(), j); err == nil {
			t.Errorf("Run returned no error for job %s", j.ID)
		} else if _, isFinal := job.Reason(err); !isFinal {
			t.Errorf("the error %v does not fail the job", err)
		}
	}
}

func TestLayout(t *testing.T) {
	startedAt := noon()
	for name, tc := range map[string]struct {
		call cdr.Call
		want string
	}{
		"a call": {
			cdr.Call{ID: "c1", Start: startedAt, Answer: startedAt.Add(1500 * time.Millisecond), End: startedAt.Add(time.Minute), From: "447700900123", To: "sip:a@b", Duration: 60, Billsec: 58, Disposition: "ANSWERED", Trunk: "t"},
			"c1|2026-11-20 12:00:00|2026-11-20 12:00:01.5|2026-11-20 12:01:00|447700900123|sip:a@b|60|58|ANSWERED|t",
		},
		"missing times": {cdr.Call{ID: "c1", Start: startedAt}, "c1|2026-11-20 12:00:00|||||0|0||"},
		"cells that a spreadsheet would run": {
			cdr.Call{ID: "=cmd()", Start: startedAt, From: "+44", To: "-1", Disposition: "@x", Trunk: "\t=1"},
			"'=cmd()|2026-11-20 12:00:00|||'+44|'-1|0|0|'@x|'\t=1",
		},
		"the same characters inside cells": {cdr.Call{ID: "a=1", Start: startedAt, From: "a@b"}, "a=1|2026-11-20 12:00:00|||a@b||0|0||"},
	} {
		t.Run(name, func(t *testing.T) {
			row := Row(tc.call)
			if got := strings.Join(row, "|"); got != tc.want || len(row) != len(Header()) {
				t.Errorf("row %q, want %q", got, tc.want)
			}
		})
	}
}
