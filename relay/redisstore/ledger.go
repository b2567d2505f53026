package redisstore

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/ledger"
)

// Ledgers keeps ledgers, tokens and entries; it is a ledger.Store.
type Ledgers struct{ db *DB }

// Ledgers returns the store of ledgers.
func (d *DB) Ledgers() *Ledgers { return &Ledgers{db: d} }

// Put saves a ledger as it is declared. Its hash counts only if it has none.
func (s *Ledgers) Put(ctx context.Context, acct account.ID, l ledger.Ledger) error {
	if err := s.db.rdb.HSetNX(ctx, keyLedgerHashes(acct), l.ID, l.Hash).Err(); err != nil {
		return wrap("ledger "+l.ID, err)
	}
	return wrap("ledger "+l.ID, setField(ctx, s.db.rdb, keyLedgers(acct), l.ID, l))
}

// deleteLedger forgets the declaration of a ledger without entries.
//
//	KEYS  1 ledgers  2 log
//	ARGV  1 id
//	result 1 gone, 0 there was none, -1 it has entries
func deleteLedger() *redis.Script {
	return redis.NewScript(`
if tonumber(redis.call('HGET', KEYS[2], 'entries') or 0) > 0 then return -1 end
return redis.call('HDEL', KEYS[1], ARGV[1])`)
}

// Delete forgets a ledger; relay.KindConflict if it has entries, which nothing
// removes, relay.KindNotFound if there is none.
func (s *Ledgers) Delete(ctx context.Context, acct account.ID, id string) error {
	out, err := s.db.eval(ctx, deleteLedger(), []call{{
		keys: []string{keyLedgers(acct), keyLedgerLog(acct, id)}, args: []any{id},
	}})
	if err != nil {
		return wrap("ledger "+id, err)
	}
	switch n, err := out[0].Int(); {
	case err != nil:
		return wrap("ledger "+id, err)
	case n < 0:
		return relay.Errorf(relay.KindConflict, "ledger %s: it has a history", id)
	case n == 0:
		return wrap("ledger "+id, redis.Nil)
	}
	return nil
}

// Ledgers lists an account's ledgers by id.
func (s *Ledgers) Ledgers(ctx context.Context, acct account.ID) ([]ledger.Ledger, error) {
	hashes, err := s.db.rdb.HGetAll(ctx, keyLedgerHashes(acct)).Result()
	if err != nil {
		return nil, wrap("ledgers", err)
	}
	byID, err := fields[ledger.Ledger](ctx, s.db, "ledger", keyLedgers(acct))
	if err != nil {
		return nil, err
	}
	all := make([]ledger.Ledger, 0, len(byID))
	for id, l := range byID {
		l.Hash = hashes[id]
		all = append(all, l)
	}
	slices.SortFunc(all, func(a, b ledger.Ledger) int { return cmp.Compare(a.ID, b.ID) })
	return all, nil
}

// Keyset loads an account's wrapped keyset.
func (s *Ledgers) Keyset(ctx context.Context, acct account.ID) ([]byte, error) {
	b, err := s.db.rdb.Get(ctx, keyLedgerKeyset(acct)).Bytes()
	return b, wrap("keyset", err)
}

// replaceString saves a string if it is still what it was.
//
//	KEYS  1 the string
//	ARGV  1 what it was, empty for none  2 what it shall be
//	result 1 saved, 0 changed meanwhile
func replaceString() *redis.Script {
	return redis.NewScript(`
if (redis.call('GET', KEYS[1]) or '') ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[2])
return 1`)
}

// PutKeyset replaces an account's wrapped keyset.
func (s *Ledgers) PutKeyset(ctx context.Context, acct account.ID, was, is []byte) error {
	out, err := s.db.eval(ctx, replaceString(), []call{{
		keys: []string{keyLedgerKeyset(acct)}, args: []any{string(was), string(is)},
	}})
	if err != nil {
		return wrap("keyset", err)
	}
	if n, _ := out[0].Int(); n == 0 {
		return relay.Errorf(relay.KindConflict, "keyset: somebody else was faster")
	}
	return nil
}

// Secret loads something sealed.
func (s *Ledgers) Secret(ctx context.Context, acct account.ID, name string) ([]byte, error) {
	b, err := s.db.rdb.HGet(ctx, keyLedgerSecrets(acct), name).Bytes()
	return b, wrap("secret "+name, err)
}

// KeepSecret saves something sealed unless there is one of the name.
func (s *Ledgers) KeepSecret(ctx context.Context, acct account.ID, name string, sealed []byte) ([]byte, error) {
	if err := s.db.rdb.HSetNX(ctx, keyLedgerSecrets(acct), name, sealed).Err(); err != nil {
		return nil, wrap("secret "+name, err)
	}
	return s.Secret(ctx, acct, name)
}

// SetPrivate keeps a job's sealed private token for a time.
func (s *Ledgers) SetPrivate(ctx context.Context, acct account.ID, jobID string, sealed []byte, keep time.Duration) error {
	return wrap("private token", s.db.rdb.Set(ctx, keyLedgerPrivate(acct, jobID), sealed, keep).Err())
}

// Private loads a job's sealed private token.
func (s *Ledgers) Private(ctx context.Context, acct account.ID, jobID string) ([]byte, error) {
	b, err := s.db.rdb.Get(ctx, keyLedgerPrivate(acct, jobID)).Bytes()
	return b, wrap("private token", err)
}

// SetHome notes whose a token is.
func (s *Ledgers) SetHome(ctx context.Context, tokenID string, acct account.ID) error {
	return wrap("token", s.db.rdb.Set(ctx, keyLedgerHome(tokenID), acct.String(), 0).Err())
}

// Home tells whose a token is.
func (s *Ledgers) Home(ctx context.Context, tokenID string) (account.ID, error) {
	text, err := s.db.rdb.Get(ctx, keyLedgerHome(tokenID)).Result()
	if err != nil {
		return 0, wrap("token", err)
	}
	n, err := strconv.ParseInt(text, 10, 64)
	return account.ID(n), wrap("token: account", err)
}
