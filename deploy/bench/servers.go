package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// servers are the back ends beside a gateway, nil if they are embedded.
type servers struct{ postgres, redis, influx *exec.Cmd }

// used is the processor time of what runs beside the gateway.
type used struct{ postgres, redis, influx, client time.Duration }

// startServers starts a PostgreSQL, a Redis that syncs every second, as it comes,
// and an influxd.
func (d *daemon) startServers(ctx context.Context, dir string) (env []string, err error) {
	for _, start := range []func(context.Context, string) error{d.startPostgres, d.startRedis, d.startInflux} {
		if err := start(ctx, dir); err != nil {
			return nil, err
		}
	}
	return []string{
		"PENSTOCK_DATABASE_URL=postgres://postgres@" + d.postgres + "/postgres?sslmode=disable", "PENSTOCK_REDIS_URL=redis://" + d.redis,
		"PENSTOCK_INFLUX_URL=" + d.influx, "PENSTOCK_INFLUX_BUCKET=bench",
	}, nil
}

func (d *daemon) startPostgres(ctx context.Context, _ string) (err error) {
	d.servers.postgres, d.postgres, err = d.peers.startPostgres(ctx)
	return err
}

func (d *daemon) startRedis(ctx context.Context, dir string) (err error) {
	d.redis = freeAddr()
	_, port, _ := net.SplitHostPort(d.redis)
	d.servers.redis, err = d.peers.start(ctx, "redis", nil, "redis-server", "--port", port, "--bind", "127.0.0.1", "--dir", dir,
		"--appendonly", "yes", "--maxmemory-policy", "noeviction", "--save", "")
	if err != nil {
		return err
	}
	return d.peers.explain(d.servers.redis, reachable(ctx, d.redis))
}

func (d *daemon) startInflux(ctx context.Context, dir string) (err error) {
	addr, conf := freeAddr(), filepath.Join(dir, "influxd.conf")
	text := fmt.Sprintf(influxText, freeAddr(), dir, dir, dir, addr)
	if err := os.WriteFile(conf, []byte(text), 0o600); err != nil {
		return err
	}
	d.influx = "http://" + addr
	if d.servers.influx, err = d.peers.start(ctx, "influxd", nil, "influxd", "-config", conf); err != nil {
		return err
	}
	return d.peers.explain(d.servers.influx, reachable(ctx, addr))
}

const influxText = `
reporting-disabled = true
bind-address = "%s"
[meta]
dir = "%s/meta"
[data]
dir = "%s/data"
wal-dir = "%s/wal"
query-log-enabled = false
[http]
bind-address = "%s"
log-enabled = false
flux-enabled = true
[monitor]
store-enabled = false
[logging]
level = "error"
`

func (d *daemon) stopServers() {
	for _, cmd := range []*exec.Cmd{d.servers.postgres, d.servers.redis, d.servers.influx} {
		if cmd != nil {
			d.peers.kill(cmd)
		}
	}
}

// used returns the processor time since the start, 0 for a server that there is
// not.
func (d *daemon) used() used {
	return used{
		postgres: cpuOf(d.servers.postgres), redis: cpuOf(d.servers.redis), influx: cpuOf(d.servers.influx), client: cpu(os.Getpid()),
	}
}

func (u used) since(before used) used {
	return used{u.postgres - before.postgres, u.redis - before.redis, u.influx - before.influx, u.client - before.client}
}

func cpuOf(cmd *exec.Cmd) time.Duration {
	if cmd == nil {
		return 0
	}
	return cpuWithChildren(cmd.Process.Pid)
}
