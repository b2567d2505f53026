package redisstore

import (
	"context"
	"errors"
	"slices"

	"github.com/redis/go-redis/v9"
)

// call is one run of a script in a pipeline.
type call struct {
	keys []string
	args []any
}

// maxCalls is how many calls of a script go in one round trip, all of which has to
// be answered within one timeout: a batch that takes longer would be given up and
// come again, for ever. The embedded server may take ten milliseconds for a call
// of as many records as there may be.
const maxCalls = 100

// maxOfCall is how many records a call of a script is for.
const maxOfCall = 250

// groups are the places of what has the same key, in their order, as many
// together as go in one call of a script.
func groups[T any, K comparable](list []T, key func(*T) K) (of [][]int) {
	last := make(map[K]int)
	for i := range list {
		k := key(&list[i])
		at, ok := last[k]
		if !ok || len(of[at]) == maxOfCall {
			at = len(of)
			last[k] = at
			of = append(of, nil)
		}
		of[at] = append(of[at], i)
	}
	return of
}

// eval runs a script once for each call, many in one round trip, and returns the
// results in the calls' order. The first error of a call is returned; the other
// calls of its round trip, and of those before, ran nevertheless.
//
// The commands in first go in front of the calls in the first round trip; an
// error of theirs is returned like that of a call.
func (d *DB) eval(ctx context.Context, s *redis.Script, calls []call, first ...redis.Cmder) ([]*redis.Cmd, error) {
	out := make([]*redis.Cmd, 0, len(calls))
	for some := range slices.Chunk(calls, maxCalls) {
		answers, err := d.evalSome(ctx, s, some, first...)
		out, first = append(out, answers...), nil
		if err != nil {
			return out, err
		}
	}
	return out, nil
}

// evalSome is eval for what goes in one round trip.
//
// After a restart or failover the server does not know the script: those calls
// did nothing and are repeated with its whole source, which also teaches it to
// every node of a cluster that needs it.
func (d *DB) evalSome(ctx context.Context, s *redis.Script, calls []call, first ...redis.Cmder) ([]*redis.Cmd, error) {
	cmds, err := d.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		for _, c := range first {
			_ = p.Process(ctx, c)
		}
		for _, c := range calls {
			s.EvalSha(ctx, p, c.keys, c.args...)
		}
		return nil
	})
	out, unknown := results(cmds[len(first):])
	if unsaid(cmds, err) {
		return out, err
	}
	if len(unknown) > 0 {
		again, err := d.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
			for _, i := range unknown {
				s.Eval(ctx, p, calls[i].keys, calls[i].args...)
			}
			return nil
		})
		for n, i := range unknown {
			out[i] = again[n].(*redis.Cmd)
		}
		if unsaid(again, err) {
			return out, err
		}
	}
	for _, c := range first {
		if err := c.Err(); err != nil {
			return out, err
		}
	}
	return out, firstError(out)
}

// slice is a list in a script's answer; nil for anything else.
func slice(v any) []any {
	list, _ := v.([]any)
	return list
}

// unsaid reports whether a pipeline failed without any of its commands knowing:
// that is what go-redis does when a new connection is refused at its greeting,
// for a wrong password for example.
func unsaid(cmds []redis.Cmder, err error) bool {
	return err != nil && !slices.ContainsFunc(cmds, func(c redis.Cmder) bool { return c.Err() != nil })
}

// results returns the commands as what they are and the indexes of those whose
// script the server did not know.
func results(cmds []redis.Cmder) (out []*redis.Cmd, unknown []int) {
	for i, c := range cmds {
		cmd := c.(*redis.Cmd)
		out = append(out, cmd)
		if redis.HasErrorPrefix(cmd.Err(), "NOSCRIPT") {
			unknown = append(unknown, i)
		}
	}
	return out, unknown
}

// firstError returns the first error of a script; a script that answers nil
// made none.
func firstError(cmds []*redis.Cmd) error {
	for _, c := range cmds {
		if err := c.Err(); err != nil && !errors.Is(err, redis.Nil) {
			return err
		}
	}
	return nil
}

// manySource is for scripts that change many records of an account at a time:
// what a script asks of the server costs more than what the server then does.
// each and get write and read many fields of a hash at once; mark notes the score
// of a member of a sorted set, or false to remove it, and flush does that for all.
// What goes in one command is bounded, as is Lua's stack.
const manySource = `
local many = 400
local function each(command, key, list)
  for i = 1, #list, many do redis.call(command, key, unpack(list, i, math.min(i + many - 1, #list))) end
end
local function get(key, fields)
  if #fields == 0 then return {} end
  if #fields <= many then return redis.call('HMGET', key, unpack(fields)) end
  local all = {}
  for i = 1, #fields, many do
    for k, v in ipairs(redis.call('HMGET', key, unpack(fields, i, math.min(i + many - 1, #fields)))) do all[i + k - 1] = v end
  end
  return all
end
local marks = {}
local function mark(key, member, score)
  local members = marks[key]
  if not members then
    members = {}
    marks[key] = members
  end
  members[member] = score
end
local function flush()
  for key, members in pairs(marks) do
    local add, remove = {}, {}
    for member, score in pairs(members) do
      if score then
        add[#add + 1] = score
        add[#add + 1] = member
      else
        remove[#remove + 1] = member
      end
    end
    each('ZADD', key, add)
    each('ZREM', key, remove)
  end
end
`
