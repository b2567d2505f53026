package redisstore

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/credit"
)

// Credit keeps the credit of accounts; it is a credit.Store.
type Credit struct{ db *DB }

// Credit returns the store of credit.
func (d *DB) Credit() *Credit { return &Credit{db: d} }

const (
	// creditKept is how many changes of an account are kept for audits.
	creditKept = 100_000
	// creditOnce is how long the id of a change is known.
	creditOnce = 24 * time.Hour
)

// maxCredit keeps sums within what Lua's numbers hold exactly.
const maxCredit = 1 << 50

// creditSource changes an account's credit and adds the entry of that, for every
// script that moves credit together with what it pays for: keys of credit and
// entries, what is added, JSON of what else the entry holds, entries kept. It
// returns the entry's sequence and text; nil, and has changed nothing, if the
// balance would be below zero.
const creditSource = `
local function credit(key, entries, change, note, kept)
  local r = redis.call('HMGET', key, 'balance', 'last')
  local is, last = tonumber(r[1] or 0) + change, tonumber(r[2] or 0) + 1
  if is < 0 then return nil end
  local seq = string.format('%d', last)
  local entry = string.format('%d|%d|', change, is) .. note
  redis.call('HSET', key, 'balance', string.format('%d', is), 'last', seq)
  redis.call('HSET', entries, seq, entry)
  redis.call('HDEL', entries, string.format('%d', last - tonumber(kept)))
  return seq, entry
end
`

// changeCredit makes one change.
//
//	KEYS  1 credit  2 entries  3 the change's id
//	ARGV  1 how: add; set; open, which leaves alone what was opened
//	      2 credits  3 JSON of what else the entry holds  4 entries kept
//	      5 ms to know the id
//	result {1, sequence, entry}; {0} if the balance would be below zero, or
//	       there is nothing to do
func changeCredit() *redis.Script {
	return redis.NewScript(creditSource + `
local done = redis.call('GET', KEYS[3])
if done then return {1, tonumber(done), redis.call('HGET', KEYS[2], done) or ''} end
local was = redis.call('HGET', KEYS[1], 'balance')
if ARGV[1] == 'open' and was then return {0} end
local change = tonumber(ARGV[2])
if ARGV[1] ~= 'add' then change = change - tonumber(was or 0) end
local seq, entry = credit(KEYS[1], KEYS[2], change, ARGV[3], ARGV[4])
if not seq then return {0} end
redis.call('SET', KEYS[3], seq, 'PX', ARGV[5])
return {1, tonumber(seq), entry}`)
}

// creditNote is what an entry holds beside its numbers.
type creditNote struct {
	ID        string        `json:"id"`
	At        int64         `json:"at"` // ms
	Reason    credit.Reason `json:"reason"`
	Reference string        `json:"reference,omitempty"`
}

// Balance returns the credits an account has.
func (s *Credit) Balance(ctx context.Context, acct account.ID) (int64, error) {
	n, err := s.db.rdb.HGet(ctx, keyCredit(acct), "balance").Int64()
	if err = wrap("credit", err); relay.KindOf(err) == relay.KindNotFound {
		return 0, nil
	}
	return n, err
}

// Apply makes a change.
func (s *Credit) Apply(ctx context.Context, c credit.Change) (credit.Entry, error) {
	e, done, err := s.change(ctx, "add", c)
	if err == nil && !done {
		err = relay.Errorf(relay.KindNoCredit, "credit: account %s has less than %d", c.Account, -c.Credits)
	}
	return e, err
}

// Open gives an account its first credit.
func (s *Credit) Open(ctx context.Context, acct account.ID, credits int64, at time.Time) error {
	_, _, err := s.change(ctx, "open", credit.Change{
		ID: string(credit.Opened), Account: acct, Credits: credits, Reason: credit.Opened, At: at,
	})
	return err
}

// Set makes the balance what it is told.
func (s *Credit) Set(ctx context.Context, acct account.ID, credits int64, at time.Time) error {
	_, _, err := s.change(ctx, "set", credit.Change{
		ID: relay.NewID(at), Account: acct, Credits: credits, Reason: credit.Reset, At: at,
	})
	return err
}

func (s *Credit) change(ctx context.Context, how string, c credit.Change) (e credit.Entry, done bool, err error) {
	if c.Credits > maxCredit || c.Credits < -maxCredit {
		return e, false, relay.Invalid("credit", "There is no such amount.")
	}
	note, err := json.Marshal(creditNote{c.ID, c.At.UnixMilli(), c.Reason, c.Reference})
	if err != nil {
		return e, false, fmt.Errorf("credit: encode: %w", err)
	}
	out, err := s.db.eval(ctx, changeCredit(), []call{{
		keys: []string{keyCredit(c.Account), keyCreditEntries(c.Account), keyCreditOnce(c.Account, c.ID)},
		args: []any{how, c.Credits, note, creditKept, creditOnce.Milliseconds()},
	}})
	if err != nil {
		return e, false, wrap("credit", err)
	}
	reply, err := out[0].Slice()
	if err != nil || len(reply) < 3 {
		return e, false, wrap("credit", err)
	}
	e, err = creditEntry(fmt.Sprint(reply[1]), fmt.Sprint(reply[2]))
	return e, err == nil, err
}

// creditEntry reads "<change>|<balance>|<note>".
func creditEntry(seq, text string) (e credit.Entry, err error) {
	change, rest, _ := strings.Cut(text, "|")
	balance, note, _ := strings.Cut(rest, "|")
	var n creditNote
	s, err1 := strconv.ParseUint(seq, 10, 64)
	c, err2 := strconv.ParseInt(change, 10, 64)
	b, err3 := strconv.ParseInt(balance, 10, 64)
	if err = cmp.Or(err1, err2, err3, json.Unmarshal([]byte(note), &n)); err != nil {
		return e, fmt.Errorf("credit: entry %s: %w", seq, err)
	}
	return credit.Entry{
		Sequence: s, ID: n.ID, At: time.UnixMilli(n.At).UTC(), Credits: c, Balance: b, Reason: n.Reason, Reference: n.Reference,
	}, nil
}

// Entries lists changes, newest first.
func (s *Credit) Entries(ctx context.Context, acct account.ID, before uint64, limit int) ([]credit.Entry, error) {
	last, err := s.db.rdb.HGet(ctx, keyCredit(acct), "last").Uint64()
	if err = wrap("credit", err); relay.KindOf(err) == relay.KindNotFound {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	if before > 0 {
		last = min(last, before-1)
	}
	var wanted []string
	for seq := last; seq > 0 && len(wanted) < limit; seq-- {
		wanted = append(wanted, strconv.FormatUint(seq, 10))
	}
	if len(wanted) == 0 {
		return nil, nil
	}
	found, err := s.db.rdb.HMGet(ctx, keyCreditEntries(acct), wanted...).Result()
	if err != nil {
		return nil, wrap("credit: entries", err)
	}
	var out []credit.Entry
	for i, text := range found {
		if text == nil {
			break // what is older is not kept
		}
		e, err := creditEntry(wanted[i], fmt.Sprint(text))
		if err != nil {
			return nil, err
		}
		out = append(out, e)
	}
	return out, nil
}
