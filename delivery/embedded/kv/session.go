package kv

import (
	"strings"

	"github.com/alicebob/miniredis/v2/server"
)

// version is the Redis whose commands are followed.
const version = "7.2.0"

// connectionBound says whether a command is about the connection it comes from,
// so that a script cannot run it.
func connectionBound(name string) bool {
	switch name {
	case "HELLO", "CLIENT", "SELECT", "SUBSCRIBE", "UNSUBSCRIBE", "QUIT", "PING", "AUTH", "RESET":
		return true
	}
	return false
}

// sessionCommand says whether a command works while the log cannot be written.
func sessionCommand(name string) bool {
	switch name {
	case "HELLO", "CLIENT", "SELECT", "QUIT", "INFO", "CONFIG":
		return true
	}
	return false
}

func allowedSubscribed(name string) bool {
	switch name {
	case "SUBSCRIBE", "UNSUBSCRIBE", "PING", "QUIT", "HELLO", "CLIENT":
		return true
	}
	return false
}

func (c *conn) session(name string, args []string) {
	switch name {
	case "HELLO":
		c.hello(args)
	case "CLIENT":
		c.client(args)
	case "SELECT":
		c.selectDB(args)
	case "SUBSCRIBE":
		c.subscribe(args)
	case "UNSUBSCRIBE":
		c.unsubscribe(args)
	case "PING":
		c.ping(args)
	case "QUIT":
		c.quit = true
		c.peer.WriteOK()
	case "AUTH":
		c.peer.WriteOK() // who can dial is in this process
	case "RESET":
		c.unsubscribeAll()
		c.peer.Resp3 = false
		c.peer.WriteInline("RESET")
	}
}

func (c *conn) hello(args []string) {
	if len(args) > 0 {
		if args[0] != "2" && args[0] != "3" {
			c.peer.WriteError("NOPROTO unsupported protocol version")
			return
		}
		c.peer.Resp3 = args[0] == "3"
	}
	proto := 2
	if c.peer.Resp3 {
		proto = 3
	}
	c.peer.Block(func(w *server.Writer) {
		w.WriteMapLen(7)
		for _, kv := range [][2]string{{"server", "redis"}, {"version", version}, {"mode", "standalone"}, {"role", "master"}} {
			w.WriteBulk(kv[0])
			w.WriteBulk(kv[1])
		}
		w.WriteBulk("proto")
		w.WriteInt(proto)
		w.WriteBulk("id")
		w.WriteInt(1)
		w.WriteBulk("modules")
		w.WriteLen(0)
	})
}

func (c *conn) client(args []string) {
	sub := ""
	if len(args) > 0 {
		sub = strings.ToUpper(args[0])
	}
	switch {
	case sub == "SETNAME" && len(args) == 2:
		c.peer.ClientName = args[1]
		c.peer.WriteOK()
	case sub == "GETNAME" && len(args) == 1:
		c.peer.WriteBulk(c.peer.ClientName)
	case sub == "SETINFO" && len(args) == 3, sub == "NO-EVICT", sub == "NO-TOUCH":
		c.peer.WriteOK()
	case sub == "ID":
		c.peer.WriteInt(1)
	default:
		c.peer.WriteError("ERR unknown subcommand '" + strings.ToLower(sub) + "'. The embedded store serves CLIENT SETNAME, GETNAME, SETINFO and ID.")
	}
}

func (c *conn) selectDB(args []string) {
	switch {
	case len(args) != 1:
		c.peer.WriteError("ERR wrong number of arguments for 'select' command")
	case args[0] != "0":
		c.peer.WriteError("ERR DB index is out of range: the embedded store has database 0 only")
	default:
		c.peer.WriteOK()
	}
}

func (c *conn) ping(args []string) {
	msg := strings.Join(args, " ")
	switch {
	case len(args) > 1:
		c.peer.WriteError("ERR wrong number of arguments for 'ping' command")
	case len(c.channels) > 0 && !c.peer.Resp3:
		c.peer.WriteStrings([]string{"pong", msg})
	case len(args) == 1:
		c.peer.WriteBulk(msg)
	default:
		c.peer.WriteInline("PONG")
	}
}
