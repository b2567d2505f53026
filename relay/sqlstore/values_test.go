package sqlstore_test

import (
	"cmp"
	"context"
	"math"
	"reflect"
	"testing"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/relaytest"
	"github.com/penstock/penstock/relay/sqlstore"
	"github.com/penstock/penstock/relay/sqlstore/sqltest"
)

func TestValues(t *testing.T) {
	sqltest.OnEvery(t, func(t *testing.T, open func(t *testing.T) *sqlstore.DB) {
		t.Run("what is written is read by the same fields", func(t *testing.T) { fieldsComeBack(t, open(t)) })
		t.Run("a statement without rows is not run", func(t *testing.T) { emptyBatchesDoNothing(t, open(t)) })
		t.Run("what cannot be kept is an error of the statement", func(t *testing.T) { valuesAreRefused(t, open(t)) })
		t.Run("a sweep goes on until nothing is left", func(t *testing.T) { sweepsEnd(t, open(t)) })
	})
}

type colour string

type painting struct {
	owner   account.ID
	colour  colour
	signed  bool
	number  int
	sold    time.Time
	details map[string]string
}

func (p *painting) fields() []any {
	return []any{&p.owner, &p.colour, &p.signed, &p.number, sqlstore.Time(&p.sold), sqlstore.JSON(&p.details)}
}

func fieldsComeBack(t *testing.T, db *sqlstore.DB) {
	want := []painting{
		{owner: 7, colour: "<red>", signed: true, number: -3, sold: sqltest.At(0.25), details: map[string]string{"a": "<b>\""}},
		{},
	}
	b := sqlstore.BatchOf("owner, colour, signed, number, sold, details", want, (*painting).fields)
	got, err := sqlstore.List(t.Context(), db, "test", `SELECT owner, colour, signed, number, sold, details
FROM batch WHERE owner = $1 AND sold = $2 AND signed = $3 OR owner = 0 ORDER BY n`,
		func(p *painting) []any {
			return append(p.fields(), func() { p.number++ })
		},
		want[0].owner, want[0].sold, true, b)
	relaytest.NoError(t, err)
	for i := range want {
		want[i].number++ // by the function that completes a row
	}
	relaytest.Equal(t, "the rows read", got, want)
}

func emptyBatchesDoNothing(t *testing.T, db *sqlstore.DB) {
	none := sqlstore.Column("name", []string(nil))
	if n, err := db.Exec(t.Context(), "test", "no statement", none); n != 0 || err != nil {
		t.Error(n, err)
	}
	if all, err := sqlstore.Values[string](t.Context(), db, "test", "no statement", none); all != nil || err != nil {
		t.Error(all, err)
	}
}

func valuesAreRefused(t *testing.T, db *sqlstore.DB) {
	noJSON := sqlstore.JSON(math.Inf(1))
	for name, args := range map[string][]any{
		"a parameter":         {noJSON},
		"a row":               {sqlstore.BatchOf("doc", []int{1}, func(*int) []any { return []any{noJSON} })},
		"a type of no column": {1.5},
	} {
		err := db.Run(t.Context(), "test", "SELECT 1", args...)
		if relay.KindOf(err) != relay.KindUnexpected {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func sweepsEnd(t *testing.T, db *sqlstore.DB) {
	names := sqlstore.Column("name", []string{"a", "b", "c", "d", "e"})
	if err := db.Run(t.Context(), "test", "INSERT INTO version (name, n) SELECT name, 1 FROM batch", names); err != nil {
		t.Fatal(err)
	}
	if err := db.Sweep(t.Context(), "test", 2, "DELETE FROM version WHERE name IN (SELECT name FROM version WHERE n = $1 LIMIT $2)", 1); err != nil {
		t.Error(err)
	}
	left, err := sqlstore.Map[string, int](t.Context(), db, "test", "SELECT name, n FROM version WHERE n = 1")
	if err != nil || len(left) != 0 {
		t.Error(left, err)
	}
	_, err = sqlstore.OrZero(sqlstore.Value[int](t.Context(), db, "test", "SELECT n FROM version WHERE name = 'a'"))
	missing := sqlstore.MustChange(t.Context(), db, "test", "DELETE FROM version WHERE name = 'a'")
	if err != nil || relay.KindOf(missing) != relay.KindNotFound {
		t.Error(err, missing)
	}
}

func TestATransactionThatFailsReturnsNothing(t *testing.T) {
	db := sqltest.Open(t, sqlstore.Options{})
	got, err := sqlstore.Transact(t.Context(), db, "test", func(context.Context, *sqlstore.Tx) (int, error) {
		return 1, relay.Errorf(relay.KindConflict, "no")
	})
	if got != 0 || relay.KindOf(err) != relay.KindConflict {
		t.Error(got, err)
	}
}

func TestEachKeyOnce(t *testing.T) {
	type item struct {
		key, value int
	}
	items := []item{{2, 1}, {1, 1}, {2, 2}, {1, 2}, {2, 3}}
	byKey := func(a, b item) int { return cmp.Compare(a.key, b.key) }
	relaytest.Equal(t, "first", sqlstore.FirstOfEach(items, byKey), []item{{1, 1}, {2, 1}})
	relaytest.Equal(t, "last", sqlstore.LastOfEach(items, byKey), []item{{1, 2}, {2, 3}})
	rounds := sqlstore.Rounds(items, func(i *item) int { return i.key })
	if want := [][]item{{{2, 1}, {1, 1}}, {{2, 2}, {1, 2}}, {{2, 3}}}; !reflect.DeepEqual(rounds, want) {
		t.Errorf("rounds %v", rounds)
	}
}
