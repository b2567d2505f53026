package sqlstore

import (
	"database/sql"
	"encoding/base64"
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// Sealer encrypts what the database must not show. Its methods are called in transactions,
// so they must not write to the database.
type Sealer interface {
	Seal(plain []byte) ([]byte, error)
	Open(sealed []byte) ([]byte, error)
}

// SetSealer sets what encrypts the columns that are Sealed. Without one they are kept as
// they are. It is called before other goroutines use the DB.
func (d *DB) SetSealer(s Sealer) { d.sealed = s }

// Sealed is a column of text or bytes that the database has encrypted: a parameter, or,
// of a pointer or a sql.Scanner, where a column is read to. Each encryption of a value is
// another one, so a sealed column can neither be compared nor searched. An empty value
// stays empty.
func Sealed(column any) sql.Scanner { return &sealedColumn{of: column} }

// SealedDoc is Doc for a column that is Sealed.
func SealedDoc[T any](v *T) []any { return []any{Sealed(JSON(v))} }

// SealedText is the only column of a query, a text that is Sealed.
func SealedText(text *string) []any { return []any{Sealed(text)} }

type sealedColumn struct {
	of any
	by Sealer // where a column is read
}

// sealedPrefix begins a value that is sealed; base64 follows.
const sealedPrefix = "sealed:"

// seal returns a text as it is kept.
func seal(by Sealer, text string) (string, error) {
	if by == nil || text == "" {
		return text, nil
	}
	b, err := by.Seal([]byte(text))
	return sealedPrefix + base64.RawStdEncoding.EncodeToString(b), err
}

// Scan reads the column.
func (s *sealedColumn) Scan(column any) error {
	stored, err := bytesOf(column)
	if err != nil {
		return err
	}
	plain := stored
	if encoded, is := strings.CutPrefix(string(stored), sealedPrefix); is && s.by != nil {
		b, err := base64.RawStdEncoding.DecodeString(encoded)
		if err != nil {
			return fmt.Errorf("a sealed column: %w", err)
		}
		if plain, err = s.by.Open(b); err != nil {
			return err
		}
	}
	if to, ok := s.of.(sql.Scanner); ok {
		return to.Scan(plain)
	}
	switch to := reflect.ValueOf(s.of).Elem(); to.Kind() {
	case reflect.String:
		to.SetString(string(plain))
	default:
		to.SetBytes(slices.Clone(plain))
	}
	return nil
}
