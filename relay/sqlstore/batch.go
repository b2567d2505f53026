package sqlstore

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// kind is a type of a batch's column.
type kind string

const (
	kindText   kind = "text"
	kindBigint kind = "bigint"
)

// Batch is the rows that one statement works on, in one round trip. As the last
// argument of a statement it is its table "batch", with the columns of the batch
// and n, the row's place from 1.
type Batch struct {
	columns []batchColumn
	rows    int
}

type batchColumn struct {
	name    string
	kind    kind
	texts   []string
	numbers []int64
}

// NewBatch makes an empty batch. Its columns are written "id text, due bigint":
// text for strings and JSON, bigint for numbers, times in milliseconds and truth
// (1, 0).
func NewBatch(columns string) *Batch {
	b := &Batch{}
	for _, column := range strings.Split(columns, ",") {
		name, k, _ := strings.Cut(strings.TrimSpace(column), " ")
		if kind(k) != kindText && kind(k) != kindBigint || name == "n" {
			panic(fmt.Sprintf("sqlstore: batch column %q: want a name other than n, and text or bigint", column))
		}
		b.columns = append(b.columns, batchColumn{name: name, kind: kind(k)})
	}
	return b
}

// Add adds a row: a string, []byte or a type of strings for text; any whole
// number, a bool or a time for bigint. It panics for another number or type of
// values than the batch has columns.
func (b *Batch) Add(values ...any) {
	if len(values) != len(b.columns) {
		panic(fmt.Sprintf("sqlstore: %d values for %d columns", len(values), len(b.columns)))
	}
	for i, v := range values {
		c := &b.columns[i]
		if c.kind == kindText {
			c.texts = append(c.texts, clean(textOf(v)))
		} else {
			c.numbers = append(c.numbers, numberOf(v))
		}
	}
	b.rows++
}

// Len is how many rows there are.
func (b *Batch) Len() int { return b.rows }

func textOf(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case []byte:
		return string(v)
	}
	panic(fmt.Sprintf("sqlstore: %T in a column of text", v))
}

func numberOf(v any) int64 {
	switch v := v.(type) {
	case int64:
		return v
	case int:
		return int64(v)
	case bool:
		if v {
			return 1
		}
		return 0
	case time.Time:
		return Millis(v)
	case time.Duration:
		return v.Milliseconds()
	}
	panic(fmt.Sprintf("sqlstore: %T in a column of numbers", v))
}

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

// clean is a text as both engines keep it: PostgreSQL takes neither NUL nor what
// is not UTF-8.
func clean(s string) string {
	if strings.IndexByte(s, 0) < 0 && utf8.ValidString(s) {
		return s
	}
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\ufffd"), "\x00", "\ufffd")
}

// Millis is a time as it is kept: milliseconds since 1970, 0 for the zero time.
func Millis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

// Moment reads what Millis wrote.
func Moment(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}
