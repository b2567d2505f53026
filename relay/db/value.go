package db

import (
	"cmp"
	"database/sql"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/penstock/penstock/relay"
)

// columnText returns the text of a value: of a string, of bytes, of a pointer to a string, or
// of JSON, which may fail to encode.
func columnText(v any) (text string, ok bool, err error) {
	switch v := v.(type) {
	case string:
		return v, true, nil
	case *string:
		return *v, true, nil
	case []byte:
		return string(v), true, nil
	case *sealedColumn:
		return columnText(v.plain)
	case jsonColumn:
		text, err = Encode(v.value)
		return text, true, err
	}
	if r := reflect.Indirect(reflect.ValueOf(v)); r.Kind() == reflect.String {
		return r.String(), true, nil
	}
	return "", false, nil
}

// columnNumber returns the number of a value: of an integer, of a boolean (1 and 0), of a time
// or a duration (milliseconds), or of a pointer to an integer or a boolean.
func columnNumber(v any) (n int64, ok bool) {
	switch v := v.(type) {
	case int64:
		return v, true
	case bool:
		if v {
			n = 1
		}
		return n, true
	case *bool:
		return columnNumber(*v)
	case time.Time:
		return Millis(v), true
	case timeColumn:
		return v.encode(*v.time), true
	case time.Duration:
		return v.Milliseconds(), true
	}
	switch r := reflect.Indirect(reflect.ValueOf(v)); {
	case r.CanInt():
		return r.Int(), true
	case r.CanUint():
		return int64(r.Uint()), true
	}
	return 0, false
}

// argument converts a parameter for the drivers. It encrypts a Sealed parameter and adds it
// to the sealed values.
func argument(v any, sealer Sealer, sealed *sealedValues) (any, error) {
	if s, ok := v.(*sealedColumn); ok {
		plain, ok, err := columnText(s.plain)
		if !ok || err != nil {
			return nil, cmp.Or(err, fmt.Errorf("%T cannot be sealed", s.plain))
		}
		if _, ok := s.plain.([]byte); ok {
			text, err := sealed.seal(sealer, plain, s.ownerName())
			return []byte(text), err
		}
		return sealed.seal(sealer, clean(plain), s.ownerName())
	}
	if bytes, ok := v.([]byte); ok {
		return bytes, nil
	}
	if n, ok := columnNumber(v); ok {
		return n, nil
	}
	text, ok, err := columnText(v)
	if !ok {
		return nil, fmt.Errorf("%T cannot be a parameter", v)
	}
	return clean(text), err
}

// clean replaces NUL and invalid UTF-8, which PostgreSQL refuses.
func clean(s string) string {
	if strings.IndexByte(s, 0) < 0 && utf8.ValidString(s) {
		return s
	}
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\ufffd"), "\x00", "\ufffd")
}

// Millis returns the stored form of a time: milliseconds since 1970, 0 for the zero time.
func Millis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

// FromMillis returns the time of a number that Millis has returned.
func FromMillis(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}

// Time returns a column of milliseconds, see Millis, that is written from a time or read to it.
func Time(t *time.Time) sql.Scanner { return timeColumn{t, Millis, time.UnixMilli} }

// Nanos returns the stored form of a time in columns that need nanoseconds: nanoseconds since
// 1970, 0 for the zero time. A time before 1678 or after 2261 is the smallest or the largest
// number.
func Nanos(t time.Time) int64 {
	switch {
	case t.IsZero():
		return 0
	case t.Before(time.Unix(0, math.MinInt64)):
		return math.MinInt64
	case t.After(time.Unix(0, math.MaxInt64)):
		return math.MaxInt64
	}
	return t.UnixNano()
}

// NanoTime returns a column of nanoseconds, see Nanos, that is written from a time or read to
// it.
func NanoTime(t *time.Time) sql.Scanner {
	return timeColumn{t, Nanos, func(ns int64) time.Time { return time.Unix(0, ns) }}
}

type timeColumn struct {
	time   *time.Time
	encode func(time.Time) int64
	decode func(int64) time.Time
}

// Scan reads the column.
func (c timeColumn) Scan(column any) error {
	n, ok := column.(int64)
	if !ok {
		return fmt.Errorf("%T is not a time", column)
	}
	*c.time = time.Time{}
	if n != 0 {
		*c.time = c.decode(n).UTC()
	}
	return nil
}

// JSON returns a column with the JSON of a value. To read the column, v must be a pointer. An
// empty column leaves the value unchanged.
func JSON(v any) sql.Scanner { return jsonColumn{v} }

type jsonColumn struct{ value any }

// Scan reads the column.
func (j jsonColumn) Scan(column any) error {
	doc, err := bytesOf(column)
	if err != nil || len(doc) == 0 {
		return err
	}
	return Decode(doc, j.value)
}

func bytesOf(column any) ([]byte, error) {
	switch column := column.(type) {
	case string:
		return []byte(column), nil
	case []byte:
		return column, nil
	}
	return nil, fmt.Errorf("%T is not text", column)
}

// Doc returns the only column of a record that is stored as JSON.
func Doc[T any](v *T) []any { return []any{JSON(v)} }

// Decode reads the JSON of a record.
func Decode(doc []byte, v any) error {
	if err := json.Unmarshal(doc, v); err != nil {
		return relay.Errorf(relay.KindUnexpected, "decode: %w", err)
	}
	return nil
}

// Encode returns the JSON of a record, in which <, > and & are not escaped.
func Encode(v any) (string, error) {
	b, err := relay.EncodeJSON(v)
	if err != nil {
		return "", fmt.Errorf("encode: %w", err)
	}
	return string(b), nil
}
