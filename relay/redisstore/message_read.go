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

// load reads messages in one round trip, in the order of refs; those that are
// gone are left out.
func (s *Messages) load(ctx context.Context, refs []message.Ref) ([]message.Message, error) {
	if len(refs) == 0 {
		return nil, nil
	}
	cmds := make([]*redis.MapStringStringCmd, len(refs))
	_, err := s.db.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, r := range refs {
			cmds[i] = p.HGetAll(ctx, keyMessage(r.Account, r.ID))
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	out := make([]message.Message, 0, len(refs))
	for _, c := range cmds {
		if len(c.Val()) == 0 {
			continue
		}
		m, err := decodeMessage(c.Val())
		if err != nil {
			return nil, err
		}
		out = append(out, m)
	}
	return out, nil
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
		},
		args: []any{int64(entry), keyMessages(acct), now.UnixMilli(), s.retention(), note, creditKept},
	}})
	if err != nil {
		return wrap(noun+": delete", err)
	}
	if removed, _ := out[0].Int(); removed == 0 {
		return relay.Errorf(relay.KindNotFound, "%s: not pending", noun)
	}
	return nil
}
