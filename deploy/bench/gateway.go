package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/penstock/penstock/deploy/servers"
)

// The tokens of a gateway's two accounts and of its operator.
const (
	accountToken = "bench-token-0123456"
	quietToken   = "quiet-token-0123456"
	adminToken   = "bench-admin-token-0123456"
)

// gateway is a process of the program under test, with its back ends.
type gateway struct {
	target
	cmd                     *exec.Cmd
	dir                     string          // its data directory
	postgres, redis, influx *servers.Server // nil: embedded
}

// options are the differences between the gateways of a run.
type options struct {
	sink     string // host:port of the endpoint of its relay; empty: one that refuses connections
	carriers string // lines of a configuration file
	decoders string // further lines of the inventory
	env      []string
}

// gateway starts a gateway with empty back ends of its own and waits until it is ready.
func (b *bench) gateway(ctx context.Context, o options) (g *gateway, err error) {
	b.gateways++
	g = &gateway{dir: filepath.Join(b.Dir, "gateway"+strconv.Itoa(b.gateways))}
	g.addr, g.base = servers.FreeAddr(), time.Now().Add(-6*time.Hour)
	inventory, config := filepath.Join(g.dir, "inventory.yaml"), filepath.Join(g.dir, "penstock.yaml")
	if o.sink == "" {
		o.sink = "127.0.0.1:9"
	}
	if err := errors.Join(os.MkdirAll(g.dir, 0o700), os.WriteFile(config, []byte(o.carriers), 0o600),
		os.WriteFile(inventory, fmt.Appendf(nil, inventoryText, o.decoders, o.sink), 0o600)); err != nil {
		return nil, err
	}
	env := append([]string{
		"PENSTOCK_LISTEN=" + g.addr, "PENSTOCK_DATA_DIR=" + g.dir, "PENSTOCK_INVENTORY=" + inventory,
		"PENSTOCK_ADMIN_TOKEN=" + adminToken, "PENSTOCK_EGRESS_ALLOW=127.0.0.1/32",
	}, o.env...)
	if !b.embedded {
		if g.postgres, err = b.Postgres(ctx); err != nil {
			return nil, err
		}
		if g.redis, err = b.Redis(ctx, g.dir, "--appendonly", "yes"); err != nil { // fsync every second
			return nil, err
		}
		if g.influx, err = b.Influx(ctx, g.dir); err != nil {
			return nil, err
		}
		env = append(env, "PENSTOCK_DATABASE_URL="+servers.PostgresURL(g.postgres.Addr), "PENSTOCK_REDIS_URL=redis://"+g.redis.Addr,
			"PENSTOCK_INFLUX_URL=http://"+g.influx.Addr, "PENSTOCK_INFLUX_BUCKET=bench")
	}
	if g.cmd, err = b.Start(ctx, "penstock", env, b.binary, "serve", "--config", config); err != nil {
		return nil, err
	}
	return g, servers.Explain(g.cmd, ready(ctx, g.addr))
}

// ready waits until the gateway at an address is ready.
func ready(ctx context.Context, addr string) error {
	return servers.UntilEvery(ctx, 2*time.Millisecond, servers.StartTime, "the gateway to be ready", func() bool {
		status, _ := servers.Get(ctx, "http://"+addr+"/readyz")
		return status == http.StatusOK
	})
}

const inventoryText = `
sensor_types: [{id: temperature, name: Temperature, metric_units: "°C"}, {id: humidity, name: Humidity, metric_units: "%%"}]
accounts:
  - name: bench
    credit: 1000000000
    tokens: [{token: bench-token-0123456, scopes: [webhook, carrier, iot, cellular, messaging, ledger]}]
    locations: [{id: imported, name: Imported, imported: true}]
    decoders:
      - {id: bench, name: Bench, type: lorawan, codec: cayenne_lpp, useRawPayload: true, sensors: [{sensor_type_id: temperature, key: temperature_1}, {sensor_type_id: humidity, key: relative_humidity_2}]}
%s    relays: {geo: [{id: g1, prefix: "4478000", action: http_get, parameters: ["http://%s/sms?m=%%m&o=%%o&d=%%d"]}]}
  - name: quiet
    tokens: [{token: quiet-token-0123456, scopes: [webhook]}]
    locations: [{id: imported, name: Imported, imported: true}]
    decoders:
      - {id: bench, name: Bench, type: lorawan, codec: cayenne_lpp, useRawPayload: true, sensors: [{sensor_type_id: temperature, key: temperature_1}, {sensor_type_id: humidity, key: relative_humidity_2}]}
`

