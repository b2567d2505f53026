package sim

import (
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/db"
	"github.com/penstock/penstock/relay/db/dbtest"
	"github.com/penstock/penstock/relay/job"
	"github.com/penstock/penstock/relay/relaytest"
)

const ordered = ICCID("8944000000000000001")

func declareOne(t *testing.T, db *db.DB) {
	t.Helper()
	one := SIM{ICCID: ordered, State: Pending, IMSI: "234150000000001"}
	if err := NewSIMs(db).Declare(t.Context(), 1, []SIM{one}, false); err != nil {
		t.Fatal(err)
	}
}

func oneOfManyOrdersGetsTheSIM(t *testing.T, open func(t *testing.T) *db.DB) {
	db := open(t)
	declareOne(t, db)
	taken := errors.New("taken")
	var won atomic.Int32
	dbtest.Together(20, func(i int) {
		j := job.Job{ID: fmt.Sprint("j", i), Account: 1, Kind: "k", List: "sims", CreatedAt: dbtest.At(0)}
		err := NewSIMs(db).Begin(t.Context(), j, ordered, func(one *SIM) error {
			if one.Job != "" {
				return taken
			}
			one.Job, one.Requested = j.ID, Active
			return nil
		})
		if err == nil {
			won.Add(1)
		} else if !errors.Is(err, taken) {
			t.Error(err)
		}
	})
	one, err := NewSIMs(db).Get(t.Context(), 1, ordered)
	relaytest.NoError(t, err)
	relaytest.Equal(t, "began, won.Load()", won.Load(), 1)
	relaytest.Equal(t, "began, State", one.State, Pending)
	relaytest.Equal(t, "began, Requested", one.Requested, Active)
	found, total, err := job.NewStore(db).List(t.Context(), 1, job.Filter{List: "sims"}, 0, 100)
	if err != nil || total != 1 || len(found) != 1 || found[0].ID != one.Job || found[0].State != job.Queued {
		t.Errorf("%+v of %d, %v", found, total, err)
	}
	if due, err := job.NewStore(db).Due(t.Context(), dbtest.At(1), 10); err != nil || len(due) != 1 || due[0].ID != one.Job {
		t.Errorf("due %v, %v", due, err)
	}
}

func aJobSettlesOnce(t *testing.T, open func(t *testing.T) *db.DB) {
	db := open(t)
	declareOne(t, db)
	j := job.Job{ID: "j1", Account: 1, Kind: "k", CreatedAt: dbtest.At(0)}
	mustBegin := NewSIMs(db).Begin(t.Context(), j, ordered, func(one *SIM) error { one.Job = j.ID; return nil })
	if mustBegin != nil {
		t.Fatal(mustBegin)
	}
	var effects atomic.Int32
	dbtest.Together(20, func(i int) {
		got, err := NewSIMs(db).Settle(t.Context(), j, ordered, func(one *SIM) (json.RawMessage, error) {
			if one.Job != j.ID {
				return nil, errors.New("not mine")
			}
			one.Job, one.Subscriber = "", fmt.Sprint("s", i)
			return json.RawMessage(fmt.Sprintf(`{"n":%d}`, i)), nil
		})
		if err != nil {
			t.Error(err)
		}
		one, err := NewSIMs(db).Get(t.Context(), 1, ordered)
		if err == nil && fmt.Sprintf(`{"n":%s}`, one.Subscriber[1:]) == string(got) {
			effects.Add(1) // all callers get the one effect
		}
	})
	if effects.Load() != 20 {
		t.Errorf("%d of 20 agree", effects.Load())
	}
	if got, err := job.NewStore(db).Get(t.Context(), 1, "j1"); err != nil || len(got.Settled) == 0 || got.State != job.Queued {
		t.Errorf("%+v, %v", got, err)
	}
	if _, total, err := NewSIMs(db).List(t.Context(), 1, Scope{Subscriber: subscriberOf(t, db)}, Query{Page: relay.Page{Number: 1, PerPage: 5}}); err != nil || total != 1 {
		t.Errorf("the subscriber's list has %d, %v", total, err)
	}
}

func subscriberOf(t *testing.T, db *db.DB) string {
	t.Helper()
	one, err := NewSIMs(db).Get(t.Context(), 1, ordered)
	if err != nil {
		t.Fatal(err)
	}
	return one.Subscriber
}

// An answer that was lost is asked for again, by when the job may have run.
func aJobThatHasRunHasBegun(t *testing.T, open func(t *testing.T) *db.DB) {
	db := open(t)
	declareOne(t, db)
	refused := errors.New("not pending")
	begin := func(id string) error {
		j := job.Job{ID: id, Account: 1, Kind: "k", CreatedAt: dbtest.At(0)}
		return NewSIMs(db).Begin(t.Context(), j, ordered, func(one *SIM) error {
			if one.State != Pending {
				return refused
			}
			one.State = Active
			return nil
		})
	}
	for _, tc := range []struct {
		id   string
		want error
	}{{"j1", nil}, {"j1", nil}, {"j2", refused}} {
		if err := begin(tc.id); !errors.Is(err, tc.want) {
			t.Errorf("%s: %v", tc.id, err)
		}
	}
}

func anOrderForNoSIM(t *testing.T, open func(t *testing.T) *db.DB) {
	db := open(t)
	j := job.Job{ID: "j1", Account: 2, Kind: "k", CreatedAt: dbtest.At(0)}
	declareOne(t, db) // another account's
	begin := NewSIMs(db).Begin(t.Context(), j, ordered, func(*SIM) error { return nil })
	_, settle := NewSIMs(db).Settle(t.Context(), j, ordered, func(*SIM) (json.RawMessage, error) { return nil, nil })
	_, get := job.NewStore(db).Get(t.Context(), 2, "j1")
	for _, err := range []error{begin, settle, get} {
		if relay.KindOf(err) != relay.KindNotFound {
			t.Error(err)
		}
	}
}
