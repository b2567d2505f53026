package main

import (
	"context"

	"github.com/gofiber/fiber/v2"
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

// bareHandler measures the floor with the load that the gateway will get.
func bareHandler(ctx context.Context, p *peers, s settings, r *report) error {
	addr := freeAddr()
	self, err := executable()
	if err != nil {
		return err
	}
	proc, err := p.start(ctx, "bare", nil, self, "-bare", addr)
	if err != nil {
		return err
	}
	defer p.kill(proc)
	if err := reachable(ctx, addr); err != nil {
		return err
	}
	before := cpu(proc.Process.Pid)
	l := newLoad(addr, "bare", s)
	if err := l.run(ctx, s.seconds); err != nil {
		return err
	}
	r.bare = l.result()
	r.bare.cpu = cpu(proc.Process.Pid) - before
	return nil
}
