package kv

import (
	"maps"
	"slices"
	"strconv"
)

// snapshotArgs is about how many arguments a command of a snapshot has.
const snapshotArgs = 1024

// snapshot collects the state of one moment while the store goes on: a key is
// saved when its turn comes, or just before it is changed for the first time.
// A nil snapshot saves nothing.
type snapshot struct {
	s       *Server
	pending map[string]struct{}
	buf     []byte // records, one for each key
}

func newSnapshot(s *Server) *snapshot {
	p := make(map[string]struct{}, len(*s.tables.types))
	for k := range *s.tables.types {
		p[k] = struct{}{}
	}
	return &snapshot{s: s, pending: p}
}

func (n *snapshot) save(key string) {
	if n == nil {
		return
	}
	if _, ok := n.pending[key]; !ok {
		return
	}
	delete(n.pending, key)
	writes := n.s.tables.dump(nil, key)
	if at, ok := n.s.expiry.at[key]; ok {
		writes = appendWrite(writes, false, []string{"PEXPIREAT", key, strconv.FormatInt(at, 10)})
	}
	n.buf = appendRecord(n.buf, n.s.micros, writes)
}

func (n *snapshot) saveAll() {
	if n == nil {
		return
	}
	for k := range n.pending {
		n.save(k)
	}
}

// some saves keys until there is about as much to write as a frame should hold.
func (n *snapshot) some(bytes int) {
	for k := range n.pending {
		if len(n.buf) >= bytes {
			return
		}
		n.save(k)
	}
}

// dump appends the writes that make a key what it is.
func (t tables) dump(b []byte, key string) []byte {
	switch (*t.types)[key] {
	case "string":
		return appendWrite(b, false, []string{"SET", key, (*t.strings)[key]})
	case "hash":
		var args []string
		for f, v := range (*t.hashes)[key] {
			args = append(args, f, v)
		}
		return appendChunks(b, "HSET", key, args)
	case "list":
		return appendChunks(b, "RPUSH", key, (*t.lists)[key])
	case "set":
		return appendChunks(b, "SADD", key, slices.Collect(maps.Keys((*t.sets)[key])))
	case "zset":
		var args []string
		for m, score := range (*t.zsets)[key] {
			args = append(args, strconv.FormatFloat(score, 'g', -1, 64), m)
		}
		return appendChunks(b, "ZADD", key, args)
	case "stream":
		return dumpStream(b, key, (*t.streams)[key])
	}
	return b
}

func appendChunks(b []byte, name, key string, args []string) []byte {
	for chunk := range slices.Chunk(args, snapshotArgs) {
		b = appendWrite(b, false, append([]string{name, key}, chunk...))
	}
	return b
}

// dumpStream adds the last identifier and removes it again when its entry is
// gone, because the next one must still be greater.
func dumpStream(b []byte, key string, st *stream) []byte {
	last := ""
	for _, e := range st.entries {
		b = appendWrite(b, false, append([]string{"XADD", key, e.ID}, e.Values...))
		last = e.ID
	}
	if id := st.lastAllocatedID; id != "" && id != last {
		b = appendWrite(b, false, []string{"XADD", key, id, "deleted", ""})
		b = appendWrite(b, false, []string{"XDEL", key, id})
	}
	return b
}
