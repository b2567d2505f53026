package kv

import (
	"context"
	"reflect"
	"strings"
	"testing"
	"time"
)

// families are the command families, each with calls whose effect must be there
// after a restart, word by word.
func families() map[string][]string {
	return map[string][]string{
		"strings": {
			"SET a 1", "SETNX a 2", "SETNX b 2", "MSET c 3 d 4", "MSETNX c 9 z 9", "APPEND a xyz", "INCR n", "INCRBY n 41", "DECR n", "DECRBY n 3",
			"INCRBYFLOAT f 1.25", "GETSET b 7", "SETRANGE r 3 abc", "SETBIT bits 7 1", "BITOP OR bits2 bits a", "GETDEL d", "SET x 1 XX", "SET a2 v NX GET",
		},
		"hashes":      {"HSET h a 1 b 2", "HMSET h c 3", "HSETNX h a 9", "HSETNX h d 4", "HINCRBY h a 5", "HINCRBYFLOAT h f 2.5", "HDEL h b nothing", "HDEL gone x"},
		"lists":       {"RPUSH l a b c d e", "LPUSH l z", "LPUSHX l y", "RPUSHX none y", "LINSERT l BEFORE c b2", "LSET l 0 Y", "LREM l 1 d", "LTRIM l 0 4", "LPOP l", "RPOP l", "RPOPLPUSH l m", "LMOVE l m LEFT RIGHT", "LMPOP 2 none l LEFT COUNT 1", "RPUSH q 1", "LPOP q"},
		"sets":        {"SADD s a b c", "SADD s a", "SREM s a", "SMOVE s s2 b", "SADD s3 c d", "SUNIONSTORE su s s3", "SINTERSTORE si s s3", "SDIFFSTORE sd s3 s"},
		"sorted sets": {"ZADD z 1 a 2.5 b 3 c", "ZADD z GT 5 a", "ZADD z NX 9 a", "ZINCRBY z 0.1 b", "ZREM z c", "ZADD y 1 a +inf d -inf e", "ZUNIONSTORE zu 2 z y WEIGHTS 2 3", "ZINTERSTORE zi 2 z y", "ZPOPMIN y", "ZPOPMAX y", "ZMPOP 1 zu MIN COUNT 1", "ZADD w 1 a 2 b 3 c 4 d", "ZREMRANGEBYSCORE w 1 1", "ZREMRANGEBYRANK w 0 0", "ZADD lex 0 a 0 b", "ZREMRANGEBYLEX lex [a [a", "GEOADD g 13.361389 38.115556 Palermo"},
		"streams":     {"XADD st * f 1 g 2", "XADD st * f 2", "XADD st NOMKSTREAM * f 3", "XADD st2 5-1 f 1", "XADD st2 5-2 f 2", "XDEL st2 5-2", "XADD st3 MAXLEN 2 * a 1", "XADD st3 * a 2", "XADD st3 * a 3", "XTRIM st3 MAXLEN 1", "XADD st4 9-9 a 1", "XDEL st4 9-9"},
		"expiry":      {"SET a 1 EX 100", "SET b 1 PX 1500", "SETEX c 10 v", "PSETEX d 10000 v", "SET e 1", "EXPIRE e 50", "SET f 1 EX 9", "PERSIST f", "SET g 1 EX 9", "SET g 2 KEEPTTL", "SET h 1 EX 9", "SET h 2", "SET i 1 EXAT 1999999999", "HSET j a 1", "PEXPIREAT j 1999999999123", "SET k 1 EX 5", "EXPIRE k 3 GT", "EXPIRE k 30 GT", "GETEX k PX 4000", "SET l 1 EX 7", "RENAME l m", "SET n 1 EX 7", "INCR n", "SET o 1", "EXPIRE o -1", "SET p 1 PXAT 1"},
		"keys":        {"SET a 1", "SET b 2", "RENAME a c", "RENAMENX b c", "RENAMENX b d", "DEL c", "SET e 1", "UNLINK e", "SET t 1", "DELEX t"},
		"flush":       {"SET a 1 EX 5", "HSET h a 1", "FLUSHALL", "SET b 1", "FLUSHDB", "SET c 1"},
	}
}

func TestEveryCommandFamilyRoundTripsThroughARestart(t *testing.T) {
	for name, calls := range families() {
		t.Run(name, func(t *testing.T) {
			dir, clk := t.TempDir(), newClock()
			o := Options{Now: clk.now}
			s := open(t, dir, o)
			c := client(t, s)
			for _, call := range calls {
				do(t, c, fields(call)...)
				clk.add(1234567 * time.Nanosecond)
			}
			before := stateOf(s)
			if len(before.Types) == 0 {
				t.Fatal("the calls left nothing to compare")
			}
			closeStore(t, s)
			s = open(t, dir, o)
			sameState(t, before, stateOf(s))

			if _, err := s.compact(); err != nil {
				t.Fatal(err)
			}
			sameState(t, before, stateOf(s))
			closeStore(t, s)
			sameState(t, before, stateOf(open(t, dir, o)))
		})
	}
}

func sameState(t *testing.T, want, got state) {
	t.Helper()
	if !reflect.DeepEqual(want, got) {
		t.Fatalf("the state differs\nbefore %+v\nafter  %+v", want, got)
	}
}

func fields(call string) []any {
	var out []any
	for f := range strings.FieldsSeq(call) {
		out = append(out, f)
	}
	return out
}

func TestTheTableOfWritesKnowsEveryCommandThatIsNotARead(t *testing.T) {
	s := open(t, t.TempDir(), Options{})
	for name := range s.writes {
		if !s.srv.IsRegisteredCommand(name) {
			t.Errorf("%s is no command of the engine", name)
		}
		if s.srv.IsReadOnlyCommand(name) {
			t.Errorf("%s is a read", name)
		}
	}
}

func TestWhatCannotBeKeptIsRefused(t *testing.T) {
	c := client(t, open(t, t.TempDir(), Options{}))
	for _, call := range []string{
		"WATCH a", "BLPOP a 1", "BRPOP a 1", "BRPOPLPUSH a b 1", "BLMOVE a b LEFT LEFT 1", "BZPOPMIN a 1", "BZMPOP 1 1 a MIN",
		"SPOP s", "HEXPIRE h 1 FIELDS 1 a", "HSETEX h FIELDS 1 a b", "HPERSIST h FIELDS 1 a", "MOVE a 1", "COPY a b", "SWAPDB 0 1", "SELECT 1",
		"XGROUP CREATE s g 0 MKSTREAM", "XREADGROUP GROUP g c STREAMS s >", "XACK s g 1-1", "XREAD BLOCK 1 STREAMS s 0", "PFADD p a",
		"DUMP a", "RESTORE a 0 x", "PSUBSCRIBE x*", "GEORADIUS g 1 1 1 m STORE k", "CONFIG SET maxmemory 1",
	} {
		t.Run(call, func(t *testing.T) {
			err := c.Do(context.Background(), fields(call)...).Err()
			if err == nil || !strings.Contains(err.Error(), "embedded store") {
				t.Fatalf("got %v, want an error that names the embedded store", err)
			}
		})
	}
}
