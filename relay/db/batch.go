package db

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/penstock/penstock/relay"
)

// kind is a type of a batch's column.
type kind string

const (
	kindText   kind = "text"
	kindBigint kind = "bigint"
)

// Batch is the rows that one statement works on, in one round trip. As the last
// argument of a statement it is its table "batch", with the columns of the batch
// and n, the row's place from 1. A statement whose batch is empty is not run: it
// changes and answers nothing.
type Batch struct {
	columns []batchColumn
	rows    int
	err     error // of what could not be encoded
	sealed  sealedValues
}

type batchColumn struct {
	name    string
	kind    kind
	texts   []string
	numbers []int64
	owners  []string // of each text that is to be sealed; empty for the others
	sealed  bool     // a text is, or is to be sealed
}

// NewBatch makes an empty batch. Its columns are written "id, due"; what the first row has
// in a column says whether that is of text or of numbers, see Add.
func NewBatch(columns string) *Batch {
	b := &Batch{}
	for name := range strings.SplitSeq(columns, ",") {
		b.columns = append(b.columns, batchColumn{name: strings.TrimSpace(name)})
	}
	return b
}

// BatchOf makes a batch with a row of each value: what row answers, see Add.
func BatchOf[T any](columns string, all []T, row func(v *T) []any) *Batch {
	b := NewBatch(columns)
	for i := range all {
		b.Add(row(&all[i])...)
	}
	return b
}

// Column makes a batch of one column.
func Column[T any](column string, all []T) *Batch {
	return BatchOf(column, all, func(v *T) []any { return []any{v} })
}

// AccountColumn makes a batch of the column account, the same in each row, and another
// one.
func AccountColumn[T any](acct relay.AccountID, column string, all []T) *Batch {
	return BatchOf("account, "+column, all, func(v *T) []any { return []any{acct, v} })
}

// Add adds a row of values, or pointers to values: text as strings, bytes or JSON; numbers
// as whole numbers, truth (1, 0), times in milliseconds or durations. What cannot be
// encoded as JSON is an error of the statement that gets the batch. Add panics for another
// number of values than the batch has columns, and for text and numbers in one column.
func (b *Batch) Add(values ...any) {
	if len(values) != len(b.columns) {
		panic(fmt.Sprintf("db: %d values for %d columns", len(values), len(b.columns)))
	}
	for i, v := range values {
		c, ok := &b.columns[i], false
		if b.rows == 0 {
			c.kind = kindOf(v)
		}
		if c.kind == kindBigint {
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
			panic(fmt.Sprintf("db: %T in column %s %s", v, c.name, c.kind))
		}
	}
	b.rows++
}

func kindOf(v any) kind {
	if _, ok := columnNumber(v); ok {
		return kindBigint
	}
	return kindText
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

// Len is how many rows there are.
func (b *Batch) Len() int { return b.rows }

// json is the rows as an array of arrays.
func (b *Batch) json() string {
	size := 2
	for i := range b.columns {
		size += 22 * len(b.columns[i].numbers)
		for _, text := range b.columns[i].texts {
			size += len(text) + len(text)/8 + 4
		}
	}
	out := append(make([]byte, 0, size), '[')
	for row := range b.rows {
		if row > 0 {
			out = append(out, ',')
		}
		out = append(out, '[')
		for i := range b.columns {
			if i > 0 {
				out = append(out, ',')
			}
			if c := &b.columns[i]; c.kind == kindText {
				out = appendJSON(out, c.texts[row])
			} else {
				out = strconv.AppendInt(out, c.numbers[row], 10)
			}
		}
		out = append(out, ']')
	}
	return string(append(out, ']'))
}

// appendJSON appends a string of valid UTF-8 as JSON has it.
func appendJSON(out []byte, s string) []byte {
	const hex = "0123456789abcdef"
	out = append(out, '"')
	from := 0
	for i := range len(s) {
		c := s[i]
		if c >= ' ' && c != '"' && c != '\\' {
			continue
		}
		out = append(out, s[from:i]...)
		if c == '"' || c == '\\' {
			out = append(out, '\\', c)
		} else {
			out = append(out, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		}
		from = i + 1
	}
	return append(append(out, s[from:]...), '"')
}

// FirstOfEach is the first item of each key, in the order of keys, in which every
// transaction locks rows.
func FirstOfEach[T any](all []T, compareKeys func(a, b T) int) []T {
	all = slices.Clone(all)
	slices.SortStableFunc(all, compareKeys)
	return slices.CompactFunc(all, func(a, b T) bool { return compareKeys(a, b) == 0 })
}

// LastOfEach is FirstOfEach, but the last items.
func LastOfEach[T any](all []T, compareKeys func(a, b T) int) []T {
	all = slices.Clone(all)
	slices.Reverse(all)
	return FirstOfEach(all, compareKeys)
}

// PlacesInOrder is the places of items in the order of their keys, in which every
// transaction locks rows.
func PlacesInOrder[T any](all []T, compareKeys func(a, b T) int) []int {
	places := make([]int, len(all))
	for i := range places {
		places[i] = i
	}
	slices.SortFunc(places, func(a, b int) int { return compareKeys(all[a], all[b]) })
	return places
}

// Rounds are items in their order, such that no round has two of one key: a
// statement changes a row once.
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
