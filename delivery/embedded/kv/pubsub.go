package kv

import (
	"bufio"
	"bytes"
	"slices"

	"github.com/alicebob/miniredis/v2/server"
)

// maxPushes is how many messages may wait for a subscriber that does not read.
// One more and it is disconnected, as Redis does.
const maxPushes = 4096

// push is a message for a subscriber, which gets it when record n is durable.
type push struct {
	n   uint64
	raw []byte
}

// subscribe answers through the queue of messages, so that no message overtakes
// the confirmation.
func (c *conn) subscribe(args []string) {
	if len(args) == 0 {
		c.peer.WriteError("ERR wrong number of arguments for 'subscribe' command")
		return
	}
	c.startPushes()
	for _, ch := range args {
		c.channels[ch] = true
		if c.s.subs[ch] == nil {
			c.s.subs[ch] = map[*conn]struct{}{}
		}
		c.s.subs[ch][c] = struct{}{}
		c.confirm("subscribe", ch)
	}
}

func (c *conn) unsubscribe(args []string) {
	c.startPushes()
	if len(args) == 0 {
		for ch := range c.channels {
			args = append(args, ch)
		}
		slices.Sort(args)
	}
	for _, ch := range args {
		c.forgetChannel(ch)
		c.confirm("unsubscribe", ch)
	}
	if len(args) == 0 {
		c.push(c.encode(func(w *server.Writer) {
			w.WritePushLen(3)
			w.WriteBulk("unsubscribe")
			w.WriteNull()
			w.WriteInt(0)
		}))
	}
}

func (c *conn) forgetChannel(ch string) {
	delete(c.channels, ch)
	delete(c.s.subs[ch], c)
	if len(c.s.subs[ch]) == 0 {
		delete(c.s.subs, ch)
	}
}

func (c *conn) unsubscribeAll() {
	for ch := range c.channels {
		c.forgetChannel(ch)
	}
}

func (c *conn) confirm(kind, channel string) {
	c.push(c.encode(func(w *server.Writer) {
		w.WritePushLen(3)
		w.WriteBulk(kind)
		w.WriteBulk(channel)
		w.WriteInt(len(c.channels))
	}))
}

// encode renders a message in the protocol version of the connection.
func (c *conn) encode(f func(*server.Writer)) []byte {
	var b bytes.Buffer
	p := server.NewPeer(bufio.NewWriter(&b))
	p.Resp3 = c.peer.Resp3
	p.Block(f)
	p.Flush()
	return b.Bytes()
}

func (c *conn) push(raw []byte) {
	n := c.s.wal.last()
	if len(c.s.record) > 0 {
		n++ // the record that this command is about to append
	}
	select {
	case c.pushes <- push{n, raw}:
	default:
		_ = c.net.Close()
	}
}

func (c *conn) startPushes() {
	if c.pushes == nil {
		c.pushes = make(chan push, maxPushes)
		c.s.work.Go(c.deliver)
	}
	c.pushReplies()
}

// pushReplies puts the replies that have not been sent behind the messages.
func (c *conn) pushReplies() {
	c.peer.Flush()
	if c.out.Len() > 0 {
		c.push(bytes.Clone(c.out.Bytes()))
		c.out.Reset()
	}
}

func (c *conn) deliver() {
	defer func() { _ = c.net.Close() }()
	for m := range c.pushes {
		if c.s.wal.wait(m.n) != nil {
			_ = c.net.Close()
		}
		_, _ = c.net.Write(m.raw) // a client that went away is noticed by its reader
	}
}

// publish is PUBLISH; it is not logged, a message is for those who listen now.
func (s *Server) publish(p *server.Peer, args []string) {
	if len(args) != 2 {
		p.WriteError("ERR wrong number of arguments for 'publish' command")
		return
	}
	for c := range s.subs[args[0]] {
		c.push(c.encode(func(w *server.Writer) {
			w.WritePushLen(3)
			w.WriteBulk("message")
			w.WriteBulk(args[0])
			w.WriteBulk(args[1])
		}))
	}
	p.WriteInt(len(s.subs[args[0]]))
}
