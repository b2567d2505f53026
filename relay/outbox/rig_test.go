package outbox

import (
	"slices"
	"testing"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/db"
	"github.com/penstock/penstock/relay/db/dbtest"
)

// rig is a store of a test, whose clock the test moves.
type rig struct {
	*testing.T
	*Store
	now *time.Time
}

// onEvery runs cases on both engines, each on an empty store.
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
				now = at(0)
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

func at(s float64) time.Time { return dbtest.At(s) }

// post is a delivery of account 1 with everything in it.
func post(id string) Delivery {
	return Delivery{
		ID: id, Account: 1, Kind: KindRelay, Relay: "g1", MessageID: "m-" + id, CreatedAt: at(0),
		Request: &Request{
			Method: "POST", URL: "https://example.com/in?a=1&b=<2>", ContentType: "text/plain",
			Headers: map[string]string{"X-A": "b"}, Body: []byte("Grüße {\"}"),
		},
	}
}

func of(acct relay.AccountID, d Delivery) Delivery {
	d.Account = acct
	return d
}

func created(d Delivery, s float64) Delivery {
	d.CreatedAt = at(s)
	return d
}

// to is a delivery to an endpoint.
func to(endpoint, id string, ordered bool) Delivery {
	d := post(id)
	d.Endpoint, d.Pace.Ordered = endpoint, ordered
	return d
}

func refs(ids ...string) []Ref {
	out := make([]Ref, len(ids))
	for i, id := range ids {
		out[i] = Ref{Account: 1, ID: id}
	}
	return out
}

func outcome(d Delivery, s float64, state State) Outcome {
	o := Outcome{
		ID: d.ID, Account: d.Account, State: state, Reason: string(state) + " for a test",
		Attempt: Attempt{At: at(s), Duration: time.Millisecond, Status: 500, Response: `say "no", <you>`},
	}
	if !state.Ended() {
		o.NextAttemptAt = at(s + 10)
	}
	return o
}

// parked is the outcome of a delivery that waits for a breaker without an attempt.
func parkedOutcome(d Delivery, until float64) Outcome {
	return Outcome{
		ID: d.ID, Account: d.Account, State: Queued, Reason: "it fails", Uncounted: true,
		Endpoint: d.EndpointName(), ParkedUntil: at(until),
	}
}

func ids(ds []Delivery) (list []string) {
	for i := range ds {
		list = append(list, ds[i].ID)
	}
	return list
}

// on is the rig in a part of its test.
func (r *rig) on(t *testing.T) *rig { return &rig{T: t, Store: r.Store, now: r.now} }

func (r *rig) must(err error) {
	r.Helper()
	if err != nil {
		r.Fatal(err)
	}
}

func (r *rig) create(lease float64, ds ...Delivery) {
	r.Helper()
	created, err := r.Create(r.Context(), ds, at(lease))
	if err != nil || len(created) != len(ds) {
		r.Fatalf("create: %d of %d are new, error %v", len(created), len(ds), err)
	}
}

func (r *rig) finished(os ...Outcome) []Ref {
	r.Helper()
	turns, err := r.Finish(r.Context(), os)
	r.must(err)
	return turns
}

func (r *rig) get(id string) Delivery {
	r.Helper()
	d, err := r.Get(r.Context(), 1, id)
	r.must(err)
	return d
}

func (r *rig) due(sec float64, limit int) []string {
	r.Helper()
	refs, err := r.Due(r.Context(), at(sec), limit)
	r.must(err)
	ids := []string{}
	for _, ref := range refs {
		ids = append(ids, ref.ID)
	}
	return ids
}

// taken takes from the line of an endpoint.
func (r *rig) taken(endpoint string, n int, before time.Time) []string {
	r.Helper()
	ds, err := r.Take(r.Context(), ParkedEndpoint{Account: 1, Endpoint: endpoint}, n, before, at(500))
	r.must(err)
	ids := []string{}
	for _, d := range ds {
		ids = append(ids, d.ID)
		if d.Waits != "" || !d.NextAttemptAt.Equal(at(500)) || d.Request == nil {
			r.Errorf("taken without a lease: %+v", d)
		}
	}
	return ids
}

// listed loads all pages of a filter and returns their ids.
func (r *rig) listed(f Filter) []string {
	r.Helper()
	ids := []string{}
	for range 1000 {
		page, next, err := r.List(r.Context(), f)
		r.must(err)
		if f.Limit > 0 && (len(page) > f.Limit || next != "" && len(page) < f.Limit) {
			r.Fatalf("page of %d, limit %d, next %q", len(page), f.Limit, next)
		}
		for _, d := range page {
			ids = append(ids, d.ID)
		}
		if f.Cursor = next; next == "" {
			return ids
		}
	}
	r.Fatal("the list does not end")
	return nil
}

// leases are those of deliveries of account 1 that end at a time.
func leases(end float64, ids ...string) (ls []Lease) {
	for _, id := range ids {
		ls = append(ls, Lease{Ref: Ref{Account: 1, ID: id}, End: at(end)})
	}
	return ls
}

// renewed renews leases and wants those of the ids to be renewed.
func (r *rig) renewed(want []string, until float64, ls ...Lease) {
	r.Helper()
	refs, err := r.Renew(r.Context(), ls, at(until))
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
