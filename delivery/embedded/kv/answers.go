package kv

import (
	"fmt"
	"os"
	"path"
	"runtime/metrics"
	"slices"
	"strings"

	"github.com/alicebob/miniredis/v2/server"
)

// answer replies to a command in place of miniredis.
type answer func(p *server.Peer, args []string)

func (s *Server) ownAnswers() map[string]answer {
	a := map[string]answer{
		"INFO": s.info, "CONFIG": s.config, "ZRANGEBYSCORE": s.rangeByScore, "PUBLISH": s.publish, "PUBSUB": s.pubsub,
		"WAIT": func(p *server.Peer, _ []string) { p.WriteInt(0) },
		"CLUSTER": func(p *server.Peer, _ []string) {
			p.WriteError("ERR This instance has cluster support disabled")
		},
	}
	for name, unit := range map[string]int64{"TTL": 1000, "PTTL": 1} {
		a[name] = s.remaining(name, func(at int64) int64 {
			return (at - s.micros/1000 + unit/2) / unit
		})
	}
	for name, unit := range map[string]int64{"EXPIRETIME": 1000, "PEXPIRETIME": 1} {
		a[name] = s.remaining(name, func(at int64) int64 { return at / unit })
	}
	return a
}

// remaining answers TTL and its kin: -2 for no key, -1 for one that stays.
func (s *Server) remaining(name string, form func(at int64) int64) answer {
	return func(p *server.Peer, args []string) {
		if len(args) != 1 {
			p.WriteError("ERR wrong number of arguments for '" + strings.ToLower(name) + "' command")
			return
		}
		_, there := (*s.tables.types)[args[0]]
		at, expires := s.expiry.at[args[0]]
		switch {
		case !there:
			p.WriteInt(-2)
		case !expires:
			p.WriteInt(-1)
		default:
			p.WriteInt(int(form(at)))
		}
	}
}

// config answers CONFIG GET for what clients look at; nothing can be set.
func (s *Server) config(p *server.Peer, args []string) {
	if len(args) < 2 || !strings.EqualFold(args[0], "GET") {
		p.WriteError("ERR the embedded store serves CONFIG GET only")
		return
	}
	var found []string
	for _, kv := range [][2]string{
		{"maxmemory-policy", "noeviction"}, {"maxmemory", "0"}, {"appendonly", "yes"},
		{"appendfsync", "always"}, {"databases", "1"}, {"save", ""},
	} {
		if slices.ContainsFunc(args[1:], func(pattern string) bool {
			ok, _ := path.Match(strings.ToLower(pattern), kv[0])
			return ok
		}) {
			found = append(found, kv[0], kv[1])
		}
	}
	p.Block(func(w *server.Writer) {
		w.WriteMapLen(len(found) / 2)
		for _, v := range found {
			w.WriteBulk(v)
		}
	})
}

func (s *Server) info(p *server.Peer, args []string) {
	sections := [][2]string{
		{"server", fmt.Sprintf("redis_version:%s\r\nredis_mode:standalone\r\nprocess_id:%d\r\ntcp_port:0\r\n", version, os.Getpid())},
		{"clients", fmt.Sprintf("connected_clients:%d\r\n", len(s.conns))},
		{"memory", fmt.Sprintf("used_memory:%[1]d\r\nused_memory_peak:%[1]d\r\nmaxmemory:0\r\nmaxmemory_policy:noeviction\r\n", heapBytes())},
		{"persistence", fmt.Sprintf("loading:0\r\naof_enabled:1\r\naof_current_size:%d\r\n", s.wal.bytes())},
		{"stats", fmt.Sprintf("total_commands_processed:%d\r\n", s.commands.Load())},
		{"replication", "role:master\r\nconnected_slaves:0\r\n"},
		{"cluster", "cluster_enabled:0\r\n"},
		{"keyspace", fmt.Sprintf("db0:keys=%d,expires=%d\r\n", len(*s.tables.types), len(s.expiry.at))},
	}
	var b strings.Builder
	for _, sec := range sections {
		if wantsSection(args, sec[0]) {
			fmt.Fprintf(&b, "# %s%s\r\n%s\r\n", strings.ToUpper(sec[0][:1]), sec[0][1:], sec[1])
		}
	}
	p.WriteBulk(b.String())
}

func wantsSection(args []string, section string) bool {
	return len(args) == 0 || slices.ContainsFunc(args, func(a string) bool {
		a = strings.ToLower(a)
		return a == section || a == "all" || a == "default" || a == "everything"
	})
}

func heapBytes() uint64 {
	m := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(m)
	return m[0].Value.Uint64()
}

func (s *Server) pubsub(p *server.Peer, args []string) {
	sub := ""
	if len(args) > 0 {
		sub = strings.ToUpper(args[0])
	}
	switch sub {
	case "NUMSUB":
		p.WriteLen(2 * len(args[1:]))
		for _, ch := range args[1:] {
			p.WriteBulk(ch)
			p.WriteInt(len(s.subs[ch]))
		}
	case "NUMPAT":
		p.WriteInt(0)
	case "CHANNELS":
		var found []string
		for ch := range s.subs {
			if ok, _ := path.Match(strings.Join(args[1:], ""), ch); ok || len(args) == 1 {
				found = append(found, ch)
			}
		}
		slices.Sort(found)
		p.WriteStrings(found)
	default:
		p.WriteError("ERR unknown subcommand. Try PUBSUB CHANNELS, NUMSUB or NUMPAT.")
	}
}
