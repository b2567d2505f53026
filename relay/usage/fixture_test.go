package usage

import (
	"bytes"
	"cmp"
	"context"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/penstock/penstock/decoders/cdr"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/job"
	"github.com/penstock/penstock/relay/outbox"
	"github.com/penstock/penstock/relay/relaytest"
	"github.com/penstock/penstock/relay/sim"
)

// fixture implements the dependencies of a meter and a service in memory, for account 1.
type fixture struct {
	t           *testing.T
	clock       *relaytest.Clock
	sims        map[sim.ICCID]sim.SIM
	pools       table[sim.Pool]
	subscribers table[sim.Subscriber]

	records []Record
	totals  map[Subject]Total
	reports map[string][]Row
	files   map[string]string
	jobs    map[string]job.Job
	events  []string // notifications, mails and suspensions, in order
	sent    map[string]outbox.Delivery
	broken  string // the operation that fails once

	maxLookup int // the largest number of SIMs in one lookup
}

func newFixture(t *testing.T) *fixture {
	return &fixture{
		t: t, clock: relaytest.NewClock(atHour(20, 12)), sims: map[sim.ICCID]sim.SIM{"A": {}, "B": {}, "C": {}}, pools: table[sim.Pool]{}, subscribers: table[sim.Subscriber]{},
		totals: map[Subject]Total{}, reports: map[string][]Row{}, files: map[string]string{}, jobs: map[string]job.Job{},
		sent: map[string]outbox.Delivery{},
	}
}

func atHour(day, hour int) time.Time { return time.Date(2026, 11, day, hour, 0, 0, 0, time.UTC) }

func (f *fixture) meter() *Meter {
	return NewMeter(MeterDeps{
		Counters: f, SIMs: f, Pools: f.pools, Events: f, Mails: outbox.Mailer{Sender: outbox.Sender{Store: f, Dispatcher: f, Now: f.clock.Now}}, Suspender: f, Jobs: f, Now: f.clock.Now,
	})
}

func (f *fixture) service() *Service {
	return New(Deps{
		Records: f, SIMs: f, Subscribers: f.subscribers, Jobs: f, Files: f, Exports: f, List: "mno", Page: 2, Now: f.clock.Now,
	})
}

// failOnce returns an error if the operation is broken, and repairs it.
func (f *fixture) failOnce(operation string) error {
	if f.broken != operation {
		return nil
	}
	f.broken = ""
	return relay.Errorf(relay.KindUnavailable, "%s: down", operation)
}

func (f *fixture) Put(_ context.Context, records []Record) error {
	if err := f.failOnce("put"); err != nil {
		return err
	}
	for _, r := range records {
		if slices.ContainsFunc(f.records, func(stored Record) bool { return stored.Use.ID == r.Use.ID }) {
			continue
		}
		f.records = append(f.records, r)
		for _, s := range []Subject{{OfSIM, r.Use.ICCID, MonthOf(r.Use.Start)}, {OfPool, r.Pool, MonthOf(r.Use.Start)}} {
			t := f.totals[s]
			t.Bytes += r.Use.Bytes
			f.totals[s] = t
		}
	}
	return nil
}

func (f *fixture) Totals(_ context.Context, _ relay.AccountID, subjects []Subject) (totals []Total, err error) {
	for _, s := range subjects {
		totals = append(totals, f.totals[s])
	}
	return totals, nil
}

func (f *fixture) AddSteps(_ context.Context, _ relay.AccountID, s Subject, steps Steps) error {
	if err := f.failOnce("steps"); err != nil {
		return err
	}
	t := f.totals[s]
	t.Steps |= steps
	f.totals[s] = t
	return nil
}

func (f *fixture) RemoveSteps(_ context.Context, _ relay.AccountID, s Subject, steps Steps, limitBytes int64) error {
	if t := f.totals[s]; t.Bytes < limitBytes {
		t.Steps &^= steps
		f.totals[s] = t
	}
	return nil
}

// recordsIn returns the records of a SIM, or of all SIMs if iccid is empty, by time.
func (f *fixture) recordsIn(iccid sim.ICCID, span Span) (records []StoredRecord) {
	for i, r := range f.records {
		if (iccid == "" || r.Use.ICCID == string(iccid)) && !r.Use.Start.Before(span.From) && r.Use.Start.Before(span.To) {
			records = append(records, StoredRecord{Cursor{r.Use.Start, int64(i + 1)}, r.Use})
		}
	}
	slices.SortFunc(records, func(a, b StoredRecord) int { return cmp.Or(a.Start.Compare(b.Start), cmp.Compare(a.N, b.N)) })
	return records
}

func (f *fixture) Any(_ context.Context, _ relay.AccountID, span Span, subscriber string) (bool, error) {
	return slices.ContainsFunc(f.recordsIn("", span), func(r StoredRecord) bool {
		return subscriber == "" || f.sims[sim.ICCID(r.Use.ICCID)].Subscriber == subscriber
	}), nil
}

func (f *fixture) Read(_ context.Context, _ relay.AccountID, iccid sim.ICCID, span Span, cursor Cursor, limit int) ([]StoredRecord, error) {
	records := f.recordsIn(iccid, span)
	records = records[1+slices.IndexFunc(records, func(r StoredRecord) bool { return r.Cursor == cursor }):]
	return records[:min(limit, len(records))], nil
}

func (f *fixture) Sums(_ context.Context, _ relay.AccountID, span Span, add func([]Sum) error) error {
	sums := make(map[string]int64)
	for _, r := range f.recordsIn("", span) {
		sums[r.Use.ICCID] += r.Use.Bytes
	}
	for iccid, bytes := range sums {
		if err := add([]Sum{{iccid, bytes}}); err != nil {
			return err
		}
	}
	return nil
}

