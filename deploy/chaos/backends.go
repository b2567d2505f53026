package main

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	"github.com/penstock/penstock/deploy/servers"
)

// backendKind is a set of back ends for the gateways of a site.
type backendKind struct {
	name     string
	gateways int
	share    int // of the load and the faults, of all kinds together
}

// The kinds of back ends.
const (
	onSQLite   = "sqlite"
	onPostgres = "postgres" // a PostgreSQL, a Redis, an InfluxDB, and networks between
	onSentinel = "sentinel" // a PostgreSQL with a synchronous standby, Redis behind Sentinel
	onCluster  = "cluster"  // Redis Cluster
)

func backendKinds() []backendKind {
	return []backendKind{{onSQLite, 1, 1}, {onPostgres, 2, 3}, {onSentinel, 2, 3}, {onCluster, 3, 3}}
}

// startBackends starts the servers with their faults, and returns the settings that name
// them.
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
	if s.answers, err = newAnswers(addr); err != nil {
		return nil, err
	}
	s.special = append(s.special, s.answers.faults()...)
	return []string{
		"PENSTOCK_DATABASE_URL=" + database, "PENSTOCK_REDIS_URL=" + redis,
		"PENSTOCK_INFLUX_URL=http://" + s.answers.addr, "PENSTOCK_INFLUX_BUCKET=chaos",
	}, nil
}

// behindProxy puts a proxy before a server and returns its address.
func (s *site) behindProxy(name string, server *servers.Server) (addr string, err error) {
	p, err := s.proxy(name, server.Addr)
	if err != nil {
		return "", err
	}
	s.special = append(s.special,
		fault{name + " is killed", func(ctx context.Context, lasts time.Duration) error { return killed(ctx, server, lasts) }},
		fault{name + " is frozen", func(ctx context.Context, lasts time.Duration) error {
			servers.SignalAll(server.Cmd, syscall.SIGSTOP)
			defer servers.SignalAll(server.Cmd, syscall.SIGCONT)
			wait(ctx, lasts)
			return nil
		}})
	return p.addr, nil
}

// proxy starts a proxy before a server, with its faults.
func (s *site) proxy(name, target string) (*proxy, error) {
	p, err := newProxy(target)
	if err != nil {
		return nil, err
	}
	s.proxies, s.special = append(s.proxies, p), append(s.special, networkFaults(name, p)...)
	return p, nil
}

// startDatabase returns the URL of the database.
func (s *site) startDatabase(ctx context.Context) (url string, err error) {
	if s.kind.name == onSentinel {
		pair, err := s.run.PostgresPair(ctx)
		if err != nil {
			return "", err
		}
		s.special = append(s.special, pairFaults(pair)...)
		return pair.URL(), nil
	}
	server, err := s.run.Postgres(ctx)
	if err != nil {
		return "", err
	}
	addr, err := s.behindProxy("PostgreSQL", server)
	if s.kind.name == onPostgres {
		s.special = append(s.special, s.databaseFaults(server, addr)...)
	}
	return servers.PostgresURL(addr), err
}

// startRedis returns the URL of Redis.
func (s *site) startRedis(ctx context.Context, dir string) (url string, err error) {
	switch s.kind.name {
	case onSentinel:
		set, err := s.run.Sentinels(ctx, dir)
		if err != nil {
			return "", err
		}
		s.special = append(s.special, redisFaults("Sentinel", set)...)
		s.special = append(s.special, fault{"the Sentinel is killed", func(ctx context.Context, lasts time.Duration) error {
			return killed(ctx, set.Sentinel, lasts)
		}})
		return set.URL(), nil
	case onCluster:
		set, err := s.run.RedisCluster(ctx, dir)
		if err != nil {
			return "", err
		}
		s.special = append(s.special, redisFaults("Cluster", set)...)
		return set.URL(), nil
	}
	server, err := s.run.Redis(ctx, dir, "--appendonly", "no")
	if err != nil {
		return "", err
	}
	s.special = append(s.special, fault{"Redis is emptied", func(ctx context.Context, _ time.Duration) error { return emptied(ctx, server) }})
	s.redis, err = s.behindProxy("Redis", server)
	return "redis://" + s.redis, err
}

