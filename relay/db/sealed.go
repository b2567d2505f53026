package db

import (
	"context"
	"database/sql"
	"encoding/base64"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/penstock/penstock/relay"
)

// Sealer encrypts secrets in the database.
type Sealer interface {
	// Seal encrypts a value for an owner. It is called in transactions, so it must not write
	// to the database.
	Seal(plain []byte, owner string) ([]byte, error)
	// Open decrypts a result of Seal for the same owner. It is called while rows are read,
	// which occupies a connection, so it must not use the database.
	Open(sealed []byte, owner string) ([]byte, error)
	// Load reads the keys of Open from the database.
	Load(ctx context.Context) error
	// Verify returns relay.KindUnavailable if the keys of this database cannot decrypt a result
	// of Seal: the database may have been replaced after Seal loaded its keys. Verify runs in
	// the transaction that saves the result.
	Verify(ctx context.Context, tx *Tx, sealed []byte, owner string) error
}

// SetSealer sets the Sealer of Sealed columns. Without a Sealer they are stored unencrypted.
// SetSealer must be called before other goroutines use the DB.
func (d *DB) SetSealer(s Sealer) { d.keys = s }

// Sealed returns an encrypted column of text or bytes, as a parameter or as a destination. As
// a destination, column is a pointer or a sql.Scanner. Encrypting a value twice gives different
// results, so a sealed column can neither be compared nor searched. An empty value stays
// empty.
//
// A sealed value opens only in its table and in rows of its owner, so that nobody with write
// access to the database can read a secret by copying it to another account. The owner is a
// value, or a pointer to a column that is read before this one.
func Sealed(column any, table string, owner any) sql.Scanner {
	return &sealedColumn{plain: column, table: table, owner: owner}
}

// SealedOr returns a Sealed column for lists. A value that cannot be decrypted is not an error: it sets
// undecryptable and leaves the column unchanged. Such a record must not be saved without the value.
func SealedOr(undecryptable *bool, column any, table string, owner any) sql.Scanner {
	return &sealedColumn{plain: column, table: table, owner: owner, undecryptable: undecryptable}
}

// SealedDoc reads two columns: the owner of a row, and its document, a Sealed column.
func SealedDoc[T any](v *T, table string) []any {
	var owner relay.AccountID
	return []any{&owner, Sealed(JSON(v), table, &owner)}
}

// SealedText reads two columns: the owner of a row, and a Sealed text.
func SealedText(table string) func(text *string) []any {
	return func(text *string) []any {
		var owner relay.AccountID
		return []any{&owner, Sealed(text, table, &owner)}
	}
}

type sealedColumn struct {
	plain any
	table string
	owner any

	undecryptable *bool // set by SealedOr
	// List sets these before it reads the column.
	sealer Sealer
	final  bool // the keys were just loaded from the database
}

// ownerName returns the owner for Seal and Open. It contains the table.
func (s *sealedColumn) ownerName() string {
	return fmt.Sprint(s.table, " of ", reflect.Indirect(reflect.ValueOf(s.owner)))
}

// sealedPrefix is the prefix of a sealed value, which is in base64.
const sealedPrefix = "sealed:"

type sealedValue struct {
	sealed []byte
	owner  string
}

// sealedValues are the first and the last value that a transaction has sealed. If both open
// with the keys of the database, the values between them open too.
type sealedValues []sealedValue

func (s *sealedValues) add(values ...sealedValue) {
	for _, v := range values {
		if len(*s) < 2 {
			*s = append(*s, v)
		} else {
			(*s)[1] = v
		}
	}
}

func (s *sealedValues) seal(sealer Sealer, text, owner string) (string, error) {
	if sealer == nil || text == "" {
		return text, nil
	}
	b, err := sealer.Seal([]byte(text), owner)
	if err != nil {
		return "", err
	}
	s.add(sealedValue{b, owner})
	return sealedPrefix + base64.RawStdEncoding.EncodeToString(b), nil
}

// verifySealed adds a check to a transaction: it fails if the database lacks the keys of the
// values that the transaction seals.
func (d *DB) verifySealed(do txFunc) txFunc {
	return func(ctx context.Context, tx *Tx) error {
		if err := do(ctx, tx); err != nil {
			return err
		}
		for _, v := range tx.sealed {
			if err := d.keys.Verify(ctx, tx, v.sealed, v.owner); err != nil {
				return err
			}
		}
		return nil
	}
}

func seals(args []any) bool {
	return slices.ContainsFunc(args, func(a any) bool {
		switch a := a.(type) {
		case *sealedColumn:
			return true
		case *Batch:
			return slices.ContainsFunc(a.columns, func(c batchColumn) bool { return c.sealed })
		}
		return false
	})
}

// Scan reads the column.
func (s *sealedColumn) Scan(column any) error {
	stored, err := bytesOf(column)
	if err != nil {
		return err
	}
	plain, err := s.open(stored)
	if err != nil && s.undecryptable != nil && s.final {
		*s.undecryptable = true
		return nil
	}
	if err != nil {
		return err
	}
	if target, ok := s.plain.(sql.Scanner); ok {
		return target.Scan(plain)
	}
	switch target := reflect.ValueOf(s.plain).Elem(); target.Kind() {
	case reflect.String:
		target.SetString(string(plain))
	default:
		target.SetBytes(slices.Clone(plain))
	}
	return nil
}

// open returns the value of a column, or relay.ErrUndecryptable if it cannot be decrypted.
func (s *sealedColumn) open(stored []byte) ([]byte, error) {
	encoded, sealed := strings.CutPrefix(string(stored), sealedPrefix)
	if !sealed || s.sealer == nil {
		return stored, nil
	}
	b, err := base64.RawStdEncoding.DecodeString(encoded)
	if err == nil {
		b, err = s.sealer.Open(b, s.ownerName())
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", relay.ErrUndecryptable, err)
	}
	return b, nil
}
