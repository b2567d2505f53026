package redisstore

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/redis/go-redis/v9"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/job"
	"github.com/penstock/penstock/relay/sim"
)

// Orders keeps SIMs in step with jobs; it is a sim.Orders.
type Orders struct{ db *DB }

// Orders returns the store of what jobs do with SIMs.
func (d *DB) Orders() *Orders { return &Orders{db: d} }

// luaSaveSIM is saveSIM as a function of its own KEYS and ARGV: those of the
// script from some place on.
const luaSaveSIM = `
local function rest(all, from)
  local out = {}
  for i = from, #all do out[#out + 1] = all[i] end
  return out
end
local function save(KEYS, ARGV)` + saveSIM + `
end
`

// beginOrder saves a SIM that is reserved for a job, and the job.
//
//	KEYS  1 job  2 due  3 the last place in lists  4… those of saveSIM
//	ARGV  1 to 6 those of createJob  7… those of saveSIM
//	result 1 saved, 0 the SIM was changed meanwhile
func beginOrder() *redis.Script {
	return redis.NewScript(luaCreateJob + luaSaveSIM + `
if save(rest(KEYS, 4), rest(ARGV, 7)) == 0 then return 0 end
create(KEYS[1], KEYS[2], KEYS[3], unpack(ARGV, 1, 6))
return 1`)
}

// settleOrder saves what a job has made of a SIM, once.
//
//	KEYS  1 job  2… those of saveSIM
//	ARGV  1 what the job came to  2… those of saveSIM
//	result 1 saved, 0 the SIM was changed meanwhile, else what the job came to
//	       before
func settleOrder() *redis.Script {
	return redis.NewScript(luaSaveSIM + `
local settled = redis.call('HGET', KEYS[1], 'settled')
if settled then return settled end
if save(rest(KEYS, 2), rest(ARGV, 2)) == 0 then return 0 end
if redis.call('EXISTS', KEYS[1]) == 1 then redis.call('HSET', KEYS[1], 'settled', ARGV[1]) end
return 1`)
}

// Begin saves what change makes of a SIM together with a new job.
func (s *Orders) Begin(ctx context.Context, j job.Job, iccid sim.ICCID, change func(*sim.SIM) error) error {
	args, err := createArgs(j)
	if err != nil {
		return err
	}
	for range maxTries {
		save, err := s.saving(ctx, j.Account, iccid, change)
		if err != nil {
			return s.unless(ctx, j, err)
		}
		whole := call{keys: append(createKeys(j), save.keys...), args: append(slices.Clone(args), save.args...)}
		out, err := s.db.eval(ctx, beginOrder(), []call{whole}, rememberJobs(ctx, j.Account))
		if err != nil {
			return wrap("job "+j.ID+": begin", err)
		}
		if saved, _ := out[0].Int(); saved == 1 {
			return nil
		}
	}
	return busy(iccid)
}

// unless returns an error unless the job is there: its answer was lost then, and
// the job may have changed the SIM since.
func (s *Orders) unless(ctx context.Context, j job.Job, err error) error {
	if n, bad := s.db.rdb.Exists(ctx, keyJob(j.Account, j.ID)).Result(); bad == nil && n == 1 {
		return nil
	}
	return err
}

func busy(iccid sim.ICCID) error {
	return relay.Errorf(relay.KindUnavailable, "SIM %s: others change it all the time", iccid)
}

// saving is the call of saveSIM that saves what change makes of a SIM.
func (s *Orders) saving(ctx context.Context, acct account.ID, iccid sim.ICCID, change func(*sim.SIM) error) (call, error) {
	all, err := s.db.SIMs().load(ctx, acct, []sim.ICCID{iccid})
	if err == nil && !all[0].there {
		err = wrap("SIM "+string(iccid), redis.Nil)
	}
	if err != nil {
		return call{}, err
	}
	shall := all[0].SIM
	if err := change(&shall); err != nil {
		return call{}, err
	}
	shall.ICCID, shall.Pool = all[0].ICCID, all[0].Pool
	save, changes := all[0].saving(acct, &shall)
	if !changes { // then only that it is still so is checked
		save = call{keys: []string{keySIM(acct, iccid)}, args: []any{all[0].fields()["v"], 0, 0}}
	}
	return save, nil
}

// Settle saves what change makes of a SIM together with what the job came to.
func (s *Orders) Settle(
	ctx context.Context, j job.Job, iccid sim.ICCID, change func(*sim.SIM) (json.RawMessage, error),
) (json.RawMessage, error) {
	for range maxTries {
		var settled json.RawMessage
		save, err := s.saving(ctx, j.Account, iccid, func(one *sim.SIM) (err error) {
			settled, err = change(one)
			return err
		})
		if err != nil {
			return s.before(ctx, j, err)
		}
		whole := call{
			keys: append([]string{keyJob(j.Account, j.ID)}, save.keys...),
			args: append([]any{string(settled)}, save.args...),
		}
		out, err := s.db.eval(ctx, settleOrder(), []call{whole})
		if err != nil {
			return nil, wrap("job "+j.ID+": settle", err)
		}
		switch answer := out[0].Val().(type) {
		case string:
			return json.RawMessage(answer), nil
		case int64:
			if answer == 1 {
				return settled, nil
			}
		}
	}
	return nil, busy(iccid)
}

// before returns what a job has settled already, else the error that asks for it.
func (s *Orders) before(ctx context.Context, j job.Job, err error) (json.RawMessage, error) {
	text, none := s.db.rdb.HGet(ctx, keyJob(j.Account, j.ID), "settled").Result()
	if none != nil || text == "" {
		return nil, fmt.Errorf("job %s: settle: %w", j.ID, err)
	}
	return json.RawMessage(text), nil
}
