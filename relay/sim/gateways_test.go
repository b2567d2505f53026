package sim

import (
	"encoding/json"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/db"
	"github.com/penstock/penstock/relay/db/dbtest"
	"github.com/penstock/penstock/relay/job"
	"github.com/penstock/penstock/relay/relaytest"
)

// TestGateways runs operations of two gateways on one database concurrently.
func TestGateways(t *testing.T) {
	for name, test := range map[string]func(*testing.T, [2]*db.DB){
		"declare the same SIMs": declareSameSIMs, "order the same SIMs": orderSameSIMs, "reassign and pool the same SIMs": moveSameSIMs,
	} {
		t.Run(name, func(t *testing.T) {
			test(t, dbtest.TwoGateways(t, func(database *db.DB) *db.DB { return database }))
		})
	}
}

// onBothGateways calls do on alternating gateways, all calls concurrently.
func onBothGateways(dbs [2]*db.DB, n int, do func(db *db.DB, i int)) {
	dbtest.RunConcurrently(n, func(i int) { do(dbs[i%2], i) })
}

func declareSameSIMs(t *testing.T, dbs [2]*db.DB) {
	onBothGateways(dbs, 6, func(database *db.DB, i int) { declareSIMs(t, NewSIMs(database), 1, 100) })
	checkCounts(t, dbs[0])
	sims, total, err := NewSIMs(dbs[1]).List(t.Context(), 1, Scope{}, Query{Page: relay.Page{Number: 2, PerPage: 60}, OrderBy: "msisdn"})
	if err != nil || total != 100 || len(sims) != 40 || sims[39].ICCID != "8944000000000000099" {
		t.Errorf("got %d SIMs of %d, error %v; want the last 40 of 100", len(sims), total, err)
	}
}

func orderSameSIMs(t *testing.T, dbs [2]*db.DB) {
	iccids := declareSIMs(t, NewSIMs(dbs[0]), 1, 10)
	var began, settled [10]atomic.Int32
	onBothGateways(dbs, 40, func(database *db.DB, i int) {
		n := i / 4
		j := job.Job{ID: fmt.Sprint("j", i), Account: 1, Kind: "k", List: "sims", CreatedAt: dbtest.TimeAt(0)}
		for range 2 { // the caller repeats a call after a lost response
			err := NewSIMs(database).Begin(t.Context(), j, iccids[n], func(s *SIM) error {
				if s.Job != "" {
					return NotFound()
				}
				s.Job = j.ID
				return nil
			})
			if err != nil {
				return
			}
		}
		began[n].Add(1)
		onBothGateways(dbs, 4, func(database *db.DB, _ int) {
			_, err := NewSIMs(database).Settle(t.Context(), j, iccids[n], func(s *SIM) (json.RawMessage, error) {
				settled[n].Add(1)
				s.Subscriber = "s1"
				return json.RawMessage("1"), nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	})
	for i := range iccids {
		if began[i].Load() != 1 || settled[i].Load() != 1 {
			t.Errorf("SIM %s: %d jobs began, %d settled, want 1 and 1", iccids[i], began[i].Load(), settled[i].Load())
		}
	}
	checkCounts(t, dbs[0])
	if _, total, err := job.NewStore(dbs[1]).List(t.Context(), 1, job.Filter{List: "sims"}, 0, 100); err != nil || total != 10 {
		t.Errorf("got %d jobs, error %v; want 10", total, err)
	}
}

func moveSameSIMs(t *testing.T, dbs [2]*db.DB) {
	ctx := t.Context()
	iccids := declareSIMs(t, NewSIMs(dbs[0]), 1, 60)
	relaytest.NoError(t, NewPools(dbs[0]).Put(ctx, 1, Pool{ID: "p"}))
	onBothGateways(dbs, 12, func(database *db.DB, i int) {
		store := NewSIMs(database)
		for n := range iccids {
			iccid := iccids[(n*7+i*5)%len(iccids)]
			if _, err := store.Change(ctx, 1, iccid, func(s *SIM) error { s.Subscriber = fmt.Sprint("s", (i+n)%3); return nil }); err != nil {
				t.Error(err)
			}
		}
		if err := store.Attach(ctx, 1, "p", iccids[i*5:]); err != nil {
			t.Error(err)
		}
		if i > 0 {
			return
		}
		if err := store.Detach(ctx, 1, "p", iccids[:3]); err != nil {
			t.Error(err)
		}
	})
	checkCounts(t, dbs[0])
	total := 0
	for _, id := range []string{"s0", "s1", "s2"} {
		_, n, err := NewSIMs(dbs[1]).List(ctx, 1, Scope{Subscriber: id}, Query{Page: relay.Page{Number: 1, PerPage: 5}, OrderBy: "imsi"})
		relaytest.NoError(t, err)
		total += n
	}
	if total != len(iccids) {
		t.Errorf("the subscribers have %d SIMs, want %d", total, len(iccids))
	}
}
