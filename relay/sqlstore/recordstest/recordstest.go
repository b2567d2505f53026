// Package recordstest opens the record store for tests of other packages.
package recordstest

import (
	"testing"
	"time"

	"github.com/penstock/penstock/relay/sqlstore"
	"github.com/penstock/penstock/relay/sqlstore/records"
	"github.com/penstock/penstock/relay/sqlstore/sqltest"
)

// Open opens records in a SQLite database of the test's own.
func Open(t testing.TB) *records.Records {
	t.Helper()
	return OpenAt(t, time.Now)
}

// OpenAt is Open with a clock of the test's own.
func OpenAt(t testing.TB, now func() time.Time) *records.Records {
	t.Helper()
	return records.New(sqltest.Open(t, sqlstore.Options{Now: now}))
}

// OpenURL opens records in a PostgreSQL database.
func OpenURL(t testing.TB, url string) *records.Records {
	t.Helper()
	return records.New(sqltest.Open(t, sqlstore.Options{URL: url}))
}
