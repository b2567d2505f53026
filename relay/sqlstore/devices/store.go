package devices

import (
	"context"
	"time"

	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/sqlstore"
)

// Store keeps the records of the IoT domain.
type Store struct{ db *sqlstore.DB }

// New returns the store in a database.
func New(db *sqlstore.DB) *Store { return &Store{db: db} }

// typesVersion counts the changes of sensor types.
const typesVersion = "iot/types"

// versionOf names the version of an account's records.
func versionOf(acct account.ID) string { return "iot/" + acct.String() }

// Versions returns a number per account that changes with every change that
// frames of the account have to notice.
func (s *Store) Versions(ctx context.Context, accts []account.ID) (map[account.ID]int64, error) {
	names := make([]string, 0, len(accts)+1)
	for _, acct := range accts {
		names = append(names, versionOf(acct))
	}
	all, err := sqlstore.Versions(ctx, s.db, append(names, typesVersion))
	if err != nil {
		return nil, err
	}
	out := make(map[account.ID]int64, len(accts))
	for _, acct := range accts {
		out[acct] = all[versionOf(acct)]<<20 + all[typesVersion]
	}
	return out, nil
}

// write runs a transaction that counts a version up, last of all.
func (s *Store) write(ctx context.Context, noun, version string, do func(ctx context.Context, tx *sqlstore.Tx) error) error {
	return s.db.Write(ctx, noun, func(ctx context.Context, tx *sqlstore.Tx) error {
		if err := do(ctx, tx); err != nil {
			return err
		}
		return tx.Bump(ctx, version)
	})
}

// change saves what change makes of a document of an account.
func change[T any](ctx context.Context, s *Store, t sqlstore.Documents[T], acct account.ID, id string, change func(*T) error) (out T, err error) {
	err = s.db.Write(ctx, t.Noun+" "+id, func(ctx context.Context, tx *sqlstore.Tx) error {
		var changed bool
		var err error
		if out, changed, err = t.Change(ctx, tx, acct, id, change); err != nil || !changed {
			return err
		}
		return tx.Bump(ctx, versionOf(acct))
	})
	return out, err
}

// nanos is a time in nanoseconds since 1970, 0 for the zero time.
func nanos(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}
