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

const orderedSIM = ICCID("8944000000000000001")

func declareOrderedSIM(t *testing.T, db *db.DB) {
	t.Helper()
	s := SIM{ICCID: orderedSIM, State: Pending, IMSI: "234150000000001"}
	if err := NewSIMs(db).Declare(t.Context(), 1, []SIM{s}, false); err != nil {
		t.Fatal(err)
	}
}

func oneConcurrentOrderBegins(t *testing.T, open func(t *testing.T) *db.DB) {
	db := open(t)
	declareOrderedSIM(t, db)
	errTaken := errors.New("taken")
	var beganCount atomic.Int32
	dbtest.RunConcurrently(20, func(i int) {
		j := job.Job{ID: fmt.Sprint("j", i), Account: 1, Kind: "k", List: "sims", CreatedAt: dbtest.TimeAt(0)}
		err := NewSIMs(db).Begin(t.Context(), j, orderedSIM, func(s *SIM) error {
			if s.Job != "" {
				return errTaken
			}
			s.Job, s.RequestedState = j.ID, Active
			return nil
		})
		if err == nil {
			beganCount.Add(1)
		} else if !errors.Is(err, errTaken) {
			t.Error(err)
		}
	})
	simAfter, err := NewSIMs(db).Get(t.Context(), 1, orderedSIM)
	relaytest.NoError(t, err)
	relaytest.Equal(t, "the number of orders that began", beganCount.Load(), 1)
	relaytest.Equal(t, "the state of the SIM", simAfter.State, Pending)
	relaytest.Equal(t, "the requested state of the SIM", simAfter.RequestedState, Active)
	jobs, total, err := job.NewStore(db).List(t.Context(), 1, job.Filter{List: "sims"}, 0, 100)
	if err != nil || total != 1 || len(jobs) != 1 || jobs[0].ID != simAfter.Job || jobs[0].State != job.Queued {
		t.Errorf("jobs = %+v of %d, error %v; want the queued job %s", jobs, total, err, simAfter.Job)
	}
	if due, err := job.NewStore(db).Due(t.Context(), dbtest.TimeAt(1), 10); err != nil || len(due) != 1 || due[0].ID != simAfter.Job {
		t.Errorf("due jobs = %v, error %v; want %s", due, err, simAfter.Job)
	}
}

func aJobSettlesOnce(t *testing.T, open func(t *testing.T) *db.DB) {
	db := open(t)
	declareOrderedSIM(t, db)
	j := job.Job{ID: "j1", Account: 1, Kind: "k", CreatedAt: dbtest.TimeAt(0)}
	err := NewSIMs(db).Begin(t.Context(), j, orderedSIM, func(s *SIM) error { s.Job = j.ID; return nil })
	if err != nil {
		t.Fatal(err)
	}
	var agreeing atomic.Int32
	dbtest.RunConcurrently(20, func(i int) {
		got, err := NewSIMs(db).Settle(t.Context(), j, orderedSIM, func(s *SIM) (json.RawMessage, error) {
			if s.Job != j.ID {
				return nil, errors.New("the SIM has another job")
			}
			s.Job, s.Subscriber = "", fmt.Sprint("s", i)
			return json.RawMessage(fmt.Sprintf(`{"n":%d}`, i)), nil
		})
		if err != nil {
			t.Error(err)
		}
		s, err := NewSIMs(db).Get(t.Context(), 1, orderedSIM)
		if err == nil && fmt.Sprintf(`{"n":%s}`, s.Subscriber[1:]) == string(got) {
			agreeing.Add(1) // all callers get the result of the one change
		}
	})
	if agreeing.Load() != 20 {
		t.Errorf("%d of 20 callers got the result of the change, want all", agreeing.Load())
	}
	if got, err := job.NewStore(db).Get(t.Context(), 1, "j1"); err != nil || len(got.Settlement) == 0 || got.State != job.Queued {
		t.Errorf("job = %+v, error %v; want a queued job with a settled result", got, err)
	}
	if _, total, err := NewSIMs(db).List(t.Context(), 1, Scope{Subscriber: subscriberOf(t, db)}, Query{Page: relay.Page{Number: 1, PerPage: 5}}); err != nil || total != 1 {
		t.Errorf("SIMs of the subscriber: %d, error %v; want 1", total, err)
	}
}

func subscriberOf(t *testing.T, db *db.DB) string {
	t.Helper()
	s, err := NewSIMs(db).Get(t.Context(), 1, orderedSIM)
	if err != nil {
		t.Fatal(err)
	}
	return s.Subscriber
}

// A caller repeats Begin after a lost response; the job may have run by then.
func beginIsRepeatable(t *testing.T, open func(t *testing.T) *db.DB) {
	db := open(t)
	declareOrderedSIM(t, db)
	errState := errors.New("not pending")
	begin := func(id string) error {
		j := job.Job{ID: id, Account: 1, Kind: "k", CreatedAt: dbtest.TimeAt(0)}
		return NewSIMs(db).Begin(t.Context(), j, orderedSIM, func(s *SIM) error {
			if s.State != Pending {
				return errState
			}
			s.State = Active
			return nil
		})
	}
	for _, tc := range []struct {
		id   string
		want error
	}{{"j1", nil}, {"j1", nil}, {"j2", errState}} {
		if err := begin(tc.id); !errors.Is(err, tc.want) {
			t.Errorf("Begin of job %s: error %v, want %v", tc.id, err, tc.want)
		}
	}
}

func ordersForUnknownSIMsAreRefused(t *testing.T, open func(t *testing.T) *db.DB) {
	db := open(t)
	j := job.Job{ID: "j1", Account: 2, Kind: "k", CreatedAt: dbtest.TimeAt(0)}
	declareOrderedSIM(t, db) // declares the SIM in account 1
	beginErr := NewSIMs(db).Begin(t.Context(), j, orderedSIM, func(*SIM) error { return nil })
	_, settleErr := NewSIMs(db).Settle(t.Context(), j, orderedSIM, func(*SIM) (json.RawMessage, error) { return nil, nil })
	_, getErr := job.NewStore(db).Get(t.Context(), 2, "j1")
	for call, err := range map[string]error{"Begin": beginErr, "Settle": settleErr, "Get": getErr} {
		if relay.KindOf(err) != relay.KindNotFound {
			t.Errorf("%s: error %v, want kind not found", call, err)
		}
	}
}
