package main

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	"github.com/penstock/penstock/deploy/servers"
)

// backendKind is a kind of back ends and the number of gateways that use them.
type backendKind struct {
	name     string
	gateways int
	share    int // of the run's duration and faults, relative to the other kinds
}

// The kinds of back ends.
const (
	onSQLite   = "sqlite"
	onPostgres = "postgres" // PostgreSQL, Redis and InfluxDB, each behind a proxy
	onSentinel = "sentinel" // PostgreSQL with a synchronous standby, Redis with Sentinel, InfluxDB
	onCluster  = "cluster"  // PostgreSQL, Redis Cluster, InfluxDB
)

func backendKinds() []backendKind {
	return []backendKind{{onSQLite, 1, 1}, {onPostgres, 2, 3}, {onSentinel, 2, 3}, {onCluster, 3, 3}}
}

// startBackends starts the back ends, adds their faults to s.backendFaults and returns the
// gateway's settings for them.
func (s *site) startBackends(ctx context.Context) (env []string, err error) {
	if s.kind.name == onSQLite {
		return nil, nil
	}
	database, err := s.startDatabase(ctx)
	if err != nil {
		return nil, err
	}
	redis, err := s.startRedis(ctx, s.run.Dir)
	if err != nil {
		return nil, err
	}
	server, err := s.run.Influx(ctx, s.run.Dir)
	if err != nil {
		return nil, err
	}
	addr, err := s.behindProxy("InfluxDB", server)
	if err != nil {
		return nil, err
	}
	if s.influx, err = newInfluxProxy(addr); err != nil {
		return nil, err
	}
	s.backendFaults = append(s.backendFaults, s.influx.faults()...)
	return []string{
		"PENSTOCK_DATABASE_URL=" + database, "PENSTOCK_REDIS_URL=" + redis,
		"PENSTOCK_INFLUX_URL=http://" + s.influx.addr, "PENSTOCK_INFLUX_BUCKET=chaos",
	}, nil
}

// behindProxy starts a proxy in front of a server, adds the faults of both and returns the proxy's
// address.
func (s *site) behindProxy(name string, server *servers.Server) (addr string, err error) {
	p, err := s.proxy(name, server.Addr)
	if err != nil {
		return "", err
	}
	s.backendFaults = append(s.backendFaults,
		fault{name + " is killed", func(ctx context.Context, length time.Duration) error { return killServer(ctx, server, length) }},
		fault{name + " is frozen", func(ctx context.Context, length time.Duration) error {
			servers.SignalAll(server.Cmd, syscall.SIGSTOP)
			defer servers.SignalAll(server.Cmd, syscall.SIGCONT)
			wait(ctx, length)
			return nil
		}})
	return p.addr, nil
}

// proxy starts a proxy in front of a server and adds its network faults.
func (s *site) proxy(name, target string) (*proxy, error) {
	p, err := newProxy(target)
	if err != nil {
		return nil, err
	}
	s.proxies, s.backendFaults = append(s.proxies, p), append(s.backendFaults, networkFaults(name, p)...)
	return p, nil
}

// startDatabase starts PostgreSQL, adds its faults and returns its URL.
func (s *site) startDatabase(ctx context.Context) (url string, err error) {
	if s.kind.name == onSentinel {
		pair, err := s.run.PostgresPair(ctx)
		if err != nil {
			return "", err
		}
		s.backendFaults = append(s.backendFaults, pairFaults(pair)...)
		return pair.URL(), nil
	}
	server, err := s.run.Postgres(ctx)
	if err != nil {
		return "", err
	}
	addr, err := s.behindProxy("PostgreSQL", server)
	if s.kind.name == onPostgres {
		s.backendFaults = append(s.backendFaults, s.databaseFaults(server, addr)...)
	}
	return servers.PostgresURL(addr), err
}

// startRedis starts Redis, adds its faults and returns its URL.
func (s *site) startRedis(ctx context.Context, dir string) (url string, err error) {
	switch s.kind.name {
	case onSentinel:
		set, err := s.run.Sentinels(ctx, dir)
		if err != nil {
			return "", err
		}
		s.backendFaults = append(s.backendFaults, redisFaults("Sentinel", set)...)
		s.backendFaults = append(s.backendFaults, fault{"the Sentinel is killed", func(ctx context.Context, length time.Duration) error {
			return killServer(ctx, set.Sentinel, length)
		}})
		return set.URL(), nil
	case onCluster:
		set, err := s.run.RedisCluster(ctx, dir)
		if err != nil {
			return "", err
		}
		s.backendFaults = append(s.backendFaults, redisFaults("Cluster", set)...)
		return set.URL(), nil
	}
	server, err := s.run.Redis(ctx, dir, "--appendonly", "no")
	if err != nil {
		return "", err
	}
	s.backendFaults = append(s.backendFaults, fault{"Redis is emptied", func(ctx context.Context, _ time.Duration) error { return flushRedis(ctx, server) }})
	s.redis, err = s.behindProxy("Redis", server)
	return "redis://" + s.redis, err
}

