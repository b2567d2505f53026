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

// maxCalls is how many calls of a script go in one round trip. The server may
// take a millisecond for each, the embedded one does, and all of a round trip
// has to be answered within one timeout: a batch that takes longer would be
// given up and come again, for ever.
const maxCalls = 250

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
