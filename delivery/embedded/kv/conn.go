package kv

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"

	"github.com/alicebob/miniredis/v2/server"
)

const (
	readBuffer   = 64 << 10
	maxBatch     = 512     // requests answered with one flush
	lockedBatch  = 16      // requests run before others get their turn
	replyPending = 1 << 20 // bytes of replies that are flushed at once
)

// conn is one client. All of its fields but out belong to its own goroutine
// while that holds the server's lock.
type conn struct {
	s    *Server
	net  *pipeConn
	in   *bufio.Reader
	out  bytes.Buffer
	peer *server.Peer
	quit bool
	seen uint64 // the last record that the replies in out can have seen

	inTx  bool
	dirty bool // the transaction holds a command that was refused
	queue [][]string

	channels map[string]bool
	pushes   chan push // made by the first subscription; from then on the way of all replies
}

func newConn(s *Server, nc *pipeConn) *conn {
	c := &conn{s: s, net: nc, in: bufio.NewReaderSize(nc, readBuffer), channels: map[string]bool{}}
	c.peer = server.NewPeer(bufio.NewWriter(&c.out))
	return c
}

// serve answers requests until the client goes: it takes those that have
// arrived, runs them, waits for the log once and sends the replies.
func (c *conn) serve() {
	defer c.leave()
	for !c.quit {
		reqs, err := c.gather()
		if len(reqs) > 0 && !c.handle(reqs) {
			return
		}
		if errors.Is(err, errProtocol) {
			c.peer.WriteError("ERR " + err.Error())
			c.flush()
		}
		if err != nil {
			return
		}
	}
}

func (c *conn) leave() {
	c.s.mu.Lock()
	c.unsubscribeAll()
	delete(c.s.conns, c)
	c.s.mu.Unlock()
	if c.pushes != nil {
		close(c.pushes) // deliver sends what is left, and then closes
		return
	}
	_ = c.net.Close()
}

func (c *conn) gather() ([][]string, error) {
	var reqs [][]string
	for len(reqs) == 0 || (c.in.Buffered() > 0 && len(reqs) < maxBatch) {
		req, err := readRequest(c.in)
		if err != nil {
			return reqs, err
		}
		reqs = append(reqs, req)
	}
	return reqs, nil
}

// handle says whether the connection can go on.
func (c *conn) handle(reqs [][]string) bool {
	for chunk := range slices.Chunk(reqs, lockedBatch) {
		c.s.mu.Lock()
		looked := false
		for _, req := range chunk {
			looked = c.one(req) || looked
		}
		if looked {
			c.seen = c.s.wal.last()
		}
		c.s.mu.Unlock()
		c.peer.Flush()
		if c.out.Len() > replyPending && !c.flush() {
			return false
		}
	}
	return c.flush()
}

// flush sends the replies when every write that they can have seen is durable.
// When that cannot be had, the client is told nothing: the outcome is unknown.
func (c *conn) flush() bool {
	c.peer.Flush()
	if err := c.s.wal.wait(c.seen); err != nil {
		c.s.o.Logger.Error("embedded store cannot write its log", "err", err)
		return false
	}
	c.s.compactIfDue()
	if c.pushes != nil {
		c.s.mu.Lock()
		c.pushReplies()
		c.s.mu.Unlock()
		return true
	}
	_, err := c.net.Write(c.out.Bytes())
	c.out.Reset()
	if c.out.Cap() > replyPending {
		c.out = bytes.Buffer{}
		c.peer = renew(c.peer, &c.out)
	}
	return err == nil
}

// renew moves a peer's state to a new buffer, so that one large reply does not
// keep its memory for the life of the connection.
func renew(p *server.Peer, out io.Writer) *server.Peer {
	n := server.NewPeer(bufio.NewWriter(out))
	n.Resp3, n.Ctx, n.ClientName = p.Resp3, p.Ctx, p.ClientName
	return n
}

// one runs a request, or queues it for EXEC, and says whether the reply can have
// seen any data. It is called with the lock held.
func (c *conn) one(req []string) bool {
	name := strings.ToUpper(req[0])
	c.s.commands.Add(1)
	if err := c.s.wal.ready(); err != nil && !sessionCommand(name) {
		c.peer.WriteError("MISCONF the embedded store cannot write its log: " + err.Error())
		c.dirty = true
		return false
	}
	switch {
	case name == "MULTI" || name == "EXEC" || name == "DISCARD":
		c.transaction(name, req)
	case c.inTx:
		c.enqueue(name, req)
	case len(c.channels) > 0 && !c.peer.Resp3 && !allowedSubscribed(name):
		c.peer.WriteError("ERR Can't execute '" + strings.ToLower(name) + "': only SUBSCRIBE, UNSUBSCRIBE, PING and QUIT are allowed in this context")
	default:
		c.s.begin()
		c.run(name, req)
		c.s.finish()
	}
	return !sessionCommand(name)
}

// run runs one command within a record. What panics in miniredis is answered
// with an error; what it had logged until then stays.
func (c *conn) run(name string, req []string) {
	defer func() {
		if p := recover(); p != nil {
			c.s.direct = false
			c.s.mr.TryLock()
			c.s.mr.Unlock()
			c.s.o.Logger.Error("embedded store command panicked", "command", name, "panic", p, "stack", string(debug.Stack()))
			c.peer.WriteError("ERR internal error in " + name)
		}
	}()
	if connectionBound(name) {
		c.session(name, req[1:])
		return
	}
	c.s.call(c.peer, req)
}

func (c *conn) transaction(name string, req []string) {
	switch {
	case len(req) != 1:
		c.dirty = true
		c.peer.WriteError("ERR wrong number of arguments for '" + strings.ToLower(name) + "' command")
	case name == "MULTI" && c.inTx:
		c.peer.WriteError("ERR MULTI calls can not be nested")
	case name == "MULTI":
		c.inTx, c.dirty = true, false
		c.peer.WriteOK()
	case !c.inTx:
		c.peer.WriteError("ERR " + name + " without MULTI")
	case name == "DISCARD":
		c.endTx()
		c.peer.WriteOK()
	case c.dirty:
		c.endTx()
		c.peer.WriteError("EXECABORT Transaction discarded because of previous errors.")
	default:
		c.exec()
	}
}

func (c *conn) exec() {
	queue := c.endTx()
	c.s.begin()
	c.peer.WriteRaw("*" + strconv.Itoa(len(queue)) + "\r\n")
	for _, req := range queue {
		c.run(strings.ToUpper(req[0]), req)
	}
	c.s.finish()
}

func (c *conn) endTx() [][]string {
	queue := c.queue
	c.queue, c.inTx, c.dirty = nil, false, false
	return queue
}

// enqueue refuses at once what could not run, as Redis does, so that EXEC does
// nothing then.
func (c *conn) enqueue(name string, req []string) {
	why := c.s.refusal(name, req[1:])
	_, ours := c.s.answers[name]
	switch {
	case name == "SUBSCRIBE" || name == "UNSUBSCRIBE" || name == "WATCH":
		why = "ERR " + name + " is not served inside MULTI"
	case ours || connectionBound(name) || c.s.writes[name].step > 0 || c.s.writes[name].counted:
		why = ""
	case why == "" && !c.s.srv.IsRegisteredCommand(name):
		why = "ERR unknown command '" + name + "'"
	}
	if why != "" {
		c.dirty = true
		c.peer.WriteError(why)
		return
	}
	c.queue = append(c.queue, req)
	c.peer.WriteInline("QUEUED")
}
