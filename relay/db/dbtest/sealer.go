package dbtest

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/penstock/penstock/relay/db"
	"github.com/penstock/penstock/relay/relaytest"
)

// Sealer is a db.Sealer that reverses the bytes of a value and prefixes its owner.
type Sealer struct{}

// Load does nothing.
func (Sealer) Load(context.Context) error { return nil }

// Seal returns the owner, "|" and the reversed value.
func (Sealer) Seal(plain []byte, owner string) ([]byte, error) {
	reversed := slices.Clone(plain)
	slices.Reverse(reversed)
	return append([]byte(owner+"|"), reversed...), nil
}

// Open returns a value that was sealed for the owner.
func (Sealer) Open(sealed []byte, owner string) ([]byte, error) {
	reversed, found := bytes.CutPrefix(sealed, []byte(owner+"|"))
	if !found {
		return nil, fmt.Errorf("%.40q was not sealed for %s", sealed, owner)
	}
	reversed = slices.Clone(reversed)
	slices.Reverse(reversed)
	return reversed, nil
}

// Verify accepts values that Open decrypts.
func (s Sealer) Verify(_ context.Context, _ *db.Tx, sealed []byte, owner string) error {
	_, err := s.Open(sealed, owner)
	return err
}

// Tamper changes a sealed column of the rows that a condition selects, so that the column cannot
// be decrypted. restore undoes the change.
func Tamper(t testing.TB, db *db.DB, table, column, condition string) (restore func()) {
	t.Helper()
	change := func(expression string) {
		t.Helper()
		n, err := db.Exec(t.Context(), "tamper", "UPDATE "+table+" SET "+column+" = "+expression+" WHERE "+condition)
		relaytest.NoError(t, err)
		if n == 0 {
			t.Fatalf("%s has no row with %s", table, condition)
		}
	}
	change("REPLACE(" + column + ", 'sealed:', 'sealed:AAAA')")
	return func() { t.Helper(); change("REPLACE(" + column + ", 'sealed:AAAA', 'sealed:')") }
}
