package redisstore

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/message"
)

// Get loads a message.
func (s *Messages) Get(ctx context.Context, acct account.ID, id message.ID) (message.Message, error) {
	found, err := s.load(ctx, []message.Ref{{Account: acct, ID: id}})
	if err == nil && len(found) == 0 {
		err = redis.Nil
	}
	if err != nil {
		return message.Message{}, wrap("message "+id.String(), err)
	}
	return found[0], nil
}

// load reads messages, in the order of refs; those that are gone are left out.
func (s *Messages) load(ctx context.Context, refs []message.Ref) ([]message.Message, error) {
	var calls []call
	for len(refs) > 0 {
		acct, n := refs[0].Account, sameAccount(refs)
		c := call{keys: []string{keyMessages(acct), keyMessageParts(acct), keyMessageNotes(acct)}}
		for _, r := range refs[:n] {
			c.args = append(c.args, int64(r.ID))
		}
		calls, refs = append(calls, c), refs[n:]
	}
	out, err := s.db.eval(ctx, s.reads, calls)
	if err != nil {
		return nil, err
	}
	return decodeReplies(out)
}

// sameAccount is how many of the first messages are one account's, as many as go
// in one call.
func sameAccount(refs []message.Ref) (n int) {
	for n < min(len(refs), maxOfCall) && refs[n].Account == refs[0].Account {
		n++
	}
	return n
}

// Pending lists the pending parts of an account.
func (s *Messages) Pending(ctx context.Context, acct account.ID, offset, limit int) ([]message.Entry, int, error) {
	var total *redis.IntCmd
	var members *redis.StringSliceCmd
	_, err := s.db.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		total = p.ZCard(ctx, keyMessagesPending(acct))
		members = p.ZRange(ctx, keyMessagesPending(acct), int64(offset), int64(offset)+int64(limit)-1)
		return nil
	})
	if err != nil {
		return nil, 0, wrap("messages: pending", err)
	}
	entries, err := s.entries(ctx, acct, members.Val())
	return entries, int(total.Val()), wrap("messages: pending", err)
}

// entries reads parts that are named "<message id>/<part>", those of a message
// in a row.
func (s *Messages) entries(ctx context.Context, acct account.ID, members []string) ([]message.Entry, error) {
	var refs []message.Ref
	parts := make(map[message.ID][]int)
	for _, member := range members {
		text, part, _ := strings.Cut(member, "/")
		id, ok := message.ParseID(text)
		n, err := strconv.Atoi(part)
		if !ok || err != nil {
			return nil, relay.Errorf(relay.KindUnexpected, "entry %q", member)
		}
		if parts[id] == nil {
			refs = append(refs, message.Ref{Account: acct, ID: id})
		}
		parts[id] = append(parts[id], n)
	}
	ms, err := s.load(ctx, refs)
	var out []message.Entry
	for i := range ms {
		for _, n := range parts[ms[i].ID] {
			if n < len(ms[i].Parts) {
				out = append(out, ms[i].EntryOf(n))
			}
		}
	}
	return out, err
}

// Delete removes a pending part and refunds it.
func (s *Messages) Delete(ctx context.Context, acct account.ID, entry message.ID, now time.Time) error {
	noun := "message " + entry.String()
	note, err := refundNote(entry, now.UnixMilli())
	if err != nil {
		return err
	}
	out, err := s.db.eval(ctx, s.remove, []call{{
		keys: []string{
			keyMessagesPending(acct), keyMessagesDue(acct), keyMessagesEnded(acct), keyCredit(acct), keyCreditEntries(acct),
			keyMessageParts(acct),
		},
		args: []any{int64(entry), now.UnixMilli(), s.till(now), note, creditKept},
	}})
	if err != nil {
		return wrap(noun+": delete", err)
	}
	if removed, _ := out[0].Int(); removed == 0 {
		return relay.Errorf(relay.KindNotFound, "%s: not pending", noun)
	}
	return nil
}
