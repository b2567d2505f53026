package kv

import "strconv"

// snapshotArgs is about how many arguments a command of a snapshot has.
const snapshotArgs = 1024

// snapshot collects the state of one moment while the store goes on: a key is
// saved when its turn comes, or just before it is changed for the first time.
// A nil snapshot saves nothing.
type snapshot struct {
	s       *Server
	pending map[string]struct{}
	frames  [][]byte // records; a key has one or several
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
	var writes []byte
	write := func(args []string) {
		if writes = appendWrite(writes, false, args); len(writes) >= snapshotFrame {
			n.add(writes)
			writes = nil
		}
	}
	n.s.tables.dump(key, write)
	if at, ok := n.s.expiry.at[key]; ok {
		write([]string{"PEXPIREAT", key, strconv.FormatInt(at, 10)})
	}
	if len(writes) > 0 {
		n.add(writes)
	}
}

// add puts a record into the last frame, or into a new one if that is full.
func (n *snapshot) add(writes []byte) {
	last := len(n.frames) - 1
	if last < 0 || len(n.frames[last])+len(writes) > 2*snapshotFrame {
		n.frames, last = append(n.frames, nil), last+1
	}
	n.frames[last] = appendRecord(n.frames[last], n.s.micros, writes)
}

func (n *snapshot) saveAll() {
	if n == nil {
		return
	}
	for k := range n.pending {
		n.save(k)
	}
}

// some saves keys until there is a frame to write.
func (n *snapshot) some() {
	for k := range n.pending {
		if len(n.frames) > 1 || len(n.frames) == 1 && len(n.frames[0]) >= snapshotFrame {
			return
		}
		n.save(k)
	}
}

// dump tells the writes that make a key what it is.
func (t tables) dump(key string, write func(args []string)) {
	switch (*t.types)[key] {
	case "string":
		write([]string{"SET", key, (*t.strings)[key]})
	case "hash":
		c := chunks{write: write, head: []string{"HSET", key}}
		for f, v := range (*t.hashes)[key] {
			c.add(f, v)
		}
		c.end()
	case "list":
		c := chunks{write: write, head: []string{"RPUSH", key}}
		for _, v := range (*t.lists)[key] {
			c.add(v)
		}
		c.end()
	case "set":
		c := chunks{write: write, head: []string{"SADD", key}}
		for m := range (*t.sets)[key] {
			c.add(m)
		}
		c.end()
	case "zset":
		c := chunks{write: write, head: []string{"ZADD", key}}
		for m, score := range (*t.zsets)[key] {
			c.add(strconv.FormatFloat(score, 'g', -1, 64), m)
		}
		c.end()
	case "stream":
		dumpStream(key, (*t.streams)[key], write)
	}
}

// chunks makes commands of many arguments, none too long.
type chunks struct {
	write func(args []string)
	head  []string
	args  []string
	bytes int
}

func (c *chunks) add(args ...string) {
	c.args = append(c.args, args...)
	for _, a := range args {
		c.bytes += len(a)
	}
	if len(c.args) >= snapshotArgs || c.bytes >= snapshotFrame {
		c.end()
	}
}

func (c *chunks) end() {
	if len(c.args) > 0 {
		c.write(append(c.head[:2:2], c.args...))
	}
	c.args, c.bytes = nil, 0
}

// dumpStream adds the last identifier and removes it again when its entry is
// gone, because the next one must still be greater.
func dumpStream(key string, st *stream, write func(args []string)) {
	last := ""
	for _, e := range st.entries {
		write(append([]string{"XADD", key, e.ID}, e.Values...))
		last = e.ID
	}
	if id := st.lastAllocatedID; id != "" && id != last {
		write([]string{"XADD", key, id, "deleted", ""})
		write([]string{"XDEL", key, id})
	}
}
