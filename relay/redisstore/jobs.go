package redisstore

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/job"
)

// Jobs keeps jobs; it is a job.Store.
type Jobs struct{ db *DB }

// Jobs returns the store of jobs.
func (d *DB) Jobs() *Jobs { return &Jobs{db: d} }

// createJob saves a new job.
//
//	KEYS  1 job  2 due  3 the last place in lists
//	ARGV  1 id  2 static JSON  3 ms of creation  4 the key of its list or empty
//	      5 kind  6 name
//	result 1 saved, 0 it exists
func createJob() *redis.Script {
	return redis.NewScript(luaCreateJob + `
if create(KEYS[1], KEYS[2], KEYS[3], unpack(ARGV)) then return 1 end
return 0`)
}

// Create saves a new job.
func (s *Jobs) Create(ctx context.Context, j job.Job) error {
	args, err := createArgs(j)
	if err != nil {
		return err
	}
	_, err = s.db.eval(ctx, createJob(), []call{{keys: createKeys(j), args: args}}, rememberJobs(ctx, j.Account))
	return wrap("job "+j.ID+": create", err)
}

// rememberJobs notes that an account has jobs.
func rememberJobs(ctx context.Context, acct account.ID) redis.Cmder {
	return redis.NewCmd(ctx, "SADD", keyJobAccounts(), acct.String())
}

// Get loads a job.
func (s *Jobs) Get(ctx context.Context, acct account.ID, id string) (job.Job, error) {
	fields, err := s.db.rdb.HGetAll(ctx, keyJob(acct, id)).Result()
	if err == nil && len(fields) == 0 {
		err = redis.Nil
	}
	if err != nil {
		return job.Job{}, wrap("job "+id, err)
	}
	return decodeJob(fields)
}

func decodeJob(fields map[string]string) (job.Job, error) {
	var j job.Job
	if err := json.Unmarshal([]byte(fields["static"]), &j); err != nil {
		return j, fmt.Errorf("job: decode: %w", err)
	}
	j.State, j.Error = job.State(fields["state"]), fields["error"]
	j.Tries, _ = strconv.Atoi(fields["tries"])
	j.Due, j.UpdatedAt = moment(fields["due"]), moment(fields["updated"])
	if r := fields["result"]; r != "" {
		j.Result = json.RawMessage(r)
	}
	if r := fields["settled"]; r != "" {
		j.Settled = json.RawMessage(r)
	}
	return j, nil
}

// leaseJob takes a job that is due.
//
//	KEYS  1 job  2 due
//	ARGV  1 id  2 ms of now  3 ms of the lease's end
//	result {1 taken or 0 not, field, value, …}; {0} if there is no such job
func leaseJob() *redis.Script {
	return redis.NewScript(luaMoveJob + `
local r = redis.call('HMGET', KEYS[1], 'state', 'due', 'list', 'place', 'kind', 'name')
if not r[1] then
  redis.call('ZREM', KEYS[2], ARGV[1])
  return {0}
end
local taken = 0
if (r[1] == 'queued' or r[1] == 'processing') and tonumber(r[2]) <= tonumber(ARGV[2]) then
  redis.call('HSET', KEYS[1], 'state', 'processing', 'due', ARGV[3], 'updated', ARGV[2])
  redis.call('HINCRBY', KEYS[1], 'tries', 1)
  redis.call('ZADD', KEYS[2], ARGV[3], ARGV[1])
  if r[3] and r[1] == 'queued' then move(r[3], ARGV[1], r[4], r[5], r[6], 'queued', 'processing') end
  taken = 1
end
local reply = redis.call('HGETALL', KEYS[1])
table.insert(reply, 1, taken)
return reply`)
}

// Lease takes a job that is due.
func (s *Jobs) Lease(ctx context.Context, r job.Ref, now, until time.Time) (job.Job, bool, error) {
	out, err := s.db.eval(ctx, leaseJob(), []call{{
		keys: []string{keyJob(r.Account, r.ID), keyJobsDue(r.Account)},
		args: []any{r.ID, now.UnixMilli(), until.UnixMilli()},
	}})
	if err != nil {
		return job.Job{}, false, wrap("job "+r.ID+": lease", err)
	}
	reply, err := out[0].Slice()
	if err != nil {
		return job.Job{}, false, wrap("job "+r.ID+": lease", err)
	}
	if len(reply) < 2 {
		return job.Job{}, false, wrap("job "+r.ID, redis.Nil)
	}
	fields := make(map[string]string, len(reply)/2)
	for i := 1; i+1 < len(reply); i += 2 {
		fields[fmt.Sprint(reply[i])] = fmt.Sprint(reply[i+1])
	}
	j, err := decodeJob(fields)
	return j, err == nil && reply[0] == int64(1), err
}

