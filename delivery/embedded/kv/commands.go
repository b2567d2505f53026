package kv

import (
	"slices"
	"strconv"
	"strings"
)

// writeSpec describes a command that changes the data: which of its arguments
// are the keys it changes, and which replies mean that it changed nothing and
// need not be logged.
type writeSpec struct {
	first, last, step int // positions behind the name; last counts from the end when negative
	counted           bool
	idle              idleReply
}

// idleReply is the reply of a command that had no effect.
type idleReply int

const (
	idleNever idleReply = iota
	idleZero            // the integer 0
	idleNone            // null or an empty array
)

// writes lists every command that may change the data. One that is not here and
// is not known to be a read is refused, so nothing can bypass the log.
func writes() map[string]writeSpec {
	one := func(idle idleReply) writeSpec { return writeSpec{0, 0, 1, false, idle} }
	all := func(idle idleReply) writeSpec { return writeSpec{0, -1, 1, false, idle} }
	two := func(idle idleReply) writeSpec { return writeSpec{0, 1, 1, false, idle} }
	w := map[string]writeSpec{
		"BITOP": {1, 1, 1, false, idleNever}, "LMPOP": {counted: true, idle: idleNone}, "ZMPOP": {counted: true, idle: idleNone},
		"MSET": {0, -1, 2, false, idleNever}, "MSETNX": {0, -1, 2, false, idleZero},
		"DEL": all(idleZero), "UNLINK": all(idleZero),
		"RENAME": two(idleNever), "RENAMENX": two(idleZero), "SMOVE": two(idleZero), "RPOPLPUSH": two(idleNone), "LMOVE": two(idleNone),
		"FLUSHALL": {last: -2, step: 1}, "FLUSHDB": {last: -2, step: 1},
	}
	for idle, names := range map[idleReply]string{
		idleNever: `APPEND SETEX PSETEX INCR INCRBY DECR DECRBY INCRBYFLOAT GETSET SETRANGE SETBIT
			HSET HMSET HINCRBY HINCRBYFLOAT LPUSH RPUSH LSET LTRIM SDIFFSTORE SINTERSTORE SUNIONSTORE
			ZINCRBY ZUNIONSTORE ZINTERSTORE GEOADD`,
		idleZero: `SETNX DELEX HSETNX HDEL LPUSHX RPUSHX LINSERT LREM SADD SREM ZREM ZREMRANGEBYLEX
			ZREMRANGEBYRANK ZREMRANGEBYSCORE EXPIRE PEXPIRE EXPIREAT PEXPIREAT PERSIST XDEL XTRIM`,
		idleNone: `SET GETDEL GETEX LPOP RPOP ZADD ZPOPMIN ZPOPMAX XADD`,
	} {
		for name := range strings.FieldsSeq(names) {
			w[name] = one(idle)
		}
	}
	return w
}

// keys are the keys that a call with these arguments may change.
func (w writeSpec) keys(args []string) []string {
	if w.counted {
		if len(args) == 0 {
			return nil
		}
		n, err := strconv.Atoi(args[0])
		if err != nil || n < 0 || n > len(args)-1 {
			return nil
		}
		return args[1 : 1+n]
	}
	last := w.last
	if last < 0 {
		last += len(args)
	}
	last = min(last, len(args)-1)
	if last < w.first {
		return nil
	}
	if w.step == 1 {
		return args[w.first : last+1]
	}
	var keys []string
	for i := w.first; i <= last; i += w.step {
		keys = append(keys, args[i])
	}
	return keys
}

// idled says whether a reply means that nothing was changed. The deadlines are
// compared apart.
func (w writeSpec) idled(name string, args []string, reply []byte) bool {
	switch w.idle {
	case idleZero:
		return string(reply) == ":0\r\n"
	case idleNone:
		switch name {
		case "SET":
			return isNone(reply) && !slices.ContainsFunc(args[2:], func(a string) bool { return strings.EqualFold(a, "GET") })
		case "GETEX":
			return len(args) == 1 || isNone(reply)
		}
		return isNone(reply)
	}
	return false
}

func isNone(reply []byte) bool {
	switch string(reply) {
	case "$-1\r\n", "*-1\r\n", "_\r\n", "*0\r\n":
		return true
	}
	return false
}

// otherReads are commands that miniredis does not mark as reads but that change
// nothing.
func otherReads() map[string]bool {
	return map[string]bool{
		"ECHO": true, "MEMORY": true, "XINFO": true, "COMMAND": true, "SCRIPT": true, "TIME": true, "UNWATCH": true,
		"EVAL": true, "EVALSHA": true,
	}
}

// refusal says why a known command is not served, or "".
func (s *Server) refusal(name string, args []string) string {
	switch {
	case name == "XREAD":
		if slices.ContainsFunc(args, func(a string) bool { return strings.EqualFold(a, "BLOCK") }) {
			return "ERR XREAD BLOCK is not served by the embedded store: poll, or configure a Redis server"
		}
		return ""
	case name == "DUMP": // a read, but of a form of miniredis' own
	case s.reads[name] || s.srv.IsReadOnlyCommand(name) || !s.srv.IsRegisteredCommand(name):
		return ""
	}
	return "ERR " + name + " is not served by the embedded store: configure a Redis server to use it"
}
