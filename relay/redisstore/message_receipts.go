package redisstore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/message"
)

const (
	// refKept is how long a carrier's id of a part is known: longer than networks
	// try to reach a phone.
	refKept = 14 * 24 * time.Hour
	// earlyKept is how long a receipt waits for the answer that it was faster
	// than.
	earlyKept = 24 * time.Hour
	// earlyBytes is what is kept of receipts for one id that nobody knows.
	earlyBytes = 16 << 10
)

// Bind keeps which part a carrier's ids name.
func (s *Messages) Bind(ctx context.Context, bindings []message.Binding) ([]message.Receipt, error) {
	var calls []call
	var of []message.PartRef
	for _, b := range bindings {
		for _, id := range b.IDs {
			calls = append(calls, call{
				keys: []string{keyMessageRef(b.Carrier, id)}, args: []any{partName(b.Part), refKept.Milliseconds()},
			})
			of = append(of, b.Part)
		}
	}
	out, err := s.db.eval(ctx, s.bind, calls)
	if err != nil {
		return nil, wrap("messages: bind", err)
	}
	var early []message.Receipt
	for i, c := range out {
		text, _ := c.Text()
		if text == "" {
			continue
		}
		var list []message.Receipt
		if err := json.Unmarshal([]byte("["+strings.TrimSuffix(text, ",")+"]"), &list); err != nil {
			return early, fmt.Errorf("messages: early receipt: %w", err)
		}
		for _, r := range list {
			r.Part, r.Found = of[i], true
			early = append(early, r)
		}
	}
	return early, nil
}

func partName(p message.PartRef) string {
	return p.Account.String() + "/" + p.ID.String() + "/" + strconv.Itoa(p.Part)
}

func parsePart(text string) (p message.PartRef, err error) {
	var acct, id int64
	if _, err = fmt.Sscanf(text, "%d/%d/%d", &acct, &id, &p.Part); err != nil {
		return p, fmt.Errorf("messages: part %q: %w", text, err)
	}
	p.Account, p.ID = account.ID(acct), message.ID(id)
	return p, nil
}

// Match finds the parts of receipts.
func (s *Messages) Match(ctx context.Context, receipts []message.Receipt) ([]message.Receipt, error) {
	known, err := s.known(ctx, receipts)
	if err != nil {
		return nil, err
	}
	var calls []call
	var of []int
	for i := range receipts {
		r := &receipts[i]
		if r.Found, err = name(r, known[i]); err != nil {
			return nil, err
		}
		if r.Found {
			continue
		}
		b, err := encodeRecord(r)
		if err != nil {
			return nil, fmt.Errorf("messages: receipt: encode: %w", err)
		}
		for _, id := range r.IDs {
			calls = append(calls, call{
				keys: []string{keyMessageRef(r.Carrier, id)}, args: []any{b, earlyKept.Milliseconds(), earlyBytes},
			})
			of = append(of, i)
		}
	}
	// It may have been bound meanwhile.
	out, err := s.db.eval(ctx, s.early, calls)
	if err != nil {
		return nil, wrap("messages: receipts", err)
	}
	for i, c := range out {
		text, _ := c.Text()
		if r := &receipts[of[i]]; !r.Found {
			if r.Found, err = name(r, text); err != nil {
				return nil, err
			}
		}
	}
	return receipts, nil
}

// name gives a receipt its part.
func name(r *message.Receipt, part string) (found bool, err error) {
	if part == "" {
		return false, nil
	}
	r.Part, err = parsePart(part)
	return err == nil, err
}

// known looks up the first id of each receipt that names a part.
func (s *Messages) known(ctx context.Context, receipts []message.Receipt) ([]string, error) {
	var cmds []*redis.StringCmd
	_, err := s.db.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i := range receipts {
			for _, id := range receipts[i].IDs {
				cmds = append(cmds, p.HGet(ctx, keyMessageRef(receipts[i].Carrier, id), "to"))
			}
		}
		return nil
	})
	if err != nil && !errors.Is(err, redis.Nil) {
		return nil, wrap("messages: receipts", err)
	}
	out := make([]string, len(receipts))
	for i := range receipts {
		for range receipts[i].IDs {
			if out[i] == "" {
				out[i] = cmds[0].Val()
			}
			cmds = cmds[1:]
		}
	}
	return out, nil
}

// Receive records receipts of parts; those that are not Found are passed over.
func (s *Messages) Receive(ctx context.Context, receipts []message.Receipt, now time.Time) ([]message.Message, error) {
	var c changes
	for i := range receipts {
		if r := &receipts[i]; r.Found {
			c.add(s, change{part: r.Part, now: now, at: r.At, state: r.State, line: r.Line})
		}
	}
	return s.change(ctx, "messages: receive", c)
}
