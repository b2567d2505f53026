package redisstore

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/ledger"
)

// Token loads a token.
func (s *Ledgers) Token(ctx context.Context, acct account.ID, tokenID string) (ledger.Token, error) {
	r, err := s.db.rdb.HMGet(ctx, keyLedgerToken(acct, tokenID), "static", "claimed", "appended").Result()
	if err == nil && r[0] == nil {
		err = redis.Nil
	}
	if err != nil {
		return ledger.Token{}, wrap("token", err)
	}
	return decodeToken(r)
}

func decodeToken(r []any) (t ledger.Token, err error) {
	static, _ := r[0].(string)
	if err := json.Unmarshal([]byte(static), &t); err != nil {
		return t, fmt.Errorf("token: decode: %w", err)
	}
	if n, ok := r[1].(string); ok {
		t.Claimed, err = strconv.ParseInt(n, 10, 64)
	}
	if list, ok := r[2].(string); ok && err == nil {
		err = json.Unmarshal([]byte("["+strings.TrimSuffix(list, ",")+"]"), &t.Appended)
	}
	if err != nil {
		return t, fmt.Errorf("token %s: decode: %w", t.ID, err)
	}
	return t, nil
}

// appendSource adds an entry to a ledger's log and to those of its token, whose
// keys are KEYS[2] entries, KEYS[3] log, KEYS[4] of the token.
const appendSource = `
local function append(entry)
  local n = redis.call('HINCRBY', KEYS[3], 'entries', 1) - 1
  redis.call('HSET', KEYS[2], n, entry)
  redis.call('RPUSH', KEYS[4], n)
end
`

// generateToken saves a new token and its entry.
//
//	KEYS  1 token  2 entries  3 log  4 of the token
//	ARGV  1 static JSON  2 entry
//	result 1 saved, 0 it exists
func generateToken() *redis.Script {
	return redis.NewScript(appendSource + `
if redis.call('EXISTS', KEYS[1]) == 1 then return 0 end
redis.call('HSET', KEYS[1], 'static', ARGV[1], 'claimed', 0)
append(ARGV[2])
return 1`)
}

// claimToken counts a claim and adds its entry, all or nothing. That a job has
// claimed is kept, so that it comes to the same when it runs again; one that was
// refused is refused again, since claims and time never come back.
//
//	KEYS  1 token  2 entries  3 log  4 of the token
//	ARGV  1 job id  2 most claims, 0 = any number  3 expired (1) or not (0)
//	      4 the entry before the claim's number  5 and after it
//	result claimed, exhausted or expired; nil if there is no such token
func claimToken() *redis.Script {
	return redis.NewScript(appendSource + `
local r = redis.call('HMGET', KEYS[1], 'static', 'claimed', 'job:' .. ARGV[1])
if not r[1] then return false end
if r[3] then return r[3] end
if ARGV[3] == '1' then return 'expired' end
if ARGV[2] ~= '0' and tonumber(r[2]) >= tonumber(ARGV[2]) then return 'exhausted' end
append(ARGV[4] .. redis.call('HINCRBY', KEYS[1], 'claimed', 1) .. ARGV[5])
redis.call('HSET', KEYS[1], 'job:' .. ARGV[1], 'claimed')
return 'claimed'`)
}

// annotateToken appends metadata and its entry, once for a job.
//
//	KEYS  1 token  2 entries  3 log  4 of the token
//	ARGV  1 job id  2 JSON object  3 entry
//	result 1 appended, 0 the job did before; nil if there is no such token
func annotateToken() *redis.Script {
	return redis.NewScript(appendSource + `
local r = redis.call('HMGET', KEYS[1], 'static', 'appended', 'job:' .. ARGV[1])
if not r[1] then return false end
if r[3] then return 0 end
redis.call('HSET', KEYS[1], 'appended', (r[2] or '') .. ARGV[2] .. ',', 'job:' .. ARGV[1], 'appended')
append(ARGV[3])
return 1`)
}

func tokenKeys(acct account.ID, t ledger.Token) []string {
	return []string{
		keyLedgerToken(acct, t.ID), keyLedgerEntries(acct, t.Ledger), keyLedgerLog(acct, t.Ledger), keyLedgerOf(acct, t.ID),
	}
}

// Generate saves a new token and its entry.
func (s *Ledgers) Generate(ctx context.Context, acct account.ID, t ledger.Token, entry []byte) error {
	static, err := encodeRecord(t)
	if err != nil {
		return fmt.Errorf("token %s: encode: %w", t.ID, err)
	}
	_, err = s.db.eval(ctx, generateToken(), []call{{keys: tokenKeys(acct, t), args: []any{static, entry}}})
	return wrap("token "+t.ID+": generate", err)
}

// Claim counts one claim of a token.
func (s *Ledgers) Claim(ctx context.Context, acct account.ID, c ledger.Claim) (ledger.ClaimResult, error) {
	out, err := s.db.eval(ctx, claimToken(), []call{{
		keys: tokenKeys(acct, c.Token),
		args: []any{c.JobID, c.Token.Limit, flag(!c.Token.Valid(c.Now)), c.Before, c.After},
	}})
	if err == nil {
		err = out[0].Err() // nil for a token that is not there
	}
	if err != nil {
		return "", wrap("token "+c.Token.ID+": claim", err)
	}
	text, err := out[0].Text()
	return ledger.ClaimResult(text), wrap("token "+c.Token.ID+": claim", err)
}

// Annotate appends metadata to a token.
func (s *Ledgers) Annotate(ctx context.Context, acct account.ID, a ledger.Annotation) error {
	out, err := s.db.eval(ctx, annotateToken(), []call{{
		keys: tokenKeys(acct, a.Token), args: []any{a.JobID, a.Metadata, a.Entry},
	}})
	if err == nil {
		err = out[0].Err()
	}
	return wrap("token "+a.Token.ID+": metadata", err)
}
