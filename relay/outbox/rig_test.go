package outbox

import (
	"slices"
	"testing"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/db"
	"github.com/penstock/penstock/relay/db/dbtest"
)

// rig is a store with a clock that the test sets.
type rig struct {
	*testing.T
	*Store
	now *time.Time
}

// onEvery runs each case on both engines, with an empty store.
func onEvery(t *testing.T, o db.Options, cases []testCase) {
	run := func(t *testing.T, url string) {
		var now time.Time
		o := o
		o.URL, o.Now = url, func() time.Time { return now }
		db := dbtest.Open(t, o)
		for _, c := range cases {
			t.Run(c.name, func(t *testing.T) {
				r := &rig{T: t, Store: NewStore(db), now: &now}
				for _, table := range []string{"delivery", "delivery_attempt", "delivery_queue", "delivery_dead", "delivery_count"} {
					err := db.Run(t.Context(), "test", "DELETE FROM "+table)
					r.must(err)
				}
				now = timeAt(0)
				c.test(r)
			})
		}
	}
	t.Run("on SQLite", func(t *testing.T) { run(t, "") })
	t.Run("on PostgreSQL", func(t *testing.T) { run(t, dbtest.Shared(t).NewDatabase(t)) })
}

type testCase struct {
	name string
	test func(r *rig)
}

func timeAt(s float64) time.Time { return dbtest.TimeAt(s) }

// newDelivery returns a delivery of account 1 with all fields of an HTTP request.
func newDelivery(id string) Delivery {
	return Delivery{
		ID: id, Account: 1, Kind: KindRelay, Relay: "g1", MessageID: "m-" + id, CreatedAt: timeAt(0),
		Request: &Request{
			Method: "POST", URL: "https://example.com/in?a=1&b=<2>", ContentType: "text/plain",
			Headers: map[string]string{"X-A": "b"}, Body: []byte("Grüße {\"}"),
		},
	}
}

func inAccount(acct relay.AccountID, d Delivery) Delivery {
	d.Account = acct
	return d
}

func createdAt(d Delivery, s float64) Delivery {
	d.CreatedAt = timeAt(s)
	return d
}

// toEndpoint returns a delivery to an endpoint.
func toEndpoint(endpoint, id string, ordered bool) Delivery {
	d := newDelivery(id)
	d.Endpoint, d.Pace.Ordered = endpoint, ordered
	return d
}

func refs(ids ...string) []Ref {
	result := make([]Ref, len(ids))
	for i, id := range ids {
		result[i] = Ref{Account: 1, ID: id}
	}
	return result
}

func outcome(d Delivery, s float64, state State) Outcome {
	o := Outcome{
		ID: d.ID, Account: d.Account, State: state, Reason: string(state) + " for a test",
		Attempt: Attempt{At: timeAt(s), Duration: time.Millisecond, Status: 500, Response: `say "no", <you>`},
	}
	if !state.Ended() {
		o.NextAttemptAt = timeAt(s + 10)
	}
	return o
}

// parkedOutcome returns the outcome of a delivery that is parked without an attempt.
func parkedOutcome(d Delivery, until float64) Outcome {
	return Outcome{
		ID: d.ID, Account: d.Account, State: Queued, Reason: "it fails", Uncounted: true,
		Endpoint: d.EndpointKey(), ParkedUntil: timeAt(until),
	}
}

func ids(ds []Delivery) (list []string) {
	for i := range ds {
		list = append(list, ds[i].ID)
	}
	return list
}

// withT returns the rig for a subtest.
func (r *rig) withT(t *testing.T) *rig { return &rig{T: t, Store: r.Store, now: r.now} }

func (r *rig) must(err error) {
	r.Helper()
	if err != nil {
		r.Fatal(err)
	}
}

func (r *rig) create(lease float64, ds ...Delivery) {
	r.Helper()
	created, err := r.Create(r.Context(), ds, timeAt(lease))
	if err != nil || len(created) != len(ds) {
		r.Fatalf("Create: %d of %d deliveries are new, error %v; want all", len(created), len(ds), err)
	}
}

func (r *rig) recordOutcomes(outcomes ...Outcome) []Ref {
	r.Helper()
	turns, err := r.Finish(r.Context(), outcomes)
	r.must(err)
	return turns
}

func (r *rig) get(id string) Delivery {
	r.Helper()
	d, err := r.Get(r.Context(), 1, id)
	r.must(err)
	return d
}

func (r *rig) dueIDs(sec float64, limit int) []string {
	r.Helper()
	refs, err := r.Due(r.Context(), timeAt(sec), limit)
	r.must(err)
	ids := []string{}
	for _, ref := range refs {
		ids = append(ids, ref.ID)
	}
	return ids
}

// takeIDs takes parked deliveries of an endpoint and returns their ids.
func (r *rig) takeIDs(endpoint string, limit int, cutoff time.Time) []string {
	r.Helper()
	ds, err := r.LeaseParked(r.Context(), ParkedEndpoint{Account: 1, Endpoint: endpoint}, limit, cutoff, timeAt(500))
	r.must(err)
	ids := []string{}
	for _, d := range ds {
		ids = append(ids, d.ID)
		if d.WaitsFor != "" || !d.NextAttemptAt.Equal(timeAt(500)) || d.Request == nil {
			r.Errorf("taken delivery has no lease or no request: %+v", d)
		}
	}
	return ids
}

// listIDs loads all pages of a filter and returns the ids of their deliveries.
func (r *rig) listIDs(f Filter) []string {
	r.Helper()
	ids := []string{}
	for range 1000 {
		page, cursor, err := r.List(r.Context(), f)
		r.must(err)
		if f.Limit > 0 && (len(page) > f.Limit || cursor != "" && len(page) < f.Limit) {
			r.Fatalf("got a page of %d deliveries and cursor %q, limit %d", len(page), cursor, f.Limit)
		}
		for _, d := range page {
			ids = append(ids, d.ID)
		}
		if f.Cursor = cursor; cursor == "" {
			return ids
		}
	}
	r.Fatal("the list does not end")
	return nil
}

// leases returns leases of deliveries of account 1 that end at a time.
func leases(end float64, ids ...string) (ls []Lease) {
	for _, id := range ids {
		ls = append(ls, Lease{Ref: Ref{Account: 1, ID: id}, End: timeAt(end)})
	}
	return ls
}

// wantRenewed renews leases and checks the ids of the renewed ones.
func (r *rig) wantRenewed(want []string, until float64, ls ...Lease) {
	r.Helper()
	refs, err := r.Renew(r.Context(), ls, timeAt(until))
	if err != nil {
		r.Fatal(err)
	}
	var got []string
	for _, ref := range refs {
		got = append(got, ref.ID)
	}
	if slices.Sort(got); !slices.Equal(got, want) {
		r.Errorf("renewed %v, want %v", got, want)
	}
}