func (f *fixture) Begin(_ context.Context, id string, _ time.Time) error {
	f.reports[id] = nil
	return nil
}

func (f *fixture) Add(_ context.Context, id string, rows []Row) error {
	f.reports[id] = append(f.reports[id], rows...)
	slices.SortFunc(f.reports[id], func(a, b Row) int {
		return cmp.Or(strings.Compare(a.Subscriber, b.Subscriber), strings.Compare(a.ICCID, b.ICCID))
	})
	return nil
}

func (f *fixture) Rows(_ context.Context, id string, offset, limit int) ([]Row, error) {
	rows := f.reports[id]
	return rows[min(offset, len(rows)):min(offset+limit, len(rows))], nil
}

func (f *fixture) GetMany(_ context.Context, acct relay.AccountID, iccids []sim.ICCID) (map[sim.ICCID]sim.SIM, error) {
	f.maxLookup = max(f.maxLookup, len(iccids))
	sims := make(map[sim.ICCID]sim.SIM)
	for _, iccid := range iccids {
		if s, ok := f.sims[iccid]; ok && acct == 1 {
			s.State, s.RequestedState = cmp.Or(s.State, sim.Active), sim.Active
			sims[iccid] = s
		}
	}
	return sims, f.failOnce("sims")
}

func (f *fixture) Scan(_ context.Context, _ relay.AccountID, scope sim.Scope, lastICCID sim.ICCID, limit int) (iccids []sim.ICCID, err error) {
	for iccid, s := range f.sims {
		if iccid > lastICCID && (scope.Pool == "" || s.Pool == scope.Pool) && (scope.Subscriber == "" || s.Subscriber == scope.Subscriber) {
			iccids = append(iccids, iccid)
		}
	}
	slices.Sort(iccids)
	return iccids[:min(limit, len(iccids))], nil
}

// table has pools or subscribers by id.
type table[T any] map[string]T

func (t table[T]) Get(_ context.Context, _ relay.AccountID, id string) (T, error) {
	record, ok := t[id]
	if !ok {
		return record, relay.Errorf(relay.KindNotFound, "no record has the id %s", id)
	}
	return record, nil
}

func (f *fixture) Suspend(_ context.Context, _ relay.AccountID, iccid sim.ICCID) error {
	if err := f.failOnce("suspend " + string(iccid)); err != nil {
		return err
	}
	if s := f.sims[iccid]; s.State != sim.Suspended {
		f.changeSIM(iccid, func(s *sim.SIM) { s.State = sim.Suspended })
		f.events = append(f.events, "suspend "+string(iccid))
	}
	return nil
}

// changeSIM changes a SIM.
func (f *fixture) changeSIM(iccid sim.ICCID, change func(*sim.SIM)) {
	s := f.sims[iccid]
	change(&s)
	f.sims[iccid] = s
}

func (f *fixture) Make(ctx context.Context, name string, fill func(context.Context, io.Writer) (int64, error)) (int64, error) {
	if err := f.failOnce("make"); err != nil {
		return 0, err
	}
	var b bytes.Buffer
	n, err := fill(ctx, &b)
	f.files[name] = b.String()
	return n, err
}

func (f *fixture) Open(_ context.Context, name string) (io.ReadCloser, int64, error) {
	text, ok := f.files[name]
	if !ok {
		return nil, 0, relay.Errorf(relay.KindNotFound, "file %s", name)
	}
	return io.NopCloser(strings.NewReader(text)), int64(len(text)), nil
}

func (f *fixture) Do(ctx context.Context, _ string, do func(context.Context) (int64, error)) (int64, error) {
	return do(ctx)
}

func (f *fixture) Submit(_ context.Context, j job.Job) error {
	if stored, ok := f.jobs[j.ID]; ok && (!stored.State.Ended() || stored.Retention > time.Minute) {
		return nil
	}
	j.State = job.Queued
	f.jobs[j.ID] = j
	return f.failOnce("submit")
}

func (f *fixture) Get(_ context.Context, acct relay.AccountID, id string) (job.Job, error) {
	j, ok := f.jobs[id]
	if !ok || j.Account != acct {
		return j, relay.Errorf(relay.KindNotFound, "job %s", id)
	}
	return j, nil
}

func (f *fixture) Notify(_ context.Context, _ relay.AccountID, e outbox.Event) error {
	if err := f.failOnce("notify"); err != nil {
		return err
	}
	d, err := outbox.Callback(1, "https://example.com/", e)
	if err == nil && f.sent[d.ID].ID == "" {
		f.sent[d.ID] = d
		f.events = append(f.events, e.Type+" "+e.About)
	}
	return err
}

func (f *fixture) Create(_ context.Context, ds []outbox.Delivery, _ time.Time) (created []outbox.Delivery, err error) {
	if err := f.failOnce("create"); err != nil {
		return nil, err
	}
	for _, d := range ds {
		if f.sent[d.ID].ID == "" {
			created = append(created, d)
		}
		f.sent[d.ID] = d
	}
	return created, nil
}

func (f *fixture) Dispatch(ds []outbox.Delivery) {
	for _, d := range ds {
		f.events = append(f.events, "mail "+d.Mail.To+" "+d.MessageID)
	}
}

// use returns a data record of account 1.
func use(id, iccid string, start time.Time, bytes int64) Record {
	return Record{Account: 1, Use: cdr.Use{ID: id, ICCID: iccid, Start: start, Type: "data", Bytes: bytes}}
}

// recipients returns recipients with e-mail addresses.
func recipients(addresses ...string) (list []sim.Recipient) {
	for _, a := range addresses {
		list = append(list, sim.Recipient{Email: a})
	}
	return list
}