// ownRedis starts a proxy between one gateway and the shared Redis, adds faults that strike only
// this gateway and returns its settings. If no Redis is shared, it returns nil.
func (s *site) ownRedis(gatewayNo int) (env []string, err error) {
	if s.redis == "" {
		return nil, nil
	}
	p, err := s.proxy(fmt.Sprintf("Redis for gateway %d alone", gatewayNo+1), s.redis)
	if err != nil {
		return nil, err
	}
	return []string{"PENSTOCK_REDIS_URL=redis://" + p.addr}, nil
}

// killServer kills a server and starts it again later.
func killServer(ctx context.Context, server *servers.Server, length time.Duration) error {
	if err := server.Kill(ctx); err != nil {
		return err
	}
	wait(ctx, length)
	return server.Start(ctx)
}

// flushRedis deletes all keys of a Redis server.
func flushRedis(ctx context.Context, server *servers.Server) error {
	_, err := servers.CallRedis(ctx, server.Addr, "flushall")
	return err
}

// pairFaults returns the faults of a PostgreSQL with a synchronous standby.
func pairFaults(pair *servers.PostgresPair) []fault {
	return []fault{
		{"PostgreSQL's primary is lost, the standby promoted", func(ctx context.Context, length time.Duration) error {
			if err := pair.Primary.Kill(ctx); err != nil {
				return err
			}
			wait(ctx, length)
			return pair.Promote(ctx, func(*servers.Server) error { return nil })
		}},
		{"PostgreSQL's primary is frozen, the standby promoted", func(ctx context.Context, length time.Duration) error {
			servers.SignalAll(pair.Primary.Cmd, syscall.SIGSTOP)
			wait(ctx, length)
			return pair.Promote(ctx, func(former *servers.Server) error {
				wait(ctx, length)
				return former.Kill(ctx)
			})
		}},
		{"PostgreSQL's old primary comes back beside the promoted one", func(ctx context.Context, length time.Duration) error {
			if err := pair.Primary.Kill(ctx); err != nil {
				return err
			}
			return pair.Promote(ctx, func(former *servers.Server) error {
				if err := servers.StartAlone(ctx, former); err != nil {
					return err
				}
				wait(ctx, length)
				return former.Kill(ctx)
			})
		}},
		{"PostgreSQL's standby is killed", func(ctx context.Context, length time.Duration) error { return killServer(ctx, pair.Standby, length) }},
	}
}

// redisSet is a set of Redis servers in which replicas can take over from masters.
type redisSet interface {
	Roles(ctx context.Context) (replicas map[*servers.Server]*servers.Server, err error)
	Switch(ctx context.Context, replica *servers.Server) error
	Promoted(ctx context.Context, replica *servers.Server) error
}

// redisFaults returns the faults of a set. One fault empties all masters; the others wait until each
// master has a replica that is up to date, and strike any of the masters.
func redisFaults(name string, set redisSet) []fault {
	onReplicated := func(label string, strike func(ctx context.Context, master, replica *servers.Server) error) fault {
		return fault{label + " (" + name + ")", func(ctx context.Context, _ time.Duration) error {
			replicas, err := set.Roles(ctx)
			for master, replica := range replicas {
				return strike(ctx, master, replica)
			}
			return err
		}}
	}
	return []fault{
		onReplicated("Redis fails over as planned", func(ctx context.Context, _, replica *servers.Server) error { return set.Switch(ctx, replica) }),
		onReplicated("Redis's master is killed", func(ctx context.Context, master, replica *servers.Server) error {
			if err := errors.Join(master.Kill(ctx), set.Promoted(ctx, replica)); err != nil {
				return err
			}
			return master.Start(ctx)
		}),
		onReplicated("Redis's master is frozen", func(ctx context.Context, master, replica *servers.Server) error {
			servers.SignalAll(master.Cmd, syscall.SIGSTOP)
			defer servers.SignalAll(master.Cmd, syscall.SIGCONT)
			return set.Promoted(ctx, replica)
		}),
		{"Redis is emptied (" + name + ")", func(ctx context.Context, _ time.Duration) error {
			replicas, err := set.Roles(ctx)
			for master := range replicas {
				err = errors.Join(err, flushRedis(ctx, master))
			}
			return err
		}},
	}
}
