package redisstore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
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

// Bind keeps which part a carrier's ids name, and returns the receipts that came
// before.
func (s *Messages) Bind(ctx context.Context, bindings []message.Binding) ([]message.Receipt, error) {
	var calls []call
	var of []bound
	var early []*redis.BoolCmd
	_, err := s.db.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		for _, b := range bindings {
			for _, id := range b.IDs {
				key, part := keyMessageEarly(b.Carrier, id), partName(b)
				// From here on receipts find the part: those before are all there are.
				p.Set(ctx, keyMessageRef(b.Carrier, id), part, refKept)
				early = append(early, p.HExists(ctx, key, "list"))
				calls = append(calls, call{keys: []string{key}, args: []any{part}})
				of = append(of, bound{b.Part, b.Number, id})
			}
		}
		return nil
	})
	if err != nil {
		return nil, wrap("messages: bind", err)
	}
	n := 0
	for i, there := range early {
		if there.Val() {
			calls[n], of[n] = calls[i], of[i]
			n++
		}
	}
	return s.own(ctx, calls[:n], of[:n])
}

// own hands out early receipts to the parts that they are of.
func (s *Messages) own(ctx context.Context, calls []call, of []bound) (early []message.Receipt, err error) {
	out, err := s.db.eval(ctx, s.owned, calls)
	if err != nil {
		return nil, wrap("messages: bind", err)
	}
	for i, c := range out {
		text, _ := c.Text()
		var list []message.Receipt
		if err := json.Unmarshal([]byte("["+strings.TrimSuffix(text, ",")+"]"), &list); err != nil {
			return early, fmt.Errorf("messages: early receipt: %w", err)
		}
		for _, r := range list {
			if of[i].agrees(&r) {
				r.Part, r.Found = of[i].part, true
				early = append(early, r)
			}
		}
	}
	return early, nil
}

// bound is a part, its destination, and an id that names it.
type bound struct {
	part       message.PartRef
	number, id string
}

// agrees reports whether a receipt is about the part. Its first id is as the
// network wrote it; another may be that of another message, to another number.
func (b bound) agrees(r *message.Receipt) bool {
	if len(r.IDs) == 0 || b.id == r.IDs[0] || b.number == "" || len(r.Numbers) == 0 {
		return true
	}
	return slices.ContainsFunc(r.Numbers, func(number string) bool { return ending(number) == ending(b.number) })
}

// ending is what is the same in all ways to write a number.
func ending(number string) string {
	const subscriber = 7
	return number[max(0, len(number)-subscriber):]
}

func partName(b message.Binding) string {
	p := b.Part
	return p.Account.String() + "/" + p.ID.String() + "/" + strconv.Itoa(p.Part) + "/" + b.Number
}

// parsePart reads what partName writes.
func parsePart(text string) (p message.PartRef, number string, err error) {
	var acct, id int64
	if fields := strings.SplitN(text, "/", 4); len(fields) == 4 {
		number = fields[3]
	}
	if _, err = fmt.Sscanf(text, "%d/%d/%d", &acct, &id, &p.Part); err != nil {
		return p, "", fmt.Errorf("messages: part %q: %w", text, err)
	}
	p.Account, p.ID = account.ID(acct), message.ID(id)
	return p, number, nil
}

// Match finds the parts of receipts.
func (s *Messages) Match(ctx context.Context, receipts []message.Receipt) ([]message.Receipt, error) {
	known, err := s.known(ctx, receipts)
	if err != nil {
		return nil, err
	}
	var calls []call
	var of []int
	var ids []string
	for i := range receipts {
		r := &receipts[i]
		for k, id := range r.IDs {
			if err = name(r, id, known[i][k]); err != nil {
				return nil, err
			}
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
				keys: []string{keyMessageRef(r.Carrier, id), keyMessageEarly(r.Carrier, id)},
				args: []any{b, earlyKept.Milliseconds(), earlyBytes},
			})
			of, ids = append(of, i), append(ids, id)
		}
	}
	// It may have been bound meanwhile.
	out, err := s.db.eval(ctx, s.early, calls)
	if err != nil {
		return nil, wrap("messages: receipts", err)
	}
	for i, c := range out {
		text, _ := c.Text()
		if err = name(&receipts[of[i]], ids[i], text); err != nil {
			return nil, err
		}
	}
	return receipts, nil
}

// name gives a receipt the part that one of its ids names, if it has none yet.
func name(r *message.Receipt, id, text string) error {
	if text == "" || r.Found {
		return nil
	}
	part, number, err := parsePart(text)
	if err != nil {
		return err
	}
	if (bound{part, number, id}).agrees(r) {
		r.Part, r.Found = part, true
	}
	return nil
}

// known looks up what the ids of each receipt name.
func (s *Messages) known(ctx context.Context, receipts []message.Receipt) ([][]string, error) {
	var cmds []*redis.StringCmd
	_, err := s.db.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i := range receipts {
			for _, id := range receipts[i].IDs {
				cmds = append(cmds, p.Get(ctx, keyMessageRef(receipts[i].Carrier, id)))
			}
		}
		return nil
	})
	if err != nil && !errors.Is(err, redis.Nil) {
		return nil, wrap("messages: receipts", err)
	}
	out := make([][]string, len(receipts))
	for i := range receipts {
		for range receipts[i].IDs {
			out[i] = append(out[i], cmds[0].Val())
			cmds = cmds[1:]
		}
	}
	return out, nil
}

// Receive records receipts of parts; those that are not Found are passed over.
func (s *Messages) Receive(ctx context.Context, receipts []message.Receipt, now time.Time) ([]message.Message, error) {
	var changes []change
	for i := range receipts {
		if r := &receipts[i]; r.Found {
			changes = append(changes, change{part: r.Part, now: now, at: r.At, state: r.State, line: r.Line})
		}
	}
	return s.change(ctx, "messages: receive", changes)
}
