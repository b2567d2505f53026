package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
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

// startBackends starts the servers, and returns the settings that name them.
func (s *site) startBackends(ctx context.Context) (env []string, err error) {
	if s.kind.name == onSQLite {
		return nil, nil
	}
	database, err := s.startDatabase(ctx)
	if err != nil {
		return nil, err
	}
	redis, err := s.startRedis(ctx)
	if err != nil {
		return nil, err
	}
	dir, err := s.directory("influxdb")
	if err != nil {
		return nil, err
	}
	server, err := s.run.Influx(ctx, dir)
	if err != nil {
		return nil, err
	}
	addr, err := s.behindProxy("InfluxDB", server, 3)
	if err != nil {
		return nil, err
	}
	if s.answers, err = newAnswers(addr); err != nil {
		return nil, err
	}
	s.special = append(s.special, on(3, s.answers.faults())...)
	return []string{
		"PENSTOCK_DATABASE_URL=" + database, "PENSTOCK_REDIS_URL=" + redis,
		"PENSTOCK_INFLUX_URL=http://" + s.answers.addr, "PENSTOCK_INFLUX_BUCKET=chaos",
	}, nil
}

// directory makes a directory for a server's data.
func (s *site) directory(name string) (string, error) {
	dir := filepath.Join(s.run.Dir, name+"-data")
	return dir, os.Mkdir(dir, 0o700)
}

// behindProxy puts a proxy before a server that so many kinds of back ends have, and
// returns its address.
func (s *site) behindProxy(name string, server *servers.Server, kinds int) (addr string, err error) {
	p, err := newProxy(server.Addr)
	if err != nil {
		return "", err
	}
	s.proxies = append(s.proxies, p)
	s.special = append(s.special, on(kinds, append([]fault{
		{name + " is killed", func(ctx context.Context, lasts time.Duration) error { return killed(ctx, server, lasts) }},
		{name + " is frozen", func(ctx context.Context, lasts time.Duration) error { return frozen(ctx, server, lasts) }},
	}, networkFaults(name, p)...))...)
	return p.addr, nil
}

// startDatabase returns the URL of the database.
func (s *site) startDatabase(ctx context.Context) (url string, err error) {
	if s.kind.name == onSentinel {
		pair, err := s.run.PostgresPair(ctx)
		return addFaults(s, pair, err, pairFaults)
	}
	server, err := s.run.Postgres(ctx)
	if err != nil {
		return "", err
	}
	addr, err := s.behindProxy("PostgreSQL", server, 2)
	if s.kind.name == onPostgres {
		s.special = append(s.special, on(1, s.databaseFaults(server, addr))...)
	}
	return servers.PostgresURL(addr), err
}

// addFaults adds the faults of servers that work as one, and returns their URL; err is why
// they could not be started.
func addFaults[S interface{ URL() string }](s *site, set S, err error, faults func(S) []fault) (url string, _ error) {
	if err != nil {
		return "", err
	}
	s.special = append(s.special, on(1, faults(set))...)
	return set.URL(), nil
}

// startRedis returns the URL of Redis.
func (s *site) startRedis(ctx context.Context) (url string, err error) {
	dir, err := s.directory("redis")
	if err != nil {
		return "", err
	}
	switch s.kind.name {
	case onSentinel:
		set, err := s.run.Sentinels(ctx, dir)
		return addFaults(s, set, err, sentinelFaults)
	case onCluster:
		set, err := s.run.RedisCluster(ctx, dir)
		return addFaults(s, set, err, clusterFaults)
	}
	server, err := s.run.Redis(ctx, dir, "--appendonly", "no")
	if err != nil {
		return "", err
	}
	s.special = append(s.special, on(1, []fault{{"Redis is emptied", func(ctx context.Context, _ time.Duration) error { return emptied(ctx, server) }}})...)
	s.redis, err = s.behindProxy("Redis", server, 1)
	return "redis://" + s.redis, err
}

