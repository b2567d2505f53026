package main

import (
	"context"
	"os"
	"time"

	"github.com/penstock/penstock/deploy/servers"
)

// backends are the servers beside a gateway, nil if they are embedded.
type backends struct{ postgres, redis, influx *servers.Server }

// used is the processor time of what runs beside the gateway.
type used struct{ postgres, redis, influx, client time.Duration }

// startServers starts a PostgreSQL, a Redis that syncs every second, as it comes,
// and an influxd.
func (d *daemon) startServers(ctx context.Context, dir string) (env []string, err error) {
	b := &d.beside
	if b.postgres, err = d.peers.Postgres(ctx); err != nil {
		return nil, err
	}
	if b.redis, err = d.peers.Redis(ctx, dir, "--appendonly", "yes"); err != nil {
		return nil, err
	}
	if b.influx, err = d.peers.Influx(ctx, dir); err != nil {
		return nil, err
	}
	return []string{
		"PENSTOCK_DATABASE_URL=" + servers.PostgresURL(b.postgres.Addr), "PENSTOCK_REDIS_URL=redis://" + b.redis.Addr,
		"PENSTOCK_INFLUX_URL=" + d.influx(), "PENSTOCK_INFLUX_BUCKET=bench",
	}, nil
}

// influx is the URL of the InfluxDB.
func (d *daemon) influx() string { return "http://" + d.beside.influx.Addr }

func (b backends) all() []*servers.Server { return []*servers.Server{b.postgres, b.redis, b.influx} }

func (d *daemon) stopServers() {
	for _, s := range d.beside.all() {
		if s != nil {
			servers.End(s.Cmd)
		}
	}
}

// used returns the processor time since the start, 0 for a server that there is
// not.
func (d *daemon) used() used {
	b := d.beside
	return used{postgres: cpuOf(b.postgres), redis: cpuOf(b.redis), influx: cpuOf(b.influx), client: cpu(os.Getpid())}
}

func (u used) since(before used) used {
	return used{u.postgres - before.postgres, u.redis - before.redis, u.influx - before.influx, u.client - before.client}
}

func cpuOf(s *servers.Server) time.Duration {
	if s == nil {
		return 0
	}
	return cpuWithChildren(s.Cmd.Process.Pid)
}
