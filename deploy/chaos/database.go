package main

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"syscall"
	"time"

	"github.com/penstock/penstock/deploy/servers"
)

// databaseFaults are those of a PostgreSQL without a standby, behind a proxy with an address.
func (s *site) databaseFaults(server *servers.Server, addr string) []fault {
	return slices.Concat(s.afterAChange(server), []fault{
		{putBack, s.restored(server)},
		s.deadHosts(addr),
	})
}

// afterAChange kills PostgreSQL just after a token was added, or the inventory applied
// once more, also by a gateway that starts. No gateway may refuse a token that it has
// checked before.
func (s *site) afterAChange(server *servers.Server) []fault {
	struck := func(change func(ctx context.Context) error) func(context.Context, time.Duration) error {
		return func(ctx context.Context, lasts time.Duration) error {
			return s.unnoticed(ctx, func() error {
				if err := change(ctx); err != nil {
					return err
				}
				return killed(ctx, server, lasts)
			})
		}
	}
	return []fault{
		{"a token is added and PostgreSQL killed", struck(func(ctx context.Context) error {
			return s.admin(ctx, http.MethodPost, "/admin/tokens", `{"account":"chaos","scopes":["iot"]}`, nil)
		})},
		{"the inventory is applied and PostgreSQL killed", struck(func(ctx context.Context) error {
			return s.admin(ctx, http.MethodPut, "/admin/inventory", string(s.inventory()), nil)
		})},
		{"a gateway is restarted and PostgreSQL killed", func(ctx context.Context, lasts time.Duration) error {
			return s.unnoticed(ctx, func() error {
				g := s.gateway()
				g.balanced.Lock() // it knows no tokens
				defer g.balanced.Unlock()
				g.end(syscall.SIGTERM)
				if err := errors.Join(s.startGateway(ctx, g), killed(ctx, server, lasts)); err != nil {
					return err
				}
				return g.ready(ctx)
			})
		}},
	}
}

// deadHosts restarts a gateway with hosts in the URL of its database that refuse and
// that never answer, in front of the real one.
func (s *site) deadHosts(addr string) fault {
	return fault{"PostgreSQL's other hosts refuse and never answer", func(ctx context.Context, lasts time.Duration) error {
		silent, err := newProxy(addr)
		if err != nil {
			return err
		}
		silent.begin(stalled)
		defer func() {
			silent.heal()
			_ = silent.listener.Close()
		}()
		g := s.gateway()
		env := g.env
		g.end(syscall.SIGTERM)
		g.env = append(slices.Clone(env), "PENSTOCK_DATABASE_URL="+servers.PostgresURL(servers.FreeAddr()+","+silent.addr+","+addr))
		if err := s.startGateway(ctx, g); err != nil {
			return err
		}
		wait(ctx, lasts)
		g.end(syscall.SIGTERM)
		g.env = env
		return s.startGateway(ctx, g)
	}}
}