// ownRedis puts a proxy between one gateway and the Redis of all, with faults that strike
// this gateway alone, and returns the settings of that gateway.
func (s *site) ownRedis(gatewayNo int) (env []string, err error) {
	if s.redis == "" {
		return nil, nil
	}
	p, err := newProxy(s.redis)
	if err != nil {
		return nil, err
	}
	s.proxies = append(s.proxies, p)
	name := fmt.Sprintf("Redis for gateway %d alone", gatewayNo+1)
	s.special = append(s.special, on(1, networkFaults(name, p))...)
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

// frozen stops a server for a while.
func frozen(ctx context.Context, server *servers.Server, lasts time.Duration) error {
	servers.SignalAll(server.Cmd, syscall.SIGSTOP)
	defer servers.SignalAll(server.Cmd, syscall.SIGCONT)
	wait(ctx, lasts)
	return nil
}

// emptied empties Redis servers.
func emptied(ctx context.Context, all ...*servers.Server) error {
	for _, one := range all {
		if _, err := servers.AskRedis(ctx, one.Addr, "flushall"); err != nil {
			return err
		}
	}
	return nil
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

// sentinelFaults are those of Redis behind Sentinel.
func sentinelFaults(set *servers.Sentinels) []fault {
	// lost does something to the master until the other server is promoted.
	lost := func(strike func(ctx context.Context, master *servers.Server) (mend func() error, err error)) func(context.Context, time.Duration) error {
		return func(ctx context.Context, _ time.Duration) error {
			master, err := set.Master(ctx)
			if err != nil {
				return err
			}
			mend, err := strike(ctx, master)
			if err != nil {
				return err
			}
			if err := set.Promoted(ctx, master); err != nil {
				return err
			}
			return mend()
		}
	}
	return []fault{
		{"Redis fails over as planned (Sentinel)", func(ctx context.Context, _ time.Duration) error { return set.Switch(ctx) }},
		{"Redis's master is killed (Sentinel)", lost(func(ctx context.Context, master *servers.Server) (func() error, error) {
			return func() error { return master.Start(ctx) }, master.Kill(ctx)
		})},
		{"Redis's master is frozen (Sentinel)", lost(func(_ context.Context, master *servers.Server) (func() error, error) {
			servers.SignalAll(master.Cmd, syscall.SIGSTOP)
			return func() error { servers.SignalAll(master.Cmd, syscall.SIGCONT); return nil }, nil
		})},
		{"Redis is emptied (Sentinel)", func(ctx context.Context, _ time.Duration) error {
			master, err := set.Master(ctx)
			if err != nil {
				return err
			}
			return emptied(ctx, master)
		}},
		{"the Sentinel is killed", func(ctx context.Context, lasts time.Duration) error { return killed(ctx, set.Sentinel, lasts) }},
	}
}

// clusterFaults are those of Redis Cluster.
func clusterFaults(set *servers.RedisCluster) []fault {
	// one does something with a master and its replica once the Cluster is whole.
	one := func(name string, do func(ctx context.Context, master, replica *servers.Server) error) fault {
		return fault{name + " (Cluster)", func(ctx context.Context, _ time.Duration) error {
			replicas, err := set.Roles(ctx)
			if err != nil {
				return err
			}
			for master, replica := range replicas {
				return do(ctx, master, replica)
			}
			return nil
		}}
	}
	return []fault{
		one("Redis fails over as planned", func(ctx context.Context, _, replica *servers.Server) error {
			if said, err := servers.AskRedis(ctx, replica.Addr, "cluster", "failover"); err != nil {
				return err
			} else if !strings.HasPrefix(said, "OK") {
				return errors.New("cluster failover: " + said)
			}
			return set.Promoted(ctx, replica)
		}),
		one("Redis's master is killed", func(ctx context.Context, master, replica *servers.Server) error {
			if err := master.Kill(ctx); err != nil {
				return err
			}
			if err := set.Promoted(ctx, replica); err != nil {
				return err
			}
			return master.Start(ctx)
		}),
		one("Redis's master is frozen", func(ctx context.Context, master, replica *servers.Server) error {
			servers.SignalAll(master.Cmd, syscall.SIGSTOP)
			defer servers.SignalAll(master.Cmd, syscall.SIGCONT)
			return set.Promoted(ctx, replica)
		}),
		{"Redis is emptied (Cluster)", func(ctx context.Context, _ time.Duration) error {
			replicas, err := set.Roles(ctx)
			if err != nil {
				return err
			}
			return emptied(ctx, slices.Collect(maps.Keys(replicas))...)
		}},
		{"all of Redis is killed (Cluster)", func(ctx context.Context, lasts time.Duration) error {
			for _, one := range set.Nodes {
				if err := one.Kill(ctx); err != nil {
					return err
				}
			}
			wait(ctx, lasts)
			for _, one := range set.Nodes {
				if err := one.Start(ctx); err != nil {
					return err
				}
			}
			_, err := set.Roles(ctx)
			return err
		}},
	}
}
