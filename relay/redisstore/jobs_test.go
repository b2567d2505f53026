package redisstore

import (
	"reflect"
	"testing"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/job"
)

var _ job.Store = (*Jobs)(nil)

func TestJobs(t *testing.T) {
	onEvery(t, func(t *testing.T, open func(t *testing.T) *DB) {
		s := open(t).Jobs()
		ctx := t.Context()
		made := job.Job{ID: "j1", Account: 1, Kind: "token.claim", Input: []byte(`{"a":"<é>"}`), CreatedAt: at(0), Keep: time.Hour}
		other := job.Job{ID: "j2", Account: 2, Kind: "token.claim", CreatedAt: at(5)}
		for _, j := range []job.Job{made, made, other} {
			if err := s.Create(ctx, j); err != nil {
				t.Fatal(err)
			}
		}
		want := made
		want.State, want.Due, want.UpdatedAt = job.Queued, at(0), at(0)
		if got, err := s.Get(ctx, 1, "j1"); err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("%+v, %v", got, err)
		}
		if _, err := s.Get(ctx, 2, "j1"); relay.KindOf(err) != relay.KindNotFound {
			t.Errorf("another account's: %v", err)
		}
		if due, err := s.Due(ctx, at(1), 10); err != nil || !reflect.DeepEqual(due, []job.Ref{{Account: 1, ID: "j1"}}) {
			t.Errorf("due %v, %v", due, err)
		}
		testJobsLease(t, s, made)
		testJobsEnd(t, s, made)
	})
}

func testJobsLease(t *testing.T, s *Jobs, made job.Job) {
	ctx, ref := t.Context(), job.Ref{Account: 1, ID: "j1"}
	got, taken, err := s.Lease(ctx, ref, at(1), at(11))
	if err != nil || !taken || got.State != job.Processing || got.Tries != 1 || !got.Due.Equal(at(11)) || string(got.Input) != string(made.Input) {
		t.Fatalf("%+v, %v, %v", got, taken, err)
	}
	if got, taken, err := s.Lease(ctx, ref, at(2), at(12)); err != nil || taken || got.State != job.Processing {
		t.Errorf("leased twice: %+v, %v, %v", got, taken, err)
	}
	if got, taken, err := s.Lease(ctx, ref, at(11), at(21)); err != nil || !taken || got.Tries != 2 {
		t.Errorf("after the lease: %+v, %v, %v", got, taken, err)
	}
	if _, taken, err := s.Lease(ctx, job.Ref{Account: 1, ID: "none"}, at(1), at(2)); taken || relay.KindOf(err) != relay.KindNotFound {
		t.Errorf("no such job: %v, %v", taken, err)
	}
}

func testJobsEnd(t *testing.T, s *Jobs, made job.Job) {
	ctx, ref := t.Context(), job.Ref{Account: 1, ID: "j1"}
	if err := s.Finish(ctx, made, job.Outcome{Error: "down", Again: at(30)}, at(20)); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Get(ctx, 1, "j1"); err != nil || got.State != job.Processing || got.Error != "down" || !got.Due.Equal(at(30)) || !got.UpdatedAt.Equal(at(20)) {
		t.Errorf("%+v, %v", got, err)
	}
	for _, o := range []job.Outcome{{Result: []byte(`{"ok":true}`)}, {Error: "too late"}} { // the second changes nothing
		if err := s.Finish(ctx, made, o, at(40)); err != nil {
			t.Fatal(err)
		}
	}
	got, err := s.Get(ctx, 1, "j1")
	if err != nil || got.State != job.Completed || got.Error != "" || string(got.Result) != `{"ok":true}` || !got.Due.IsZero() {
		t.Errorf("%+v, %v", got, err)
	}
	if _, taken, err := s.Lease(ctx, ref, at(100), at(110)); taken || err != nil {
		t.Errorf("leased after its end: %v, %v", taken, err)
	}
	if due, err := s.Due(ctx, at(1000), 10); err != nil || len(due) != 1 || due[0].ID != "j2" {
		t.Errorf("due %v, %v", due, err)
	}
	if ttl, err := s.db.rdb.PTTL(ctx, keyJob(1, "j1")).Result(); err != nil || ttl <= 0 || ttl > time.Hour {
		t.Errorf("kept for %v, %v", ttl, err)
	}
}
