package redisstore

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/credit"
	"github.com/penstock/penstock/relay/message"
)

// Messages keeps what accounts send; it is a message.Store, Work, Receipts and
// Reports.
type Messages struct {
	db *DB

	save, claim, begin, settle, remove, reads, forget, early, owned, told *redis.Script
}

// Messages returns the store of messages.
func (d *DB) Messages() *Messages {
	states := messageStates()
	return &Messages{
		db:   d,
		save: redis.NewScript(saveMessagesSource), claim: redis.NewScript(claimMessagesSource),
		begin: redis.NewScript(beginMessagesSource), settle: redis.NewScript(states + settleMessagesSource),
		remove: redis.NewScript(deletePartSource), reads: redis.NewScript(loadMessagesSource),
		forget: redis.NewScript(forgetMessagesSource), early: redis.NewScript(earlyRefSource),
		owned: redis.NewScript(ownEarlySource), told: redis.NewScript(toldMessagesSource),
	}
}

// Reserve takes ids in a row.
func (s *Messages) Reserve(ctx context.Context, n int) (message.ID, error) {
	last, err := s.db.rdb.IncrBy(ctx, keyMessageNext(), int64(n)).Result()
	return message.ID(last - int64(n) + 1), wrap("messages: reserve", err)
}

// Save charges for a batch, saves and queues it.
func (s *Messages) Save(ctx context.Context, b message.Batch) (message.Saved, error) {
	c, err := s.saving(&b)
	if err != nil {
		return message.Saved{}, err
	}
	first := redis.NewCmd(ctx, "SADD", keyMessageAccounts(), b.Account.String())
	out, err := s.db.eval(ctx, s.save, []call{c}, first)
	if err != nil {
		return message.Saved{}, wrap("messages: save", err)
	}
	reply, err := out[0].Slice()
	if err != nil || len(reply) == 0 {
		return message.Saved{}, wrap("messages: save", err)
	}
	switch reply[0] {
	case int64(0):
		return message.Saved{}, relay.Errorf(relay.KindNoCredit, "messages: account %s has less than %d credits", b.Account, b.Credits())
	case int64(2):
		return message.Saved{}, relay.Errorf(relay.KindConflict, "messages: the key belongs to another order")
	case int64(3):
		return message.Saved{Before: []byte(fmt.Sprint(reply[1]))}, nil
	}
	return message.Saved{}, nil
}

func (s *Messages) saving(b *message.Batch) (c call, err error) {
	acct, ms := b.Account, b.Messages
	if len(ms) == 0 {
		return c, relay.Errorf(relay.KindInvalid, "messages: none to save")
	}
	last := &ms[len(ms)-1]
	note, err := json.Marshal(creditNote{
		ID: "sent-" + ms[0].ID.String(), At: b.Now.UnixMilli(), Reason: credit.Sent,
		Reference: span(ms[0].ID, last.EntryID(len(last.Parts)-1)),
	})
	if err != nil {
		return c, fmt.Errorf("messages: encode: %w", err)
	}
	c.keys = []string{
		keyCredit(acct), keyCreditEntries(acct), keyMessagesDue(acct), keyMessagesPending(acct), keyMessagesAll(acct),
		keyMessageOnce(acct, b.Once.Key), keyMessages(acct), keyMessageParts(acct),
	}
	c.args = []any{b.Credits(), note, creditKept, b.Once.Order, b.Once.Answer, b.Once.Keep.Milliseconds()}
	for i := range ms {
		m := &ms[i]
		static, err := encodeRecord(m)
		if err != nil {
			return c, fmt.Errorf("message %s: encode: %w", m.ID, err)
		}
		due := m.ScheduledFor
		if !b.Lease.IsZero() && !due.After(b.Now) {
			due = b.Lease
		}
		c.args = append(c.args, int64(m.ID), len(m.Parts), due.UnixMilli(), messageHead(m), static)
	}
	return c, nil
}

// span names entries in a row.
func span(first, last message.ID) string {
	if first == last {
		return first.String()
	}
	return first.String() + "-" + last.String()
}

// refundNote is the entry of a part that is paid back.
func refundNote(entry message.ID, atMillis int64) ([]byte, error) {
	return json.Marshal(creditNote{
		ID: "refund-" + entry.String(), At: atMillis, Reason: credit.Refund, Reference: entry.String(),
	})
}

// till is until when a message is kept of which nothing waits from now on, in ms.
func (s *Messages) till(now time.Time) int64 { return now.Add(s.db.retention).UnixMilli() }

// accounts returns the accounts that have had messages.
func (s *Messages) accounts(ctx context.Context) ([]account.ID, error) {
	return s.db.accountsOf(ctx, keyMessageAccounts())
}

// accountsOf reads a set of account ids.
func (d *DB) accountsOf(ctx context.Context, key string) ([]account.ID, error) {
	members, err := d.rdb.SMembers(ctx, key).Result()
	if err != nil {
		return nil, err
	}
	ids := make([]account.ID, len(members))
	for i, m := range members {
		n, err := strconv.ParseInt(m, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("account %q: %w", m, err)
		}
		ids[i] = account.ID(n)
	}
	return ids, nil
}
