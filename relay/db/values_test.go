package db_test

import (
	"cmp"
	"context"
	"math"
	"reflect"
	"testing"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/db"
	"github.com/penstock/penstock/relay/db/dbtest"
	"github.com/penstock/penstock/relay/relaytest"
)

func TestValues(t *testing.T) {
	dbtest.OnEvery(t, func(t *testing.T, open func(t *testing.T) *db.DB) {
		t.Run("written values are read by the same fields", func(t *testing.T) { valuesAreRead(t, open(t)) })
		t.Run("a statement without rows is not run", func(t *testing.T) { emptyBatchesDoNothing(t, open(t)) })
		t.Run("unsupported values are errors", func(t *testing.T) { valuesAreRefused(t, open(t)) })
		t.Run("a sweep deletes all expired rows", func(t *testing.T) { sweepsEnd(t, open(t)) })
	})
}

type colour string

type painting struct {
	owner   relay.AccountID
	colour  colour
	signed  bool
	number  int
	sold    time.Time
	details map[string]string
}

func (p *painting) fields() []any {
	return []any{&p.owner, &p.colour, &p.signed, &p.number, db.Time(&p.sold), db.JSON(&p.details)}
}

func valuesAreRead(t *testing.T, database *db.DB) {
	want := []painting{
		{owner: 7, colour: "<red>", signed: true, number: -3, sold: dbtest.TimeAt(0.25), details: map[string]string{"a": "<b>\""}},
		{},
	}
	b := db.BatchOf("owner, colour, signed, number, sold, details", want, (*painting).fields)
	got, err := db.List(t.Context(), database, "test", `SELECT owner, colour, signed, number, sold, details
FROM batch WHERE owner = $1 AND sold = $2 AND signed = $3 OR owner = 0 ORDER BY n`,
		func(p *painting) []any {
			return append(p.fields(), func() { p.number++ })
		},
		want[0].owner, want[0].sold, true, b)
	relaytest.NoError(t, err)
	for i := range want {
		want[i].number++ // by the function after the columns
	}
	relaytest.Equal(t, "the rows", got, want)
}

func emptyBatchesDoNothing(t *testing.T, database *db.DB) {
	empty := db.Column("name", []string(nil))
	if n, err := database.Exec(t.Context(), "test", "no statement", empty); n != 0 || err != nil {
		t.Errorf("changed rows = %d, error = %v, want 0", n, err)
	}
	if names, err := db.Values[string](t.Context(), database, "test", "no statement", empty); names != nil || err != nil {
		t.Errorf("names = %v, error = %v, want none", names, err)
	}
}

func valuesAreRefused(t *testing.T, database *db.DB) {
	invalid := db.JSON(math.Inf(1))
	for name, args := range map[string][]any{
		"a parameter":         {invalid},
		"a row":               {db.BatchOf("doc", []int{1}, func(*int) []any { return []any{invalid} })},
		"an unsupported type": {1.5},
	} {
		err := database.Run(t.Context(), "test", "SELECT 1", args...)
		if relay.KindOf(err) != relay.KindUnexpected {
			t.Errorf("error for %s = %v, want unexpected", name, err)
		}
	}
}

func sweepsEnd(t *testing.T, database *db.DB) {
	names := db.Column("name", []string{"a", "b", "c", "d", "e"})
	if err := database.Run(t.Context(), "test", "INSERT INTO version (name, n) SELECT name, 1 FROM batch", names); err != nil {
		t.Fatal(err)
	}
	if err := database.Sweep(t.Context(), "test", 2, "DELETE FROM version WHERE name IN (SELECT name FROM version WHERE n = $1 LIMIT $2)", 1); err != nil {
		t.Error(err)
	}
	remaining, err := db.Map[string, int](t.Context(), database, "test", "SELECT name, n FROM version WHERE n = 1")
	if err != nil || len(remaining) != 0 {
		t.Errorf("remaining rows = %v, error = %v, want none", remaining, err)
	}
	_, err = db.OrZero(db.Value[int](t.Context(), database, "test", "SELECT n FROM version WHERE name = 'a'"))
	missing := db.MustChange(t.Context(), database, "test", "DELETE FROM version WHERE name = 'a'")
	if err != nil || relay.KindOf(missing) != relay.KindNotFound {
		t.Errorf("error of OrZero = %v, want nil; error of MustChange = %v, want not found", err, missing)
	}
}

func TestAFailedTransactionReturnsZero(t *testing.T) {
	database := dbtest.Open(t, db.Options{})
	got, err := db.Transact(t.Context(), database, "test", func(context.Context, *db.Tx) (int, error) {
		return 1, relay.Errorf(relay.KindConflict, "no")
	})
	if got != 0 || relay.KindOf(err) != relay.KindConflict {
		t.Errorf("result = %d, error = %v, want 0 and conflict", got, err)
	}
}

func TestItemsAreGroupedByKey(t *testing.T) {
	type item struct {
		key, value int
	}
	items := []item{{2, 1}, {1, 1}, {2, 2}, {1, 2}, {2, 3}}
	byKey := func(a, b item) int { return cmp.Compare(a.key, b.key) }
	relaytest.Equal(t, "first", db.FirstOfEach(items, byKey), []item{{1, 1}, {2, 1}})
	relaytest.Equal(t, "last", db.LastOfEach(items, byKey), []item{{1, 2}, {2, 3}})
	rounds := db.Rounds(items, func(i *item) int { return i.key })
	if want := [][]item{{{2, 1}, {1, 1}}, {{2, 2}, {1, 2}}, {{2, 3}}}; !reflect.DeepEqual(rounds, want) {
		t.Errorf("rounds = %v, want %v", rounds, want)
	}
}
