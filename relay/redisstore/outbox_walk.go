package redisstore

import (
	"context"
	"slices"
	"strconv"

	"github.com/redis/go-redis/v9"

	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/outbox"
)

// walk goes through deliveries in the order of lists.
type walk interface {
	// next returns up to n more positions; none at the end.
	next(ctx context.Context, n int) ([]position, error)
}

// walk chooses how to go through what a filter may select, from a position on.
func (s *Outbox) walk(ctx context.Context, f outbox.Filter, from *position) (walk, error) {
	accounts := []account.ID{f.Account}
	if f.Account == 0 {
		var err error
		if accounts, err = s.accounts(ctx); err != nil {
			return nil, err
		}
	}
	if len(f.IDs) > 0 {
		return s.named(ctx, accounts, f.IDs, from)
	}
	m := &merged{db: s.db}
	for _, acct := range accounts {
		key := keyOutboxCreated(acct)
		if f.State != "" {
			key = keyOutboxState(acct, f.State)
		}
		m.lanes = append(m.lanes, newLane(acct, key, f, from))
	}
	return m, nil
}

// named is a walk over deliveries by their ids, in whichever account they are.
func (s *Outbox) named(ctx context.Context, accounts []account.ID, ids []string, from *position) (walk, error) {
	var ps []position
	for chunk := range slices.Chunk(ids, chunkSize) {
		for _, acct := range accounts {
			scores, err := s.db.rdb.ZMScore(ctx, keyOutboxCreated(acct), chunk...).Result()
			if err != nil {
				return nil, err
			}
			for i, ms := range scores {
				// A missing member has score 0, which no delivery was created at.
				if at := (position{int64(ms), chunk[i], acct}); ms > 0 && (from == nil || after(*from, at) < 0) {
					ps = append(ps, at)
				}
			}
		}
	}
	slices.SortFunc(ps, after)
	list := listed(slices.Compact(ps))
	return &list, nil
}

// listed is a walk over positions in memory.
type listed []position

func (l *listed) next(_ context.Context, n int) ([]position, error) {
	n = min(n, len(*l))
	out := (*l)[:n]
	*l = (*l)[n:]
	return out, nil
}

// merged is a walk over the sets of several accounts.
type merged struct {
	db    *DB
	lanes []*lane
}

func (m *merged) next(ctx context.Context, n int) ([]position, error) {
	out := make([]position, 0, n)
	for len(out) < n {
		if err := m.fill(ctx, n); err != nil {
			return nil, err
		}
		first := m.first()
		if first == nil {
			break
		}
		out = append(out, first.ahead[0])
		first.ahead = first.ahead[1:]
	}
	return out, nil
}

// fill reads on in every lane that has run dry, in one round trip.
func (m *merged) fill(ctx context.Context, n int) error {
	dry := slices.DeleteFunc(slices.Clone(m.lanes), func(l *lane) bool { return len(l.ahead) > 0 || l.done })
	for len(dry) > 0 {
		cmds := make([]*redis.ZSliceCmd, len(dry))
		_, err := m.db.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
			for i, l := range dry {
				cmds[i] = l.read(ctx, p, n)
			}
			return nil
		})
		if err != nil {
			return err
		}
		for i, l := range dry {
			l.take(cmds[i].Val())
		}
		dry = slices.DeleteFunc(dry, func(l *lane) bool { return len(l.ahead) > 0 || l.done })
	}
	return nil
}

// first returns the lane whose next position comes first; nil at the end.
func (m *merged) first() *lane {
	var best *lane
	for _, l := range m.lanes {
		if len(l.ahead) > 0 && (best == nil || after(l.ahead[0], best.ahead[0]) < 0) {
			best = l
		}
	}
	return best
}

// lane reads one account's set in chunks. Each chunk starts at the score where
// the last one ended, not at an offset: others add and remove meanwhile.
type lane struct {
	account account.ID
	key     string
	bounds  redis.ZRangeBy
	from    *position // what is at or before it has been seen
	same    int       // how many of those have its score
	ahead   []position
	done    bool
}

func newLane(acct account.ID, key string, f outbox.Filter, from *position) *lane {
	l := &lane{account: acct, key: key, from: from, bounds: redis.ZRangeBy{Min: "-inf", Max: "+inf"}}
	if !f.From.IsZero() {
		l.bounds.Min = strconv.FormatInt(f.From.UnixMilli(), 10)
	}
	top := int64(0)
	if !f.To.IsZero() {
		top = f.To.UnixMilli()
	}
	if from != nil && (top == 0 || from.ms < top) {
		top = from.ms
	}
	if top != 0 {
		l.bounds.Max = strconv.FormatInt(top, 10)
	}
	return l
}

func (l *lane) read(ctx context.Context, p redis.Pipeliner, n int) *redis.ZSliceCmd {
	l.bounds.Count = int64(n + l.same)
	return p.ZRevRangeByScoreWithScores(ctx, l.key, &l.bounds)
}

func (l *lane) take(zs []redis.Z) {
	l.done = int64(len(zs)) < l.bounds.Count
	for _, z := range zs {
		at := position{int64(z.Score), z.Member.(string), l.account}
		if l.from == nil || after(*l.from, at) < 0 {
			l.ahead = append(l.ahead, at)
		}
	}
	if len(zs) == 0 {
		return
	}
	last := zs[len(zs)-1]
	if len(l.ahead) > 0 {
		l.from = &position{int64(last.Score), last.Member.(string), l.account}
	}
	l.bounds.Max = strconv.FormatInt(int64(last.Score), 10)
	l.same = 0
	for _, z := range zs {
		if z.Score == last.Score {
			l.same++
		}
	}
}
