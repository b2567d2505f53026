package redisstore

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
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
	calls, of := claims(accounts, waiting, now, until, limit)
	if len(calls) == 0 {
		return nil, nil
	}
	out, err := s.db.eval(ctx, s.claim, calls)
	if err != nil {
		return nil, wrap("messages: claim", err)
	}
	ms, err := s.claimed(ctx, of, out)
	return ms, wrap("messages: claim", err)
}

// claimed reads the messages that were claimed: {id, record, …} of each account.
func (s *Messages) claimed(ctx context.Context, of []account.ID, out []*redis.Cmd) (list []message.Message, err error) {
	texts := make([]*redis.SliceCmd, len(out))
	_, err = s.db.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, c := range out {
			var ids []string
			for _, reply := range slice(c.Val()) {
				ids = append(ids, fmt.Sprint(slice(reply)[0]))
			}
			if len(ids) > 0 {
				texts[i] = p.HMGet(ctx, keyMessages(of[i]), ids...)
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for i, c := range out {
		for k, reply := range slice(c.Val()) {
			fields := slice(reply)
			m, err := decodeMessage(slices.Insert(fields, 1, texts[i].Val()[k]))
			if err != nil {
				return list, err
			}
			list = append(list, m)
		}
	}
	return list, nil
}

// claims shares a limit among the accounts that wait.
func claims(accounts []account.ID, waiting []*redis.IntCmd, now, until time.Time, limit int) (calls []call, of []account.ID) {
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
			keys: []string{keyMessagesDue(accounts[i]), keyMessageParts(accounts[i])},
			args: []any{now.UnixMilli(), until.UnixMilli(), share},
		})
		of = append(of, accounts[i])
	}
	return calls, of
}

// Begin writes down that parts are about to be handed to a carrier.
func (s *Messages) Begin(ctx context.Context, starts []message.Start) ([][]int, error) {
	calls, of := beginnings(starts)
	out, err := s.db.eval(ctx, s.begin, calls)
	if err != nil {
		return nil, wrap("messages: begin", err)
	}
	begun := make([][]int, len(starts))
	for c, answer := range out {
		for k, places := range slice(answer.Val()) {
			i := of[c][k]
			for _, place := range slice(places) {
				if at, ok := place.(int64); ok && at > 0 && int(at) <= len(starts[i].Parts) {
					begun[i] = append(begun[i], starts[i].Parts[at-1])
				}
			}
		}
	}
	return begun, nil
}

// alike is what starts have in common that go in one call.
type alike struct {
	account account.ID
	carrier string
	now     int64
	until   int64
}

// beginnings are calls that differ from all others in their name, and which
// starts each is for.
func beginnings(starts []message.Start) (calls []call, of [][]int) {
	name := strconv.FormatUint(rand.Uint64(), 36)
	of = groups(starts, func(st *message.Start) alike {
		return alike{st.Account, st.Carrier, st.Now.UnixMilli(), st.Until.UnixMilli()}
	})
	for _, places := range of {
		first := &starts[places[0]]
		acct := first.Account
		c := call{
			keys: []string{keyMessagesDue(acct), keyMessagesPending(acct), keyMessageParts(acct)},
			args: []any{first.Carrier, first.Now.UnixMilli(), first.Until.UnixMilli(), name},
		}
		for _, i := range places {
			st := &starts[i]
			c.args = append(c.args, int64(st.ID), flag(st.Again), len(st.Parts))
			for _, n := range st.Parts {
				c.args = append(c.args, st.ID.String()+"/"+strconv.Itoa(n))
			}
		}
		calls = append(calls, c)
	}
	return calls, of
}

// Settle records what carriers said.
func (s *Messages) Settle(ctx context.Context, outcomes []message.Outcome) ([]message.Message, error) {
	changes := make([]change, len(outcomes))
	for i := range outcomes {
		o := &outcomes[i]
		changes[i] = change{
			part: o.PartRef, now: o.At, at: o.At, state: o.State, carrier: o.Carrier, ref: o.Ref, reason: o.Reason, again: o.Again,
		}
		if o.Refund {
			var err error
			if changes[i].refund, err = refundNote(o.ID+message.ID(o.Part), o.At.UnixMilli()); err != nil {
				return nil, err
			}
		}
	}
	return s.change(ctx, "messages: settle", changes)
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

// settlements are calls that record changes, those of a message together.
func (s *Messages) settlements(changes []change) []call {
	of := make(map[message.Ref][]*change, len(changes))
	var refs []message.Ref
	for i := range changes {
		ref := changes[i].part.Ref
		if of[ref] == nil {
			refs = append(refs, ref)
		}
		of[ref] = append(of[ref], &changes[i])
	}
	var calls []call
	for _, places := range groups(refs, func(r *message.Ref) account.ID { return r.Account }) {
		calls = append(calls, s.settlement(refs, places, of))
	}
	return calls
}

func (s *Messages) settlement(refs []message.Ref, places []int, of map[message.Ref][]*change) call {
	acct := refs[places[0]].Account
	c := call{keys: []string{
		keyMessagesDue(acct), keyMessagesPending(acct), keyMessagesEnded(acct),
		keyMessagesUntold(acct), keyCredit(acct), keyCreditEntries(acct),
		keyMessages(acct), keyMessageParts(acct), keyMessageNotes(acct),
	}}
	var last time.Time
	c.args = []any{nil, creditKept}
	for _, i := range places {
		ref := refs[i]
		c.args = append(c.args, int64(ref.ID), len(of[ref]), of[ref][0].now.UnixMilli())
		for _, ch := range of[ref] {
			if ch.now.After(last) {
				last = ch.now
			}
			c.args = append(c.args, ch.part.Part, string(ch.state), ch.at.UnixMilli(), ch.carrier, ch.ref, ch.reason, ch.line,
				millis(ch.again), ch.refund)
		}
	}
	c.args[0] = s.till(last)
	return c
}

// change records changes and returns the messages that want reports.
func (s *Messages) change(ctx context.Context, noun string, changes []change) ([]message.Message, error) {
	out, err := s.db.eval(ctx, s.settle, s.settlements(changes))
	if err != nil {
		return nil, wrap(noun, err)
	}
	return decodeReplies(out)
}

// Renew moves the end of leases.
func (s *Messages) Renew(ctx context.Context, refs []message.Ref, until time.Time) error {
	return s.moveDue(ctx, "messages: renew", refs, until)
}

// Release gives leases back unused.
func (s *Messages) Release(ctx context.Context, refs []message.Ref, due time.Time) error {
	return s.moveDue(ctx, "messages: release", refs, due)
}

// moveDue moves the time when messages are due, of those of which a part waits.
func (s *Messages) moveDue(ctx context.Context, noun string, refs []message.Ref, to time.Time) error {
	of := make(map[account.ID][]redis.Z)
	for _, r := range refs {
		of[r.Account] = append(of[r.Account], redis.Z{Score: float64(to.UnixMilli()), Member: int64(r.ID)})
	}
	if len(of) == 0 {
		return nil
	}
	_, err := s.db.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		for acct, members := range of {
			p.ZAddXX(ctx, keyMessagesDue(acct), members...)
		}
		return nil
	})
	return wrap(noun, err)
}
