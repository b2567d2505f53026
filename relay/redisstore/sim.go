package redisstore

import (
	"context"
	"slices"

	"github.com/redis/go-redis/v9"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/sim"
)

// SIMs keeps SIMs; it is a sim.SIMs.
type SIMs struct{ db *DB }

// SIMs returns the store of SIMs.
func (d *DB) SIMs() *SIMs { return &SIMs{db: d} }

// Get loads a SIM.
func (s *SIMs) Get(ctx context.Context, acct account.ID, iccid sim.ICCID) (sim.SIM, error) {
	all, err := s.load(ctx, acct, []sim.ICCID{iccid})
	if err == nil && !all[0].there {
		err = wrap("SIM "+string(iccid), redis.Nil)
	}
	if err != nil {
		return sim.SIM{}, err
	}
	return all[0].SIM, nil
}

// GetMany loads the SIMs that exist.
func (s *SIMs) GetMany(ctx context.Context, acct account.ID, iccids []sim.ICCID) (map[sim.ICCID]sim.SIM, error) {
	all, err := s.load(ctx, acct, iccids)
	out := make(map[sim.ICCID]sim.SIM, len(all))
	for _, k := range all {
		if k.there {
			out[k.ICCID] = k.SIM
		}
	}
	return out, err
}

// ask reads SIMs in the order asked for, in one round trip.
func (s *SIMs) ask(ctx context.Context, acct account.ID, iccids []sim.ICCID) ([]*redis.StringSliceCmd, error) {
	cmds := make([]*redis.StringSliceCmd, len(iccids))
	_, err := s.db.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, iccid := range iccids {
			cmds[i] = redis.NewStringSliceCmd(ctx, "HGETALL", keySIM(acct, iccid))
			_ = p.Process(ctx, cmds[i])
		}
		return nil
	})
	return cmds, wrap("SIMs", err)
}

// load reads SIMs as they are kept, in the order asked for.
func (s *SIMs) load(ctx context.Context, acct account.ID, iccids []sim.ICCID) ([]kept, error) {
	cmds, err := s.ask(ctx, acct, iccids)
	if err != nil {
		return nil, err
	}
	out := make([]kept, len(iccids))
	for i, c := range cmds {
		k := &out[i]
		k.ICCID, k.pairs, k.there = iccids[i], c.Val(), len(c.Val()) > 0
		if !k.there {
			continue
		}
		if err := readSIM(&k.SIM, iccids[i], c.Val()); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// Change saves what change makes of a SIM.
func (s *SIMs) Change(ctx context.Context, acct account.ID, iccid sim.ICCID, change func(*sim.SIM) error) (sim.SIM, error) {
	var changed sim.SIM
	err := s.save(ctx, acct, []sim.ICCID{iccid}, func(k kept) (*sim.SIM, error) {
		if !k.there {
			return nil, wrap("SIM "+string(iccid), redis.Nil)
		}
		changed = k.SIM
		changed.Recipients = slices.Clone(k.Recipients)
		if err := change(&changed); err != nil {
			return nil, err
		}
		changed.ICCID, changed.Pool = k.ICCID, k.Pool
		return &changed, nil
	})
	if err != nil {
		return sim.SIM{}, err
	}
	return changed, nil
}

// Declare saves what an inventory says of SIMs.
func (s *SIMs) Declare(ctx context.Context, acct account.ID, all []sim.SIM, reset bool) error {
	for some := range slices.Chunk(all, maxCalls) {
		wanted := make(map[sim.ICCID]sim.SIM, len(some))
		iccids := make([]sim.ICCID, len(some))
		for i, one := range some {
			wanted[one.ICCID], iccids[i] = one, one.ICCID
		}
		err := s.save(ctx, acct, iccids, func(k kept) (*sim.SIM, error) {
			have := k.SIM
			if !k.there {
				have = sim.SIM{}
			}
			return new(sim.Declared(have, wanted[k.ICCID], reset)), nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// Delete forgets a SIM.
func (s *SIMs) Delete(ctx context.Context, acct account.ID, iccid sim.ICCID) error {
	return s.save(ctx, acct, []sim.ICCID{iccid}, func(k kept) (*sim.SIM, error) {
		if !k.there {
			return nil, wrap("SIM "+string(iccid), redis.Nil)
		}
		return nil, nil
	})
}

// save makes each SIM what become says, nil for none, and asks again for those
// that others changed meanwhile.
func (s *SIMs) save(ctx context.Context, acct account.ID, iccids []sim.ICCID, become func(kept) (*sim.SIM, error)) error {
	for range maxTries {
		have, err := s.load(ctx, acct, iccids)
		if err != nil {
			return err
		}
		var calls []call
		var changed []sim.ICCID
		for _, k := range have {
			shall, err := become(k)
			if err != nil {
				return err
			}
			if c, changes := k.saving(acct, shall); changes {
				calls, changed = append(calls, c), append(changed, k.ICCID)
			}
		}
		out, err := s.db.eval(ctx, redis.NewScript(saveSIM), calls)
		if err != nil {
			return wrap("SIMs", err)
		}
		iccids = iccids[:0:0]
		for i, answer := range out {
			if saved, _ := answer.Int(); saved == 0 {
				iccids = append(iccids, changed[i])
			}
		}
		if len(iccids) == 0 {
			return nil
		}
	}
	return relay.Errorf(relay.KindUnavailable, "SIM %s: others change it all the time", iccids[0])
}

// listing is the indexes of a scope.
func (s *SIMs) listing(acct account.ID, in sim.Scope) listing {
	return listing{db: s.db, columns: sim.Columns(), key: func(column string) string { return keySIMs(acct, in, column) }}
}

// List returns a page of a list.
func (s *SIMs) List(ctx context.Context, acct account.ID, in sim.Scope, q sim.Query) ([]sim.SIM, int, error) {
	ids, total, err := s.listing(acct, in).page(ctx, q)
	if err != nil || len(ids) == 0 {
		return nil, total, err
	}
	iccids := make([]sim.ICCID, len(ids))
	for i, id := range ids {
		iccids[i] = sim.ICCID(id)
	}
	cmds, err := s.ask(ctx, acct, iccids)
	if err != nil {
		return nil, 0, err
	}
	out := make([]sim.SIM, 0, len(cmds))
	for i, c := range cmds {
		if len(c.Val()) == 0 {
			continue // it was deleted meanwhile
		}
		out = append(out, sim.SIM{})
		if err := readSIM(&out[len(out)-1], iccids[i], c.Val()); err != nil {
			return nil, 0, err
		}
	}
	return out, total, nil
}

// Walk returns the ICCIDs of a scope that come after one.
func (s *SIMs) Walk(ctx context.Context, acct account.ID, in sim.Scope, after sim.ICCID, limit int) ([]sim.ICCID, error) {
	from := whole()
	if after != "" {
		from.min = "(" + string(after) + " " // past its separator
	}
	l := s.listing(acct, in)
	members, err := s.db.rdb.ZRangeByLex(ctx, l.key(l.columns[0]), from.by(int64(limit))).Result()
	if err != nil {
		return nil, wrap("SIMs", err)
	}
	out := make([]sim.ICCID, len(members))
	for i, m := range members {
		out[i] = sim.ICCID(idOf(0, m))
	}
	return out, nil
}
