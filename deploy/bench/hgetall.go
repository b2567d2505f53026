package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"sync"

	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/deploy/servers"
)

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

// hgetall starts the floor as a process of its own.
func (p *peers) hgetall(ctx context.Context, redis string) (*bare, error) {
	self, err := executable()
	if err != nil {
		return nil, err
	}
	b := &bare{addr: servers.FreeAddr()}
	if b.proc, err = p.Start(ctx, "hgetall", nil, self, "-bare", b.addr, "-redis", redis); err != nil {
		return nil, err
	}
	return b, servers.Reachable(ctx, b.addr)
}
