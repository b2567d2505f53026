package redisstore

import (
	"context"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/message"
)

// Claim leases messages that are due, each account's oldest first; the accounts
// share what is asked for.
func (s *Messages) Claim(ctx context.Context, now, until time.Time, limit int) ([]message.Message, error) {
	accounts, err := s.accounts(ctx)
	if err != nil || len(accounts) == 0 {
		return nil, wrap("messages: claim", err)
	}
	waiting := make([]*redis.IntCmd, len(accounts))
	to := strconv.FormatInt(now.UnixMilli(), 10)
	_, err = s.db.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, acct := range accounts {
			waiting[i] = p.ZCount(ctx, keyMessagesDue(acct), "-inf", to)
		}
		return nil
	})
	if err != nil {
		return nil, wrap("messages: claim", err)
	}
	calls := claims(accounts, waiting, now, until, limit)
	if len(calls) == 0 {
		return nil, nil
	}
	out, err := s.db.eval(ctx, s.claim, calls)
	if err != nil {
		return nil, wrap("messages: claim", err)
	}
	var list []message.Message
	for _, c := range out {
		replies, _ := c.Slice()
		for _, reply := range replies {
			m, there, err := decodeReply(reply)
			if err != nil {
				return list, err
			}
			if there {
				list = append(list, m)
			}
		}
	}
	return list, nil
}

// claims shares a limit among the accounts that wait.
func claims(accounts []account.ID, waiting []*redis.IntCmd, now, until time.Time, limit int) (calls []call) {
	order := make([]int, 0, len(accounts))
	for i := range accounts {
		if waiting[i].Val() > 0 {
			order = append(order, i)
		}
	}
	// Those who want least first: what they leave is for the others.
	slices.SortFunc(order, func(a, b int) int { return int(waiting[a].Val() - waiting[b].Val()) })
	for k, i := range order {
		share := min((limit+len(order)-k-1)/(len(order)-k), int(waiting[i].Val()))
		if share == 0 {
			break
		}
		limit -= share
		calls = append(calls, call{
			keys: []string{keyMessagesDue(accounts[i])},
			args: []any{now.UnixMilli(), until.UnixMilli(), share, keyMessages(accounts[i])},
		})
	}
	return calls
}

// Begin writes down that parts are about to be handed to a carrier.
func (s *Messages) Begin(ctx context.Context, starts []message.Start) ([][]int, error) {
	out, err := s.db.eval(ctx, s.begin, beginnings(starts))
	if err != nil {
		return nil, wrap("messages: begin", err)
	}
	begun := make([][]int, len(starts))
	for i, c := range out {
		parts, err := c.Int64Slice()
		if err != nil {
			return nil, wrap("messages: begin", err)
		}
		for _, n := range parts {
			begun[i] = append(begun[i], int(n))
		}
	}
	return begun, nil
}

// beginnings are calls that differ from all others in their name.
func beginnings(starts []message.Start) []call {
	calls := make([]call, len(starts))
	name := strconv.FormatUint(rand.Uint64(), 36)
	for i, st := range starts {
		acct := st.Account
		calls[i].keys = []string{keyMessage(acct, st.ID), keyMessagesDue(acct), keyMessagesPending(acct)}
		calls[i].args = []any{int64(st.ID), st.Carrier, st.Now.UnixMilli(), st.Until.UnixMilli(), flag(st.Again), name}
		for _, n := range st.Parts {
			calls[i].args = append(calls[i].args, n)
		}
	}
	return calls
}

// Settle records what carriers said.
func (s *Messages) Settle(ctx context.Context, outcomes []message.Outcome) ([]message.Message, error) {
	var c changes
	for i := range outcomes {
		o := &outcomes[i]
		var refund []byte
		if o.Refund {
			var err error
			if refund, err = refundNote(o.ID+message.ID(o.Part), o.At.UnixMilli()); err != nil {
				return nil, err
			}
		}
		c.add(s, change{
			part: o.PartRef, now: o.At, at: o.At, state: o.State, carrier: o.Carrier, ref: o.Ref, reason: o.Reason,
			again: o.Again, refund: refund,
		})
	}
	return s.change(ctx, "messages: settle", c)
}

// change is what shall happen to a part.
type change struct {
	part                       message.PartRef
	now, at                    time.Time // of the gateway, of the change
	state                      message.State
	carrier, ref, reason, line string
	again                      time.Time
	refund                     []byte // the entry, if the credit goes back
}

// changes are calls of the script that changes states, one a message.
type changes struct {
	calls []call
	of    map[message.Ref]int
}

// add puts a part's change to those of its message.
func (c *changes) add(s *Messages, ch change) {
	p := ch.part
	i, ok := c.of[p.Ref]
	if !ok {
		if c.of == nil {
			c.of = make(map[message.Ref]int)
		}
		i = len(c.calls)
		c.of[p.Ref] = i
		acct := p.Account
		c.calls = append(c.calls, call{
			keys: []string{
				keyMessage(acct, p.ID), keyMessagesDue(acct), keyMessagesPending(acct), keyMessagesEnded(acct),
				keyMessagesUntold(acct), keyCredit(acct), keyCreditEntries(acct),
			},
			args: []any{int64(p.ID), ch.now.UnixMilli(), s.retention(), creditKept},
		})
	}
	c.calls[i].args = append(c.calls[i].args,
		p.Part, string(ch.state), before(ch.state), ch.carrier, ch.ref, ch.reason, ch.line, millis(ch.again), ch.refund,
		flag(ch.state.Code() != 0), ch.at.UnixMilli())
}

// before lists the states that a state may come after, as the script reads them.
func before(state message.State) string {
	var b strings.Builder
	for _, s := range state.Before() {
		b.WriteString("," + string(s))
	}
	return b.String() + ","
}

// change runs the script and returns the messages that want reports.
func (s *Messages) change(ctx context.Context, noun string, c changes) ([]message.Message, error) {
	out, err := s.db.eval(ctx, s.settle, c.calls)
	if err != nil {
		return nil, wrap(noun, err)
	}
	var list []message.Message
	for _, reply := range out {
		m, there, err := decodeReply(reply.Val())
		if err != nil {
			return list, err
		}
		if there {
			list = append(list, m)
		}
	}
	return list, nil
}

// Renew moves the end of leases.
func (s *Messages) Renew(ctx context.Context, refs []message.Ref, until time.Time) error {
	return s.moveDue(ctx, "messages: renew", refs, until)
}

// Release gives leases back unused.
func (s *Messages) Release(ctx context.Context, refs []message.Ref, due time.Time) error {
	return s.moveDue(ctx, "messages: release", refs, due)
}

func (s *Messages) moveDue(ctx context.Context, noun string, refs []message.Ref, to time.Time) error {
	calls := make([]call, len(refs))
	for i, r := range refs {
		calls[i] = call{
			keys: []string{keyMessage(r.Account, r.ID), keyMessagesDue(r.Account)}, args: []any{int64(r.ID), to.UnixMilli()},
		}
	}
	_, err := s.db.eval(ctx, s.move, calls)
	return wrap(noun, err)
}
