package main

import (
	"context"
	"os"
	"os/exec"

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

// bare starts the floor.
func (p *peers) bare(ctx context.Context) (*bare, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	b := &bare{addr: servers.FreeAddr()}
	if b.proc, err = p.Start(ctx, "bare", nil, self, "-bare", b.addr); err != nil {
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
