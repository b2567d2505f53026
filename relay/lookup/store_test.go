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

// clock is a time that tests move.
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
			c := &clock{now: dbtest.At(0)}
			database := dbtest.Open(t, db.Options{URL: url(t), Now: c.Now})
			t.Run("a result is remembered until it expires", func(t *testing.T) { resultsExpire(t, NewStore(database), c) })
			t.Run("what expired is deleted", func(t *testing.T) { expiredAreDeleted(t, NewStore(database)) })
			t.Run("the simulator's networks are kept", func(t *testing.T) { networksAreKept(t, NewStore(database)) })
		})
	}
}

func resultsExpire(t *testing.T, s *Store, c *clock) {
	ctx := t.Context()
	said := Result{Number: "447700900123", Code: Absent, MCC: "234", MNC: "15", Network: "Example", Ported: true}
	_, err := s.Get(ctx, said.Number)
	dbtest.WantKind(t, err, relay.KindNotFound)
	for _, code := range []Code{Delivered, Absent, Absent} {
		said.Code = code
		if err := s.Put(ctx, said, time.Hour); err != nil {
			t.Fatal(err)
		}
		relaytest.Equal(t, "result of Get", relaytest.Must(s.Get(ctx, said.Number))(t), said)
	}
	c.set(dbtest.At(3599))
	if _, err := s.Get(ctx, said.Number); err != nil {
		t.Errorf("within the hour: %v", err)
	}
	c.set(dbtest.At(3600))
	_, err = s.Get(ctx, said.Number)
	dbtest.WantKind(t, err, relay.KindNotFound)
	c.set(dbtest.At(0))
}

func expiredAreDeleted(t *testing.T, s *Store) {
	fill := db.NewBatch("number, expires")
	for i := range 5001 {
		fill.Add(fmt.Sprintf("n%d", i), dbtest.At(10))
	}
	fill.Add("later", dbtest.At(11))
	if err := s.db.Run(t.Context(), "test", "INSERT INTO lookup (number, doc, expires) SELECT number, '{}', expires FROM batch", fill); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := s.Sweep(t.Context(), dbtest.At(10)); err != nil {
			t.Fatal(err)
		}
		left, err := db.Values[string](t.Context(), s.db, "test", "SELECT number FROM lookup ORDER BY number")
		if err != nil || !reflect.DeepEqual(left, []string{"447700900123", "later"}) {
			t.Errorf("%d are left, %v", len(left), err)
		}
	}
}

func networksAreKept(t *testing.T, s *Store) {
	ctx := t.Context()
	want := []Network{{Prefix: "44", MCC: "234", MNC: "30", Name: "Other"}, {Prefix: "447", MCC: "234", MNC: "15", Name: "Example", Country: "United Kingdom"}}
	for _, n := range []Network{want[1], want[0], want[0]} {
		if err := s.PutNetwork(ctx, n); err != nil {
			t.Fatal(err)
		}
	}
	relaytest.Equal(t, "result of Networks", relaytest.Must(s.Networks(ctx))(t), want)
	if err := s.DeleteNetwork(ctx, "44"); err != nil {
		t.Error(err)
	}
	dbtest.WantKind(t, s.DeleteNetwork(ctx, "44"), relay.KindNotFound)
}
