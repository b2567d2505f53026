package redisstore

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/job"
)

// luaMoveJob is a function for scripts: it takes a job from the lists of one
// state to those of another, or adds it if it had none. Each job stands in a list
// for every combination of what a filter may name.
const luaMoveJob = `
local function move(base, id, place, kind, name, from, to)
  local names = {''}
  if name ~= '' then names[2] = name end
  for _, n in ipairs(names) do
    for _, k in ipairs({'', kind}) do
      local tail = '|' .. k .. '|' .. n
      if from then
        redis.call('ZREM', base .. '|' .. from .. tail, id)
      else
        redis.call('ZADD', base .. '|' .. tail, place, id)
      end
      redis.call('ZADD', base .. '|' .. to .. tail, place, id)
    end
  end
end
`

// luaCreateJob is a function for scripts: it saves a new job, queued, and answers
// whether there was none of its id.
const luaCreateJob = luaMoveJob + `
local function create(record, due, last, id, static, ms, base, kind, name)
  if redis.call('EXISTS', record) == 1 then return false end
  redis.call('HSET', record, 'static', static, 'state', 'queued', 'due', ms, 'tries', 0, 'updated', ms)
  redis.call('ZADD', due, ms, id)
  if base ~= '' then
    local place = redis.call('INCR', last)
    redis.call('HSET', record, 'list', base, 'place', place, 'kind', kind, 'name', name)
    move(base, id, place, kind, name, nil, 'queued')
  end
  return true
end
`

// createArgs are what luaCreateJob's create takes from its id on.
func createArgs(j job.Job) ([]any, error) {
	static := j
	static.State, static.Result, static.Error, static.Tries, static.Settled = "", nil, "", 0, nil
	static.UpdatedAt, static.Due = time.Time{}, time.Time{}
	b, err := encodeRecord(static)
	if err != nil {
		return nil, fmt.Errorf("job %s: encode: %w", j.ID, err)
	}
	list := ""
	if j.List != "" {
		list = keyJobsList(j.Account, j.List)
	}
	return []any{j.ID, b, j.CreatedAt.UnixMilli(), list, string(j.Kind), j.Name}, nil
}

// createKeys are the keys of create.
func createKeys(j job.Job) []string {
	return []string{keyJob(j.Account, j.ID), keyJobsDue(j.Account), keyJobsLast(j.Account)}
}

// List returns jobs in the order of their creation.
func (s *Jobs) List(ctx context.Context, acct account.ID, f job.Filter, offset, limit int) ([]job.Job, int, error) {
	base := keyJobsList(acct, f.List)
	if err := s.forget(ctx, base, time.Now()); err != nil {
		return nil, 0, wrap("jobs: expired", err)
	}
	key := keyJobsOf(base, f.State, f.Kind, f.Name)
	var count *redis.IntCmd
	var ids *redis.StringSliceCmd
	_, err := s.db.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		count = p.ZCard(ctx, key)
		last := int64(offset) + int64(limit) - 1
		if f.Newest {
			ids = p.ZRevRange(ctx, key, int64(offset), last)
		} else {
			ids = p.ZRange(ctx, key, int64(offset), last)
		}
		return nil
	})
	if err != nil {
		return nil, 0, wrap("jobs: list", err)
	}
	found, err := s.load(ctx, acct, ids.Val())
	return found, int(count.Val()), err
}

// load reads jobs; those that are gone are left out.
func (s *Jobs) load(ctx context.Context, acct account.ID, ids []string) ([]job.Job, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	records := make([]*redis.MapStringStringCmd, len(ids))
	_, err := s.db.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, id := range ids {
			records[i] = p.HGetAll(ctx, keyJob(acct, id))
		}
		return nil
	})
	if err != nil {
		return nil, wrap("jobs: load", err)
	}
	var out []job.Job
	for _, r := range records {
		if len(r.Val()) == 0 {
			continue
		}
		j, err := decodeJob(r.Val())
		if err != nil {
			return nil, err
		}
		out = append(out, j)
	}
	return out, nil
}

// forgotten is how many expired jobs leave the lists in one round trip.
const forgotten = 1000

// forget takes jobs whose time is over out of the lists.
func (s *Jobs) forget(ctx context.Context, base string, now time.Time) error {
	ends := keyJobsEnds(base)
	for {
		members, err := s.db.rdb.ZRangeByScore(ctx, ends, &redis.ZRangeBy{
			Min: "-inf", Max: strconv.FormatInt(now.UnixMilli(), 10), Count: forgotten,
		}).Result()
		if err != nil || len(members) == 0 {
			return err
		}
		_, err = s.db.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
			for _, m := range members {
				for _, key := range listsOfEnd(base, m) {
					p.ZRem(ctx, key, idOfEnd(m))
				}
				p.ZRem(ctx, ends, m) // last: what breaks off is done again
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
}

// idOfEnd reads the id out of a member of the ends: "<id>|<state>|<kind>|<name>".
func idOfEnd(member string) string {
	id, _, _ := strings.Cut(member, "|")
	return id
}

// listsOfEnd are the lists that a job with this member stands in.
func listsOfEnd(base, member string) []string {
	part := strings.SplitN(member, "|", 4)
	if len(part) < 4 {
		return nil
	}
	var out []string
	for _, name := range orAny(part[3]) {
		for _, kind := range orAny(part[2]) {
			for _, state := range orAny(part[1]) {
				out = append(out, keyJobsOf(base, job.State(state), job.Kind(kind), name))
			}
		}
	}
	return out
}

// orAny is what a filter may say of a value: nothing, or it.
func orAny(value string) []string {
	if value == "" {
		return []string{""}
	}
	return []string{"", value}
}