func (g *gateway) pid() int { return g.cmd.Process.Pid }

func (g *gateway) url(path string) string { return "http://" + g.addr + path }

// cpu returns the CPU time that the gateway and its back ends have used so far.
// Codec workers count as the gateway.
func (g *gateway) cpu() usage {
	u := usage{cpuProgram: cpu(g.pid())}
	for process, s := range map[int]*servers.Server{cpuPostgres: g.postgres, cpuRedis: g.redis, cpuInflux: g.influx} {
		if s != nil {
			u[process] = cpu(s.Cmd.Process.Pid)
		}
	}
	return u
}

// metric reads a value of /metrics. It returns -1 if the metric is missing.
func (g *gateway) metric(ctx context.Context, name string) int64 {
	_, text := servers.Get(ctx, g.url("/metrics"))
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, name+" "); ok {
			n, _ := strconv.ParseFloat(strings.TrimSpace(value), 64)
			return int64(n)
		}
	}
	return -1
}

const (
	// metricsEvery is the interval at which metrics are read. Each answer takes the gateway a
	// millisecond of CPU, which is counted as CPU of frames.
	metricsEvery = 100 * time.Millisecond
	// storedPatience is the time within which frames must be stored. Frames of many new devices
	// take longest.
	storedPatience = 5 * time.Minute
)

// settle waits until every accepted frame is processed.
func (g *gateway) settle(ctx context.Context) error {
	return servers.UntilEvery(ctx, metricsEvery, storedPatience, "every frame to be processed", func() bool {
		return g.metric(ctx, `penstock_entries_processed_total{kind="uplink"}`) == g.accepted.Load()
	})
}

// storing returns a subject that sends frames. A round is done when all of them are stored.
func (b *bench) storing(name string, g *gateway, s *sender) *subject {
	return &subject{name: name, cpu: g.cpu, round: func(ctx context.Context) (outcome, error) {
		o, err := s.run(ctx, b.seconds)
		for err == nil && s.counter.Load() < s.devices { // in the first round, until every device is imported
			_, err = s.run(ctx, b.seconds)
		}
		return o, errors.Join(err, g.settle(ctx))
	}}
}

// reconcileFrames reconciles accepted frames with stored and quarantined frames.
func (b *bench) reconcileFrames(ctx context.Context, label string, g *gateway) (err error) {
	quarantined := g.metric(ctx, `penstock_entries_quarantined_total{kind="uplink"}`)
	// Only the gateway can read an embedded database while it runs, so its own counter is used.
	stored := g.metric(ctx, `penstock_entries_processed_total{kind="uplink"}`) - quarantined
	if g.influx != nil {
		stored, err = countPoints(ctx, g.influx, "bench", "SELECT count(value) FROM temperature")
	}
	b.reconcile(label, g.accepted.Load(), stored, quarantined)
	return err
}

// countPoints returns the count in the answer of an InfluxDB to query.
func countPoints(ctx context.Context, server *servers.Server, database, query string) (int64, error) {
	var answer struct {
		Results []struct {
			Series []struct{ Values [][]any }
		}
	}
	q := url.Values{"db": {database}, "q": {query}}
	if err := call(ctx, http.DefaultClient, http.MethodGet, "http://"+server.Addr+"/query?"+q.Encode(), "", "", &answer); err != nil {
		return 0, err
	}
	if len(answer.Results) == 0 || len(answer.Results[0].Series) == 0 {
		return 0, errors.New("InfluxDB has no points")
	}
	n, ok := answer.Results[0].Series[0].Values[0][1].(float64)
	if !ok {
		return 0, fmt.Errorf("InfluxDB answered %v", answer)
	}
	return int64(n), nil
}
