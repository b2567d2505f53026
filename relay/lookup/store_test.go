package lookup

import (
	"fmt"
	"reflect"
	"sync"
	"testing"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/db"
	"github.com/penstock/penstock/relay/db/dbtest"
	"github.com/penstock/penstock/relay/relaytest"
)

// clock is a clock that tests set.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) set(now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = now
}

func TestStore(t *testing.T) {
	server := dbtest.Shared(t)
	for engine, url := range map[string]func(*testing.T) string{
		"on SQLite":     func(*testing.T) string { return "" },
		"on PostgreSQL": func(t *testing.T) string { return server.NewDatabase(t) },
	} {
		t.Run(engine, func(t *testing.T) {
			c := &clock{now: dbtest.TimeAt(0)}
			database := dbtest.Open(t, db.Options{URL: url(t), Now: c.Now})
			t.Run("a result is cached until it expires", func(t *testing.T) { resultsExpire(t, NewStore(database), c) })
			t.Run("expired results are deleted", func(t *testing.T) { expiredAreDeleted(t, NewStore(database)) })
			t.Run("the simulator's networks are saved", func(t *testing.T) { networksAreSaved(t, NewStore(database)) })
		})
	}
}

func resultsExpire(t *testing.T, s *Store, c *clock) {
	ctx := t.Context()
	want := Result{Number: "447700900123", Code: Absent, MCC: "234", MNC: "15", Network: "Example", Ported: true}
	_, err := s.Get(ctx, want.Number)
	dbtest.WantKind(t, err, relay.KindNotFound)
	for _, code := range []Code{Delivered, Absent, Absent} {
		want.Code = code
		if err := s.Put(ctx, want, time.Hour); err != nil {
			t.Fatal(err)
		}
		relaytest.Equal(t, "the cached result", relaytest.Must(s.Get(ctx, want.Number))(t), want)
	}
	c.set(dbtest.TimeAt(3599))
	if _, err := s.Get(ctx, want.Number); err != nil {
		t.Errorf("after 3599 s: %v", err)
	}
	c.set(dbtest.TimeAt(3600))
	_, err = s.Get(ctx, want.Number)
	dbtest.WantKind(t, err, relay.KindNotFound)
	c.set(dbtest.TimeAt(0))
}

func expiredAreDeleted(t *testing.T, s *Store) {
	rows := db.NewBatch("number, expires")
	for i := range 5001 {
		rows.Add(fmt.Sprintf("n%d", i), dbtest.TimeAt(10))
	}
	rows.Add("later", dbtest.TimeAt(11))
	if err := s.db.Run(t.Context(), "test", "INSERT INTO lookup (number, doc, expires) SELECT number, '{}', expires FROM batch", rows); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := s.Sweep(t.Context(), dbtest.TimeAt(10)); err != nil {
			t.Fatal(err)
		}
		remaining, err := db.Values[string](t.Context(), s.db, "test", "SELECT number FROM lookup ORDER BY number")
		if err != nil || !reflect.DeepEqual(remaining, []string{"447700900123", "later"}) {
			t.Errorf("%d results remain, want 2; %v", len(remaining), err)
		}
	}
}

func networksAreSaved(t *testing.T, s *Store) {
	ctx := t.Context()
	want := []Network{{Prefix: "44", MCC: "234", MNC: "30", Name: "Other"}, {Prefix: "447", MCC: "234", MNC: "15", Name: "Example", Country: "United Kingdom"}}
	for _, n := range []Network{want[1], want[0], want[0]} {
		if err := s.PutNetwork(ctx, n); err != nil {
			t.Fatal(err)
		}
	}
	relaytest.Equal(t, "the networks", relaytest.Must(s.Networks(ctx))(t), want)
	if err := s.DeleteNetwork(ctx, "44"); err != nil {
		t.Error(err)
	}
	dbtest.WantKind(t, s.DeleteNetwork(ctx, "44"), relay.KindNotFound)
}
