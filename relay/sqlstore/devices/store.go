package devices

import (
	"context"
	"time"

	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/iot"
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

// RulesVersionOf names the version of an account's rules.
func RulesVersionOf(acct account.ID) string { return "rules/" + acct.String() }

// Versions returns numbers per account that change with every change that frames
// of the account have to notice.
func (s *Store) Versions(ctx context.Context, accts []account.ID) (map[account.ID]iot.Version, error) {
	names := make([]string, 0, 2*len(accts)+1)
	for _, acct := range accts {
		names = append(names, versionOf(acct), RulesVersionOf(acct))
	}
	all, err := sqlstore.Versions(ctx, s.db, append(names, typesVersion))
	if err != nil {
		return nil, err
	}
	out := make(map[account.ID]iot.Version, len(accts))
	for _, acct := range accts {
		out[acct] = iot.Version{Records: all[versionOf(acct)]<<20 + all[typesVersion], Rules: all[RulesVersionOf(acct)]}
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

// change saves a document of an account as changed by the function.
func change[T any](ctx context.Context, s *Store, t sqlstore.Documents[T], acct account.ID, id string, change func(*T) error) (T, error) {
	return sqlstore.Transact(ctx, s.db, t.Noun+" "+id, func(ctx context.Context, tx *sqlstore.Tx) (T, error) {
		out, changed, err := t.Change(ctx, tx, acct, id, change)
		if err != nil || !changed {
			return out, err
		}
		return out, tx.Bump(ctx, versionOf(acct))
	})
}

// nanos is a time in nanoseconds since 1970, 0 for the zero time.
func nanos(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}
