package kv

import (
	"bytes"
	"strings"
	"time"

	"github.com/alicebob/miniredis/v2/server"
)

// begin sets the time of one top-level command or EXEC and removes the keys that
// have expired by then.
func (s *Server) begin() {
	s.setTime(s.o.Now().UnixMicro())
	s.record = s.record[:0]
	for {
		key, due := s.expiry.due(s.micros / 1000)
		if !due {
			return
		}
		s.write([]string{"DEL", key}, false)
		s.expiry.drop(key)
	}
}

// finish hands what was written to the log, as one record.
func (s *Server) finish() {
	if len(s.record) > 0 {
		s.wal.append(s.micros, s.record)
	}
	s.record = s.record[:0]
	s.tables.forget()
}

func (s *Server) setTime(micros int64) {
	s.micros = micros
	s.mr.SetTime(time.UnixMicro(micros).UTC())
}

// call runs one command that is not bound to its connection.
func (s *Server) call(p *server.Peer, req []string) {
	name := strings.ToUpper(req[0])
	if s.answer(p, name, req) {
		return
	}
	s.dispatch(p, req)
}

// answer does what miniredis must not do alone: writes, which are logged, what
// it does not know as a Redis would, and refusals. It says whether it did.
func (s *Server) answer(p *server.Peer, name string, req []string) bool {
	if _, ok := s.writes[name]; ok {
		p.WriteRaw(string(s.write(req, p.Resp3)))
		return true
	}
	if a, ok := s.answers[name]; ok {
		a(p, req[1:])
		return true
	}
	if why := s.refusal(name, req[1:]); why != "" {
		p.WriteError(why)
		return true
	}
	return false
}

// dispatch lets miniredis run a command as it is.
func (s *Server) dispatch(p *server.Peer, req []string) {
	s.direct = true
	s.srv.Dispatch(p, req)
	s.direct = false
}

// hook sees every command before miniredis runs it. Those that do not come from
// dispatch are redis.call in a script: their effects are what is logged, in
// place of the script.
func (s *Server) hook(p *server.Peer, name string, args ...string) bool {
	if s.direct {
		s.direct = false
		return false
	}
	if connectionBound(name) {
		p.WriteError("ERR This Redis command is not allowed from script")
		return true
	}
	return s.answer(p, name, append([]string{name}, args...))
}

// write runs a command of the table of writes, logs it unless it had no effect,
// and returns the reply, which is valid until the next call.
func (s *Server) write(req []string, resp3 bool) []byte {
	name := strings.ToUpper(req[0])
	spec, args := s.writes[name], req[1:]
	keys := spec.keys(args)
	s.prepare(name, keys)
	s.reply.Reset()
	s.inner.Resp3 = resp3
	s.dispatch(s.inner, req)
	s.inner.Flush()
	reply := s.reply.Bytes()
	moved := s.settle(name, keys)
	if moved || !spec.idled(name, args, reply) {
		s.record = appendWrite(s.record, isError(reply), req)
	}
	return reply
}

func isError(reply []byte) bool { return bytes.HasPrefix(reply, []byte("-")) }

// prepare saves the keys for a snapshot in the making, and tells miniredis how
// long each has to live as of now.
func (s *Server) prepare(name string, keys []string) {
	if isFlush(name) {
		s.snap.saveAll()
	}
	for _, k := range keys {
		s.snap.save(k)
		if at, ok := s.expiry.at[k]; ok {
			(*s.tables.ttl)[k] = time.Duration(at*1000-s.micros) * time.Microsecond
		}
	}
}

// settle learns from miniredis when the keys expire now, and says whether that
// has changed.
func (s *Server) settle(name string, keys []string) bool {
	if isFlush(name) {
		s.expiry.reset()
		return true
	}
	moved := false
	for _, k := range keys {
		if s.tables.empty(k) {
			s.dispatch(s.discard, []string{"DEL", k})
		}
		s.tables.tidy(k)
		if ttl, expires := (*s.tables.ttl)[k]; expires {
			moved = s.expiry.set(k, (s.micros+ttl.Microseconds())/1000) || moved
		} else {
			moved = s.expiry.drop(k) || moved
		}
	}
	return moved
}

func isFlush(name string) bool { return name == "FLUSHALL" || name == "FLUSHDB" }
