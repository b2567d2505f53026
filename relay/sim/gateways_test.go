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

// Two gateways work on one database.
func TestGateways(t *testing.T) {
	for name, test := range map[string]func(*testing.T, [2]*db.DB){
		"declare the same SIMs": declareTheSame, "order the same SIMs": orderTheSame, "reassign and pool the same SIMs": moveTheSame,
	} {
		t.Run(name, func(t *testing.T) {
			test(t, dbtest.Two(t, func(database *db.DB) *db.DB { return database }))
		})
	}
}

// each runs do at both gateways, several times at once.
func each(dbs [2]*db.DB, times int, do func(db *db.DB, i int)) {
	dbtest.Together(times, func(i int) { do(dbs[i%2], i) })
}

func declareTheSame(t *testing.T, dbs [2]*db.DB) {
	each(dbs, 6, func(database *db.DB, i int) { fill(t, NewSIMs(database), 1, 100) })
	countsAgree(t, dbs[0])
	found, total, err := NewSIMs(dbs[1]).List(t.Context(), 1, Scope{}, Query{Page: relay.Page{Number: 2, PerPage: 60}, OrderBy: "msisdn"})
	if err != nil || total != 100 || len(found) != 40 || found[39].ICCID != "8944000000000000099" {
		t.Errorf("%d of %d, %v", len(found), total, err)
	}
}

func orderTheSame(t *testing.T, dbs [2]*db.DB) {
	iccids := fill(t, NewSIMs(dbs[0]), 1, 10)
	var began, settled [10]atomic.Int32
	each(dbs, 40, func(database *db.DB, i int) {
		n := i / 4
		j := job.Job{ID: fmt.Sprint("j", i), Account: 1, Kind: "k", List: "sims", CreatedAt: dbtest.At(0)}
		for range 2 { // the caller repeats a call whose answer was lost
			err := NewSIMs(database).Begin(t.Context(), j, iccids[n], func(one *SIM) error {
				if one.Job != "" {
					return NoSIM()
				}
				one.Job = j.ID
				return nil
			})
			if err != nil {
				return
			}
		}
		began[n].Add(1)
		each(dbs, 4, func(database *db.DB, _ int) {
			_, err := NewSIMs(database).Settle(t.Context(), j, iccids[n], func(one *SIM) (json.RawMessage, error) {
				settled[n].Add(1)
				one.Subscriber = "s1"
				return json.RawMessage("1"), nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	})
	for i := range iccids {
		if began[i].Load() != 1 || settled[i].Load() != 1 {
			t.Errorf("%s: %d began, %d settled", iccids[i], began[i].Load(), settled[i].Load())
		}
	}
	countsAgree(t, dbs[0])
	if _, total, err := job.NewStore(dbs[1]).List(t.Context(), 1, job.Filter{List: "sims"}, 0, 100); err != nil || total != 10 {
		t.Errorf("%d jobs, %v", total, err)
	}
}

func moveTheSame(t *testing.T, dbs [2]*db.DB) {
	ctx := t.Context()
	iccids := fill(t, NewSIMs(dbs[0]), 1, 60)
	relaytest.NoError(t, NewPools(dbs[0]).Put(ctx, 1, Pool{ID: "p"}))
	each(dbs, 12, func(database *db.DB, i int) {
		s := NewSIMs(database)
		for n := range iccids {
			iccid := iccids[(n*7+i*5)%len(iccids)]
			if _, err := s.Change(ctx, 1, iccid, func(one *SIM) error { one.Subscriber = fmt.Sprint("s", (i+n)%3); return nil }); err != nil {
				t.Error(err)
			}
		}
		if err := s.Attach(ctx, 1, "p", iccids[i*5:]); err != nil {
			t.Error(err)
		}
		if i > 0 {
			return
		}
		if err := s.Detach(ctx, 1, "p", iccids[:3]); err != nil {
			t.Error(err)
		}
	})
	countsAgree(t, dbs[0])
	total := 0
	for _, id := range []string{"s0", "s1", "s2"} {
		_, n, err := NewSIMs(dbs[1]).List(ctx, 1, Scope{Subscriber: id}, Query{Page: relay.Page{Number: 1, PerPage: 5}, OrderBy: "imsi"})
		relaytest.NoError(t, err)
		total += n
	}
	if total != len(iccids) {
		t.Errorf("the subscribers have %d SIMs of %d", total, len(iccids))
	}
}
