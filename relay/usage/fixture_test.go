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

// fixture implements the dependencies of a meter and a service in memory, for account 1. The
// operation in broken fails once.
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
	events  []string // events, mails and suspensions, in order
	sent    map[string]outbox.Delivery
	broken  string // the operation that fails next

	maxLookup int // largest number of SIMs in one lookup
}

func newFixture(t *testing.T) *fixture {
	return &fixture{
		t: t, clock: relaytest.NewClock(at(20, 12)), sims: map[sim.ICCID]sim.SIM{"A": {}, "B": {}, "C": {}}, pools: table[sim.Pool]{}, subscribers: table[sim.Subscriber]{},
		totals: map[Subject]Total{}, reports: map[string][]Row{}, files: map[string]string{}, jobs: map[string]job.Job{},
		sent: map[string]outbox.Delivery{},
	}
}

func at(day, hour int) time.Time { return time.Date(2026, 11, day, hour, 0, 0, 0, time.UTC) }

func (w *fixture) meter() *Meter {
	return NewMeter(MeterDeps{
		Counters: w, SIMs: w, Pools: w.pools, Events: w, Mails: outbox.Mailer{Sender: outbox.Sender{Store: w, Dispatcher: w, Now: w.clock.Now}}, Suspender: w, Jobs: w, Now: w.clock.Now,
	})
}

func (w *fixture) service() *Service {
	return New(Deps{
		Records: w, SIMs: w, Subscribers: w.subscribers, Jobs: w, Files: w, Exports: w, List: "mno", Page: 2, Now: w.clock.Now,
	})
}

// fails returns an error if an operation is broken, and repairs it.
func (w *fixture) fails(operation string) error {
	if w.broken != operation {
		return nil
	}
	w.broken = ""
	return relay.Errorf(relay.KindUnavailable, "%s: down", operation)
}

func (w *fixture) Put(_ context.Context, records []Record) error {
	if err := w.fails("put"); err != nil {
		return err
	}
	for _, r := range records {
		if slices.ContainsFunc(w.records, func(k Record) bool { return k.Use.ID == r.Use.ID }) {
			continue
		}
		w.records = append(w.records, r)
		for _, s := range []Subject{{OfSIM, r.Use.ICCID, MonthOf(r.Use.Start)}, {OfPool, r.Pool, MonthOf(r.Use.Start)}} {
			t := w.totals[s]
			t.Bytes += r.Use.Bytes
			w.totals[s] = t
		}
	}
	return nil
}

func (w *fixture) Totals(_ context.Context, _ relay.AccountID, subjects []Subject) (totals []Total, err error) {
	for _, s := range subjects {
		totals = append(totals, w.totals[s])
	}
	return totals, nil
}

func (w *fixture) AddSteps(_ context.Context, _ relay.AccountID, s Subject, steps Steps) error {
	if err := w.fails("did"); err != nil {
		return err
	}
	t := w.totals[s]
	t.Done |= steps
	w.totals[s] = t
	return nil
}

func (w *fixture) RemoveSteps(_ context.Context, _ relay.AccountID, s Subject, steps Steps, limitBytes int64) error {
	if t := w.totals[s]; t.Bytes < limitBytes {
		t.Done &^= steps
		w.totals[s] = t
	}
	return nil
}

func (w *fixture) within(iccid sim.ICCID, in Span) (found []StoredRecord) {
	for i, r := range w.records {
		if (iccid == "" || r.Use.ICCID == string(iccid)) && !r.Use.Start.Before(in.From) && r.Use.Start.Before(in.To) {
			found = append(found, StoredRecord{Cursor{r.Use.Start, int64(i + 1)}, r.Use})
		}
	}
	slices.SortFunc(found, func(a, b StoredRecord) int { return cmp.Or(a.Start.Compare(b.Start), cmp.Compare(a.N, b.N)) })
	return found
}

func (w *fixture) Any(_ context.Context, _ relay.AccountID, in Span, subscriber string) (bool, error) {
	return slices.ContainsFunc(w.within("", in), func(k StoredRecord) bool {
		return subscriber == "" || w.sims[sim.ICCID(k.Use.ICCID)].Subscriber == subscriber
	}), nil
}

func (w *fixture) Read(_ context.Context, _ relay.AccountID, iccid sim.ICCID, in Span, behind Cursor, limit int) ([]StoredRecord, error) {
	found := w.within(iccid, in)
	found = found[1+slices.IndexFunc(found, func(k StoredRecord) bool { return k.Cursor == behind }):]
	return found[:min(limit, len(found))], nil
}

func (w *fixture) Sums(_ context.Context, _ relay.AccountID, in Span, add func([]Sum) error) error {
	sums := make(map[string]int64)
	for _, k := range w.within("", in) {
		sums[k.Use.ICCID] += k.Use.Bytes
	}
	for iccid, bytes := range sums {
		if err := add([]Sum{{iccid, bytes}}); err != nil {
			return err
		}
	}
	return nil
}

func (w *fixture) Begin(_ context.Context, id string, _ time.Time) error {
	w.reports[id] = nil
	return nil
}