// finishJob records what a run came to.
//
//	KEYS  1 job  2 due
//	ARGV  1 id  2 state  3 ms of the next try, 0 if ended  4 result  5 error
//	      6 ms of now  7 ms to keep it from its end, 0 = for good
//	      8 the number of the run if it was no try, else ''
//	result 1 recorded, 0 it had ended or is gone
func finishJob() *redis.Script {
	return redis.NewScript(luaMoveJob + `
local r = redis.call('HMGET', KEYS[1], 'state', 'list', 'place', 'kind', 'name', 'tries')
local state = r[1]
if not state or state == 'completed' or state == 'failed' then return 0 end
redis.call('HSET', KEYS[1], 'state', ARGV[2], 'due', ARGV[3], 'error', ARGV[5], 'updated', ARGV[6])
if ARGV[8] ~= '' and r[6] == ARGV[8] then redis.call('HINCRBY', KEYS[1], 'tries', -1) end
if ARGV[4] ~= '' then redis.call('HSET', KEYS[1], 'result', ARGV[4]) end
if r[2] and state ~= ARGV[2] then move(r[2], ARGV[1], r[3], r[4], r[5], state, ARGV[2]) end
if ARGV[3] ~= '0' then
  redis.call('ZADD', KEYS[2], ARGV[3], ARGV[1])
  return 1
end
redis.call('ZREM', KEYS[2], ARGV[1])
if ARGV[7] ~= '0' then
  redis.call('PEXPIRE', KEYS[1], ARGV[7])
  if r[2] then
    redis.call('ZADD', r[2] .. '|ends', string.format('%d', tonumber(ARGV[6]) + tonumber(ARGV[7])),
      ARGV[1] .. '|' .. ARGV[2] .. '|' .. r[4] .. '|' .. r[5])
  end
end
return 1`)
}

// Finish records what a run came to.
func (s *Jobs) Finish(ctx context.Context, j job.Job, o job.Outcome, now time.Time) error {
	due, untried := int64(0), ""
	if !o.Again.IsZero() {
		due = o.Again.UnixMilli()
	}
	if o.Waits {
		untried = strconv.Itoa(j.Tries)
	}
	_, err := s.db.eval(ctx, finishJob(), []call{{
		keys: []string{keyJob(j.Account, j.ID), keyJobsDue(j.Account)},
		args: []any{j.ID, string(o.State()), due, string(o.Result), o.Error, now.UnixMilli(), j.Keep.Milliseconds(), untried},
	}})
	return wrap("job "+j.ID+": finish", err)
}

// Due returns jobs that somebody may work on.
func (s *Jobs) Due(ctx context.Context, before time.Time, limit int) ([]job.Ref, error) {
	members, err := s.db.rdb.SMembers(ctx, keyJobAccounts()).Result()
	if err != nil || len(members) == 0 {
		return nil, wrap("jobs: due", err)
	}
	ids := make([]account.ID, len(members))
	cmds := make([]*redis.StringSliceCmd, len(members))
	_, err = s.db.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, m := range members {
			n, err := strconv.ParseInt(m, 10, 64)
			if err != nil {
				return fmt.Errorf("account %q: %w", m, err)
			}
			ids[i] = account.ID(n)
			cmds[i] = p.ZRangeByScore(ctx, keyJobsDue(ids[i]), &redis.ZRangeBy{
				Min: "-inf", Max: strconv.FormatInt(before.UnixMilli(), 10), Count: int64(limit),
			})
		}
		return nil
	})
	if err != nil {
		return nil, wrap("jobs: due", err)
	}
	var refs []job.Ref
	for i, c := range cmds {
		for _, id := range c.Val() {
			refs = append(refs, job.Ref{Account: ids[i], ID: id})
		}
	}
	return refs, nil
}
