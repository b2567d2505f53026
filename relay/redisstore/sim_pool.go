package redisstore

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"

	"github.com/redis/go-redis/v9"

	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/sim"
)

// joinPool puts SIMs into a pool or takes them out, all or none. A call that comes
// again, because its answer was lost, is answered as before. Its members are those
// of listing.go.
//
//	KEYS  1 pools  2 to 4 the pool's sets by iccid, imsi and msisdn  5… SIMs
//	ARGV  1 pool  2 attach (1) or detach (0)  3 name of the call  4… ICCIDs of
//	      the SIMs
//	result {} done; else {why, iccid}: pool, unknown, elsewhere or outside
func joinPool() *redis.Script {
	return redis.NewScript(`
local pool, attach, sep = ARGV[1], ARGV[2] == '1', '\31'
if redis.call('HEXISTS', KEYS[1], pool) == 0 then return {'pool', ''} end
local found = {}
for i = 5, #KEYS do
  local r = redis.call('HMGET', KEYS[i], 'v', 'pool', 'imsi', 'msisdn', 'left')
  local iccid = ARGV[i - 1]
  if not r[1] then return {'unknown', iccid} end
  if attach and r[2] and r[2] ~= pool then return {'elsewhere', iccid} end
  local left = not attach and r[5] == ARGV[3]
  if not attach and not left and r[2] ~= pool then return {'outside', iccid} end
  found[i] = {iccid, r[3] or '', r[4] or '', attach and r[2] or left}
end
for i = 5, #KEYS do
  local iccid, imsi, msisdn, done = found[i][1], found[i][2], found[i][3], found[i][4]
  if not done then
    local members = {
      iccid .. sep .. imsi .. sep .. msisdn, imsi .. sep .. iccid .. sep .. msisdn, msisdn .. sep .. iccid .. sep .. imsi
    }
    for n = 1, 3 do
      if attach then redis.call('ZADD', KEYS[n + 1], 0, members[n]) else redis.call('ZREM', KEYS[n + 1], members[n]) end
    end
    if attach then
      redis.call('HSET', KEYS[i], 'pool', pool)
    else
      redis.call('HDEL', KEYS[i], 'pool')
      redis.call('HSET', KEYS[i], 'left', ARGV[3])
    end
    redis.call('HINCRBY', KEYS[i], 'v', 1)
  end
end
return {}`)
}

// Attach puts SIMs into a pool.
func (s *SIMs) Attach(ctx context.Context, acct account.ID, pool string, iccids []sim.ICCID) error {
	return s.join(ctx, acct, pool, iccids, true)
}

// Detach takes SIMs out of a pool.
func (s *SIMs) Detach(ctx context.Context, acct account.ID, pool string, iccids []sim.ICCID) error {
	return s.join(ctx, acct, pool, iccids, false)
}

func (s *SIMs) join(ctx context.Context, acct account.ID, pool string, iccids []sim.ICCID, attach bool) error {
	out, err := s.db.eval(ctx, joinPool(), []call{joining(acct, pool, iccids, attach)})
	if err != nil {
		return wrap("pool "+pool, err)
	}
	answer, err := out[0].StringSlice()
	if err != nil {
		return wrap("pool "+pool, err)
	}
	return refusalOf(answer)
}

// joining is a call that differs from all others in its name.
func joining(acct account.ID, pool string, iccids []sim.ICCID, attach bool) call {
	name := strconv.FormatUint(rand.Uint64(), 36)
	c := call{keys: []string{keyPools(acct)}, args: []any{pool, flag(attach), name}}
	for _, column := range sim.Columns() {
		c.keys = append(c.keys, keySIMs(acct, sim.Scope{Pool: pool}, column))
	}
	for _, iccid := range iccids {
		c.keys = append(c.keys, keySIM(acct, iccid))
		c.args = append(c.args, string(iccid))
	}
	return c
}

// refusalOf reads why a script has done nothing; nil if it has.
func refusalOf(answer []string) error {
	switch {
	case len(answer) == 0:
		return nil
	case answer[0] == "pool":
		return sim.NoPool()
	case answer[0] == "elsewhere":
		return sim.NotFree(sim.ICCID(answer[1]))
	case len(answer) == 2:
		return sim.BadICCID(answer[1])
	}
	return fmt.Errorf("pool: an odd answer, %q", answer)
}

// Pools keeps pools; it is a sim.Pools.
type Pools struct{ db *DB }

// Pools returns the store of pools.
func (d *DB) Pools() *Pools { return &Pools{db: d} }

// Get loads a pool.
func (s *Pools) Get(ctx context.Context, acct account.ID, id string) (sim.Pool, error) {
	return field[sim.Pool](ctx, s.db, "pool", keyPools(acct), id)
}

// Put saves a new pool.
func (s *Pools) Put(ctx context.Context, acct account.ID, p sim.Pool) error {
	return wrap("pool "+p.ID, setField(ctx, s.db.rdb, keyPools(acct), p.ID, p))
}

// Change saves what change makes of a pool.
func (s *Pools) Change(ctx context.Context, acct account.ID, id string, change func(*sim.Pool) error) (sim.Pool, error) {
	return edit(ctx, s.db, "pool", keyPools(acct), id, keyPoolsVersion(acct), change)
}