func (w *fixture) Add(_ context.Context, id string, rows []Row) error {
	w.reports[id] = append(w.reports[id], rows...)
	slices.SortFunc(w.reports[id], func(a, b Row) int {
		return cmp.Or(strings.Compare(a.Subscriber, b.Subscriber), strings.Compare(a.ICCID, b.ICCID))
	})
	return nil
}

func (w *fixture) Rows(_ context.Context, id string, offset, limit int) ([]Row, error) {
	rows := w.reports[id]
	return rows[min(offset, len(rows)):min(offset+limit, len(rows))], nil
}

func (w *fixture) GetMany(_ context.Context, acct relay.AccountID, iccids []sim.ICCID) (map[sim.ICCID]sim.SIM, error) {
	w.maxLookup = max(w.maxLookup, len(iccids))
	found := make(map[sim.ICCID]sim.SIM)
	for _, iccid := range iccids {
		if line, ok := w.sims[iccid]; ok && acct == 1 {
			line.State, line.Requested = cmp.Or(line.State, sim.Active), sim.Active
			found[iccid] = line
		}
	}
	return found, w.fails("lines")
}

func (w *fixture) Scan(_ context.Context, _ relay.AccountID, in sim.Scope, after sim.ICCID, limit int) (found []sim.ICCID, err error) {
	for iccid, line := range w.sims {
		if iccid > after && (in.Pool == "" || line.Pool == in.Pool) && (in.Subscriber == "" || line.Subscriber == in.Subscriber) {
			found = append(found, iccid)
		}
	}
	slices.Sort(found)
	return found[:min(limit, len(found))], nil
}

// table has pools or subscribers by their ids.
type table[T any] map[string]T

func (t table[T]) Get(_ context.Context, _ relay.AccountID, id string) (T, error) {
	found, ok := t[id]
	if !ok {
		return found, relay.Errorf(relay.KindNotFound, "no record has the id %s", id)
	}
	return found, nil
}

func (w *fixture) Suspend(_ context.Context, _ relay.AccountID, iccid sim.ICCID) error {
	if err := w.fails("suspend " + string(iccid)); err != nil {
		return err
	}
	if line := w.sims[iccid]; line.State != sim.Suspended {
		w.set(iccid, func(l *sim.SIM) { l.State = sim.Suspended })
		w.events = append(w.events, "suspend "+string(iccid))
	}
	return nil
}

// set changes a SIM.
func (w *fixture) set(iccid sim.ICCID, change func(*sim.SIM)) {
	line := w.sims[iccid]
	change(&line)
	w.sims[iccid] = line
}

func (w *fixture) Make(ctx context.Context, name string, fill func(context.Context, io.Writer) (int64, error)) (int64, error) {
	if err := w.fails("make"); err != nil {
		return 0, err
	}
	var b bytes.Buffer
	n, err := fill(ctx, &b)
	w.files[name] = b.String()
	return n, err
}

func (w *fixture) Open(_ context.Context, name string) (io.ReadCloser, int64, error) {
	text, ok := w.files[name]
	if !ok {
		return nil, 0, relay.Errorf(relay.KindNotFound, "file %s", name)
	}
	return io.NopCloser(strings.NewReader(text)), int64(len(text)), nil
}

func (w *fixture) Do(ctx context.Context, _ string, do func(context.Context) (int64, error)) (int64, error) {
	return do(ctx)
}

func (w *fixture) Submit(_ context.Context, j job.Job) error {
	if have, ok := w.jobs[j.ID]; ok && (!have.State.Ended() || have.Keep > time.Minute) {
		return nil
	}
	j.State = job.Queued
	w.jobs[j.ID] = j
	return w.fails("submit")
}

func (w *fixture) Get(_ context.Context, acct relay.AccountID, id string) (job.Job, error) {
	j, ok := w.jobs[id]
	if !ok || j.Account != acct {
		return j, relay.Errorf(relay.KindNotFound, "job %s", id)
	}
	return j, nil
}

func (w *fixture) Notify(_ context.Context, _ relay.AccountID, e outbox.Event) error {
	if err := w.fails("tell"); err != nil {
		return err
	}
	d, err := outbox.Callback(1, "https://example.com/", e)
	if err == nil && w.sent[d.ID].ID == "" {
		w.sent[d.ID] = d
		w.events = append(w.events, e.Type+" "+e.About)
	}
	return err
}

func (w *fixture) Create(_ context.Context, ds []outbox.Delivery, _ time.Time) (created []outbox.Delivery, err error) {
	if err := w.fails("create"); err != nil {
		return nil, err
	}
	for _, d := range ds {
		if w.sent[d.ID].ID == "" {
			created = append(created, d)
		}
		w.sent[d.ID] = d
	}
	return created, nil
}

func (w *fixture) Dispatch(ds []outbox.Delivery) {
	for _, d := range ds {
		w.events = append(w.events, "mail "+d.Mail.To+" "+d.MessageID)
	}
}

// use is a record of the account 1.
func use(id, iccid string, start time.Time, bytes int64) Record {
	return Record{Account: 1, Use: cdr.Use{ID: id, ICCID: iccid, Start: start, Type: "data", Bytes: bytes}}
}

func mailed(addresses ...string) (out []sim.Recipient) {
	for _, a := range addresses {
		out = append(out, sim.Recipient{Email: a})
	}
	return out
}
