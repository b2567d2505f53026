package db

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/penstock/penstock/relay"
)

// Batch contains the rows for one statement, in one round trip. As the last argument of a
// statement it is the table "batch", with the columns of the batch and n, the number of the
// row from 1. A statement with an empty batch does not run: it changes and returns nothing.
type Batch struct {
	columns []batchColumn
	rows    int
	err     error // of what could not be encoded
	sealed  sealedValues
}

type batchColumn struct {
	name    string
	numeric bool // has numbers instead of texts
	texts   []string
	numbers []int64
	owners  []string // of each text that is to be sealed; empty for the others
	sealed  bool     // a text is, or is to be sealed
}

// NewBatch returns an empty batch with columns such as "id, due". The values of the first
// row decide which columns contain text and which contain numbers, see Add.
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

// AccountColumn returns a batch with two columns: account, the same in each row, and
// another one.
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

// seal seals the columns that are Sealed, once.
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

// json returns the rows as an array of arrays.
func (b *Batch) json() string {
	size := 2
	for i := range b.columns {
		size += 22 * len(b.columns[i].numbers)
		for _, text := range b.columns[i].texts {
			size += len(text) + len(text)/8 + 4
		}
	}
	dst := append(make([]byte, 0, size), '[')
	for row := range b.rows {
		if row > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, '[')
		for i := range b.columns {
			if i > 0 {
				dst = append(dst, ',')
			}
			if c := &b.columns[i]; c.numeric {
				dst = strconv.AppendInt(dst, c.numbers[row], 10)
			} else {
				dst = appendJSON(dst, c.texts[row])
			}
		}
		dst = append(dst, ']')
	}
	return string(append(dst, ']'))
}

// appendJSON appends a string of valid UTF-8 as a JSON string.
func appendJSON(dst []byte, s string) []byte {
	const hex = "0123456789abcdef"
	dst = append(dst, '"')
	start := 0
	for i := range len(s) {
		c := s[i]
		if c >= ' ' && c != '"' && c != '\\' {
			continue
		}
		dst = append(dst, s[start:i]...)
		if c == '"' || c == '\\' {
			dst = append(dst, '\\', c)
		} else {
			dst = append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		}
		start = i + 1
	}
	return append(append(dst, s[start:]...), '"')
}

// FirstOfEach returns the first item of each key, in the order of the keys. Every
// transaction locks rows in that order.
func FirstOfEach[T any](items []T, compareKeys func(a, b T) int) []T {
	items = slices.Clone(items)
	slices.SortStableFunc(items, compareKeys)
	return slices.CompactFunc(items, func(a, b T) bool { return compareKeys(a, b) == 0 })
}

// LastOfEach is FirstOfEach for the last items.
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

// Rounds splits items, in their order, so that no round has two items with one key: a
// statement can change a row only once.
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
