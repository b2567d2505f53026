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

// Sealer encrypts what the database must not show. Seal is called in transactions, so it
// must not write to the database.
type Sealer interface {
	// Seal encrypts for an owner.
	Seal(plain []byte, owner string) ([]byte, error)
	// Open decrypts what Seal encrypted for the same owner. It is called while rows are
	// read, which hold a connection, so it does not use the database.
	Open(sealed []byte, owner string) ([]byte, error)
	// Load reads the keys of Open from the database.
	Load(ctx context.Context) error
	// Verify reports, in the transaction that saves what Seal has returned, whether that
	// opens with the keys of this database: it may have replaced the one that the keys of
	// Seal are from. The error is relay.KindUnavailable.
	Verify(ctx context.Context, tx *Tx, sealed []byte, owner string) error
}

// SetSealer sets what encrypts the columns that are Sealed. Without one they are kept as
// they are. It is called before other goroutines use the DB.
func (d *DB) SetSealer(s Sealer) { d.sealed = s }

// Sealed is a column of text or bytes that the database has encrypted: a parameter, or,
// of a pointer or a sql.Scanner, where a column is read to. Each encryption of a value is
// another one, so a sealed column can neither be compared nor searched. An empty value
// stays empty.
//
// The value opens only in the table, and in rows of the owner, it was sealed for: whoever
// writes to the database cannot read a secret by copying it to an account of his own. The
// owner is a value, or a pointer to a column that is read before this one.
func Sealed(column any, table string, owner any) sql.Scanner {
	return &sealedColumn{plain: column, table: table, owner: owner}
}

// SealedOr is Sealed for lists, which one value that does not open must not end: it sets
// unopened and leaves the column as it is. A record with such a value must not be saved
// without it.
func SealedOr(unopened *bool, column any, table string, owner any) sql.Scanner {
	return &sealedColumn{plain: column, table: table, owner: owner, unopened: unopened}
}

// SealedDoc reads two columns: the owner of a row, and its document, which is Sealed.
func SealedDoc[T any](v *T, table string) []any {
	var owner relay.AccountID
	return []any{&owner, Sealed(JSON(v), table, &owner)}
}

// SealedText reads two columns: the owner of a row, and a text that is Sealed.
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

	unopened *bool // of SealedOr
	// Where a column is read:
	sealer Sealer
	// final means that the keys were loaded from the database.
	final bool
}

// ownerName names the table and the owner, for Sealer.
func (s *sealedColumn) ownerName() string {
	return fmt.Sprint(s.table, " of ", reflect.Indirect(reflect.ValueOf(s.owner)))
}

// sealedPrefix begins a value that is sealed; base64 follows.
const sealedPrefix = "sealed:"

// sealedValue is a value that a Sealer has sealed for an owner.
type sealedValue struct {
	sealed []byte
	owner  string
}

// sealedValues are the first and the last value that a transaction has sealed. If both open
// with the keys of the database, so do those between them.
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

// seal returns a text as it is kept, and adds it to the sealed values.
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

// verified is a transaction that fails if the database lacks the keys of what it seals.
func (d *DB) verified(do work) work {
	return func(ctx context.Context, tx *Tx) error {
		if err := do(ctx, tx); err != nil {
			return err
		}
		for _, v := range tx.sealed {
			if err := d.sealed.Verify(ctx, tx, v.sealed, v.owner); err != nil {
				return err
			}
		}
		return nil
	}
}

// seals reports whether arguments of a statement are Sealed.
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
	if err != nil && s.unopened != nil && s.final {
		*s.unopened = true
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

// open returns the value of a column; relay.ErrUnopened if it does not open.
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
		return nil, fmt.Errorf("%w: %w", relay.ErrUnopened, err)
	}
	return b, nil
}