// ownRedis puts a proxy between one gateway and the Redis of all, with faults that strike
// this gateway alone, and returns the settings of that gateway.
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

// killed kills a server and starts it again later.
func killed(ctx context.Context, server *servers.Server, lasts time.Duration) error {
	if err := server.Kill(ctx); err != nil {
		return err
	}
	wait(ctx, lasts)
	return server.Start(ctx)
}

// emptied empties a Redis server.
func emptied(ctx context.Context, server *servers.Server) error {
	_, err := servers.AskRedis(ctx, server.Addr, "flushall")
	return err
}

// pairFaults are those of a PostgreSQL with a synchronous standby.
func pairFaults(pair *servers.PostgresPair) []fault {
	return []fault{
		{"PostgreSQL's primary is lost, the standby promoted", func(ctx context.Context, lasts time.Duration) error {
			if err := pair.Primary.Kill(ctx); err != nil {
				return err
			}
			wait(ctx, lasts)
			return pair.Promote(ctx, func(*servers.Server) error { return nil })
		}},
		{"PostgreSQL's primary is frozen, the standby promoted", func(ctx context.Context, lasts time.Duration) error {
			servers.SignalAll(pair.Primary.Cmd, syscall.SIGSTOP)
			wait(ctx, lasts)
			return pair.Promote(ctx, func(former *servers.Server) error {
				wait(ctx, lasts)
				return former.Kill(ctx)
			})
		}},
		{"PostgreSQL's old primary comes back beside the promoted one", func(ctx context.Context, lasts time.Duration) error {
			if err := pair.Primary.Kill(ctx); err != nil {
				return err
			}
			return pair.Promote(ctx, func(former *servers.Server) error {
				if err := servers.StartAlone(ctx, former); err != nil {
					return err
				}
				wait(ctx, lasts)
				return former.Kill(ctx)
			})
		}},
		{"PostgreSQL's standby is killed", func(ctx context.Context, lasts time.Duration) error { return killed(ctx, pair.Standby, lasts) }},
	}
}

// redisSet is Redis servers of which some take over from others.
type redisSet interface {
	Roles(ctx context.Context) (replicas map[*servers.Server]*servers.Server, err error)
	Switch(ctx context.Context, replica *servers.Server) error
	Promoted(ctx context.Context, replica *servers.Server) error
}

// redisFaults are those of a set once each of its masters has a replica that is up to date.
func redisFaults(name string, set redisSet) []fault {
	fn := func(label string, strike func(ctx context.Context, master, replica *servers.Server) error) fault {
		return fault{label + " (" + name + ")", func(ctx context.Context, _ time.Duration) error {
			replicas, err := set.Roles(ctx)
			for master, replica := range replicas {
				return strike(ctx, master, replica)
			}
			return err
		}}
	}
	return []fault{
		fn("Redis fails over as planned", func(ctx context.Context, _, replica *servers.Server) error { return set.Switch(ctx, replica) }),
		fn("Redis's master is killed", func(ctx context.Context, master, replica *servers.Server) error {
			if err := errors.Join(master.Kill(ctx), set.Promoted(ctx, replica)); err != nil {
				return err
			}
			return master.Start(ctx)
		}),
		fn("Redis's master is frozen", func(ctx context.Context, master, replica *servers.Server) error {
			servers.SignalAll(master.Cmd, syscall.SIGSTOP)
			defer servers.SignalAll(master.Cmd, syscall.SIGCONT)
			return set.Promoted(ctx, replica)
		}),
		{"Redis is emptied (" + name + ")", func(ctx context.Context, _ time.Duration) error {
			replicas, err := set.Roles(ctx)
			for master := range replicas {
				err = errors.Join(err, emptied(ctx, master))
			}
			return err
		}},
	}
}
