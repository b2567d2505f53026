package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
	"sync"

	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/deploy/servers"
)

// serveBare is the floor: the same framework, doing nothing.
func serveBare(addr string) error {
	app := fiber.New(fiber.Config{DisableStartupMessage: true})
	app.Post("/*", func(c *fiber.Ctx) error {
		c.Status(fiber.StatusNoContent)
		return nil
	})
	return app.Listen(addr)
}

// bare is the floor's process.
type bare struct {
	proc *exec.Cmd
	addr string
}

// bare starts the floor, with further flags of this program.
func (p *peers) bare(ctx context.Context, flags ...string) (*bare, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	b := &bare{addr: servers.FreeAddr()}
	if b.proc, err = p.Start(ctx, "bare", nil, self, append([]string{"-bare", b.addr}, flags...)...); err != nil {
		return nil, err
	}
	return b, servers.Reachable(ctx, b.addr)
}

// round measures the floor with the load that the gateway gets: the same
// client, the same requests.
func (b *bare) round(ctx context.Context, token string, s settings) (outcome, error) {
	before := cpu(b.proc.Process.Pid)
	l := newLoad(b.addr, token, s)
	if err := l.run(ctx, s.seconds); err != nil {
		return outcome{}, err
	}
	o := l.result()
	o.cpu = cpu(b.proc.Process.Pid) - before
	return o, nil
}

// serveHGETALL is the floor of the latest readings: the same framework, one
// HGETALL of the device's hash, its fields and values as JSON. It speaks to Redis
// without a client library, which costs less than any.
func serveHGETALL(addr, redis string) error {
	app := fiber.New(fiber.Config{DisableStartupMessage: true})
	pool := &redisPool{addr: redis}
	app.Get("/:device", func(c *fiber.Ctx) error {
		fields, err := pool.hgetall("{a1}:latest:" + c.Params("device"))
		if err != nil {
			return err
		}
		return c.JSON(fields)
	})
	return app.Listen(addr)
}

// redisPool keeps connections that are idle.
type redisPool struct {
	addr string
	mu   sync.Mutex
	idle []*redisConn
}

type redisConn struct {
	net.Conn
	answers *bufio.Reader
}

func (p *redisPool) conn() (*redisConn, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if n := len(p.idle); n > 0 {
		c := p.idle[n-1]
		p.idle = p.idle[:n-1]
		return c, nil
	}
	c, err := net.Dial("tcp", p.addr)
	if err != nil {
		return nil, err
	}
	return &redisConn{c, bufio.NewReader(c)}, nil
}

func (p *redisPool) hgetall(key string) (map[string]string, error) {
	c, err := p.conn()
	if err != nil {
		return nil, err
	}
	if _, err := fmt.Fprintf(c, "*2\r\n$7\r\nHGETALL\r\n$%d\r\n%s\r\n", len(key), key); err != nil {
		return nil, err
	}
	n, err := c.length('*')
	if err != nil {
		return nil, err
	}
	fields := make(map[string]string, n/2)
	for range n / 2 {
		name, err := c.text()
		if err != nil {
			return nil, err
		}
		if fields[name], err = c.text(); err != nil {
			return nil, err
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.idle = append(p.idle, c)
	return fields, nil
}

// length reads the line of an array or a text.
func (c *redisConn) length(kind byte) (int, error) {
	line, err := c.answers.ReadString('\n')
	if err != nil || len(line) < 4 || line[0] != kind {
		return 0, errors.Join(fmt.Errorf("redis said %q", line), err)
	}
	return strconv.Atoi(line[1 : len(line)-2])
}

func (c *redisConn) text() (string, error) {
	n, err := c.length('$')
	if err != nil {
		return "", err
	}
	b := make([]byte, n+2)
	_, err = io.ReadFull(c.answers, b)
	return string(b[:n]), err
}
