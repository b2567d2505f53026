package db

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/penstock/penstock/relay"
)

// Batch contains rows for a statement, which reads them from the table "batch" in one round
// trip. The batch is the last argument of the statement. The table has the columns of the
// batch and n, the number of the row from 1. A statement with an empty batch does not run: it
// changes and returns nothing.
type Batch struct {
	columns []batchColumn
	rows    int
	err     error // of the first value that could not be encoded
	sealed  sealedValues
}

type batchColumn struct {
	name    string
	numeric bool // has numbers instead of texts
	texts   []string
	numbers []int64
	owners  []string // by row, the owner of a text that must be sealed; otherwise empty
	sealed  bool     // a text is Sealed
}

// NewBatch returns an empty batch with columns such as "id, due". The values of the first
// row determine which columns contain text and which contain numbers, see Add.
func NewBatch(columns string) *Batch {
	b := &Batch{}
	for name := range strings.SplitSeq(columns, ",") {
		b.columns = append(b.columns, batchColumn{name: strings.TrimSpace(name)})
	}
	return b
}

// BatchOf returns a batch with a row for each value; row returns its columns, see Add.
func BatchOf[T any](columns string, values []T, row func(v *T) []any) *Batch {
	b := NewBatch(columns)
	for i := range values {
		b.Add(row(&values[i])...)
	}
	return b
}

// Column returns a batch with one column.
func Column[T any](column string, values []T) *Batch {
	return BatchOf(column, values, func(v *T) []any { return []any{v} })
}

// AccountColumn returns a batch with two columns: account, which is the same in each row,
// and the named column.
func AccountColumn[T any](acct relay.AccountID, column string, values []T) *Batch {
	return BatchOf("account, "+column, values, func(v *T) []any { return []any{acct, v} })
}

// Add adds a row of values, or pointers to values. Text is a string, bytes or JSON. A number
// is an integer, a boolean (1, 0), a time or a duration (both in milliseconds). A value that
// cannot be encoded as JSON is an error of the statement that gets the batch. Add panics if
// the number of values is not the number of columns, or a column gets text and numbers.
func (b *Batch) Add(values ...any) {
	if len(values) != len(b.columns) {
		panic(fmt.Sprintf("db: %d values for %d columns", len(values), len(b.columns)))
	}
	for i, v := range values {
		c, ok := &b.columns[i], false
		if b.rows == 0 {
			_, c.numeric = columnNumber(v)
		}
		if c.numeric {
			var n int64
			n, ok = columnNumber(v)
			c.numbers = append(c.numbers, n)
		} else {
			var text string
			var err error
			text, ok, err = columnText(v)
			owner := ""
			if s, sealed := v.(*sealedColumn); sealed {
				owner, c.sealed = s.ownerName(), true
			}
			c.owners = append(c.owners, owner)
			c.texts, b.err = append(c.texts, clean(text)), cmp.Or(b.err, err)
		}
		if !ok {
			panic(fmt.Sprintf("db: %T in column %s, numeric: %t", v, c.name, c.numeric))
		}
	}
	b.rows++
}

// seal encrypts the texts that must be sealed. A second call has no effect.
func (b *Batch) seal(sealer Sealer) error {
	for i := range b.columns {
		c := &b.columns[i]
		for n, owner := range c.owners {
			if owner == "" {
				continue
			}
			sealed, err := b.sealed.seal(sealer, c.texts[n], owner)
			if err != nil {
				return err
			}
			c.texts[n], c.owners[n] = sealed, ""
		}
	}
	return b.err
}

// Len returns the number of rows.
func (b *Batch) Len() int { return b.rows }

func (b *Batch) json() string {
	rows := make([][]any, b.rows)
	for n := range rows {
		rows[n] = make([]any, len(b.columns))
		for i, c := range b.columns {
			if c.numeric {
				rows[n][i] = c.numbers[n]
			} else {
				rows[n][i] = c.texts[n]
			}
		}
	}
	doc, _ := Encode(rows) // numbers and strings always encode
	return doc
}

// FirstOfEach returns the first item of each key, in the order of the keys, which is the
// order in which every transaction locks rows.
func FirstOfEach[T any](items []T, compareKeys func(a, b T) int) []T {
	items = slices.Clone(items)
	slices.SortStableFunc(items, compareKeys)
	return slices.CompactFunc(items, func(a, b T) bool { return compareKeys(a, b) == 0 })
}

// LastOfEach returns the last item of each key, in the order of the keys.
func LastOfEach[T any](items []T, compareKeys func(a, b T) int) []T {
	items = slices.Clone(items)
	slices.Reverse(items)
	return FirstOfEach(items, compareKeys)
}

// PlacesInOrder returns the indexes of items in the order of their keys.
func PlacesInOrder[T any](items []T, compareKeys func(a, b T) int) []int {
	places := make([]int, len(items))
	for i := range places {
		places[i] = i
	}
	slices.SortFunc(places, func(a, b int) int { return compareKeys(items[a], items[b]) })
	return places
}

// Rounds splits items, in their order, into rounds without two items of the same key,
// because a statement can change a row only once.
func Rounds[T any, K comparable](items []T, key func(*T) K) (rounds [][]T) {
	seen := make(map[K]int, len(items))
	for i := range items {
		k := key(&items[i])
		if seen[k] == len(rounds) {
			rounds = append(rounds, nil)
		}
		rounds[seen[k]] = append(rounds[seen[k]], items[i])
		seen[k]++
	}
	return rounds
}
