package redisstore

import (
	"context"
	"fmt"
	"strconv"

	"github.com/redis/go-redis/v9"

	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/ledger"
	"github.com/penstock/penstock/relay/ledger/merkle"
)

// Log tells how a ledger's log stands.
func (s *Ledgers) Log(ctx context.Context, acct account.ID, ledgerID string) (ledger.Log, error) {
	r, err := s.db.rdb.HGetAll(ctx, keyLedgerLog(acct, ledgerID)).Result()
	if err != nil {
		return ledger.Log{}, wrap("ledger "+ledgerID, err)
	}
	entries, _ := strconv.ParseInt(r["entries"], 10, 64) // none: 0
	sealed, _ := strconv.ParseInt(r["sealed"], 10, 64)
	return ledger.Log{Entries: entries, Sealed: sealed, Head: r["head"]}, nil
}

// Entries loads entries by their sequence.
func (s *Ledgers) Entries(ctx context.Context, acct account.ID, ledgerID string, sequences []int64) ([][]byte, error) {
	found, err := s.numbered(ctx, keyLedgerEntries(acct, ledgerID), sequences)
	if err != nil {
		return nil, wrap("ledger "+ledgerID+": entries", err)
	}
	out := make([][]byte, len(found))
	for i, v := range found {
		if text, ok := v.(string); ok {
			out[i] = []byte(text)
		}
	}
	return out, nil
}

// Hashes loads stored hashes by their index.
func (s *Ledgers) Hashes(ctx context.Context, acct account.ID, ledgerID string, indexes []int64) ([]merkle.Hash, error) {
	found, err := s.numbered(ctx, keyLedgerTree(acct, ledgerID), indexes)
	if err != nil {
		return nil, wrap("ledger "+ledgerID+": tree", err)
	}
	out := make([]merkle.Hash, len(found))
	for i, v := range found {
		if text, ok := v.(string); ok && len(text) == len(out[i]) {
			copy(out[i][:], text)
		}
	}
	return out, nil
}

// numbered reads fields of a hash that are named by numbers.
func (s *Ledgers) numbered(ctx context.Context, key string, numbers []int64) ([]any, error) {
	if len(numbers) == 0 {
		return nil, nil
	}
	names := make([]string, len(numbers))
	for i, n := range numbers {
		names[i] = strconv.FormatInt(n, 10)
	}
	return s.db.rdb.HMGet(ctx, key, names...).Result()
}

// EntriesOf lists the sequences of a token's entries.
func (s *Ledgers) EntriesOf(ctx context.Context, acct account.ID, tokenID string) ([]int64, error) {
	texts, err := s.db.rdb.LRange(ctx, keyLedgerOf(acct, tokenID), 0, -1).Result()
	if err != nil {
		return nil, wrap("token "+tokenID+": entries", err)
	}
	out := make([]int64, len(texts))
	for i, text := range texts {
		if out[i], err = strconv.ParseInt(text, 10, 64); err != nil {
			return nil, fmt.Errorf("token %s: entries: %w", tokenID, err)
		}
	}
	return out, nil
}

// extendLog adds hashes and a head that covers them, if nobody did meanwhile.
//
//	KEYS  1 log  2 tree
//	ARGV  1 entries sealed so far  2 and then  3 head  4 index of the first hash
//	      5… hashes
//	result 1 added, 0 the log had another size
func extendLog() *redis.Script {
	return redis.NewScript(`
if (redis.call('HGET', KEYS[1], 'sealed') or '0') ~= ARGV[1] then return 0 end
for i = 5, #ARGV do redis.call('HSET', KEYS[2], ARGV[4] + i - 5, ARGV[i]) end
redis.call('HSET', KEYS[1], 'sealed', ARGV[2], 'head', ARGV[3])
return 1`)
}

// Extend adds the hashes of entries and a head that covers them.
func (s *Ledgers) Extend(ctx context.Context, acct account.ID, ledgerID string, was int64, next ledger.Log, hashes []merkle.Hash) (bool, error) {
	args := []any{was, next.Sealed, next.Head, merkle.StoredAt(was)}
	for _, h := range hashes {
		args = append(args, string(h[:]))
	}
	out, err := s.db.eval(ctx, extendLog(), []call{{
		keys: []string{keyLedgerLog(acct, ledgerID), keyLedgerTree(acct, ledgerID)}, args: args,
	}})
	if err != nil {
		return false, wrap("ledger "+ledgerID+": extend", err)
	}
	n, err := out[0].Int()
	return n == 1, wrap("ledger "+ledgerID+": extend", err)
}
