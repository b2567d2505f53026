package main

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/penstock/penstock/deploy/servers"
)

// peers are the processes of a run and the settings of the next gateway.
type peers struct {
	servers.Run
	runs int
	sink string // where the relay sends
	// config is a configuration file of the next gateway; empty: none.
	config string
	// decoders are further lines of the inventory, env further settings.
	decoders string
	env      []string
}

// daemon is a gateway under load.
type daemon struct {
	peers       *peers
	cmd         *exec.Cmd
	dir         string // its data directory
	beside      backends
	addr, token string
}

// daemon starts a gateway with fresh back ends and an inventory for the bench.
func (p *peers) daemon(ctx context.Context, s settings) (*daemon, error) {
	p.runs++
	d := &daemon{peers: p, addr: servers.FreeAddr(), token: "bench-token-0123456"}
	dir := filepath.Join(p.Dir, "run"+strconv.Itoa(p.runs))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	inventory := filepath.Join(dir, "inventory.yaml")
	if err := os.WriteFile(inventory, fmt.Appendf(nil, inventoryText, p.decoders, p.sink), 0o600); err != nil {
		return nil, err
	}
	env := []string{
		"PENSTOCK_LISTEN=" + d.addr, "PENSTOCK_DATA_DIR=" + dir, "PENSTOCK_INVENTORY=" + inventory,
		"PENSTOCK_EGRESS_ALLOW=127.0.0.1/32",
	}
	env = append(env, p.env...)
	if !s.embedded {
		more, err := d.startServers(ctx, dir)
		if err != nil {
			return nil, err
		}
		env = append(env, more...)
	}
	d.dir = dir
	var err error
	if d.cmd, err = p.Start(ctx, "penstock", env, s.binary, "serve", "--config", p.config); err != nil {
		return nil, err
	}
	return d, servers.Explain(d.cmd, servers.Until(ctx, servers.StartTime, "the gateway ready", func() bool {
		status, _ := servers.Get(ctx, "http://"+d.addr+"/readyz")
		return status == http.StatusOK
	}))
}

const inventoryText = `
sensor_types: [{id: temperature, name: Temperature, metric_units: "°C"}, {id: humidity, name: Humidity, metric_units: "%%"}]
accounts:
  - name: bench
    credit: 1000000000
    tokens: [{token: bench-token-0123456, scopes: [webhook, carrier, iot, cellular, messaging]}]
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

func (d *daemon) pid() int { return d.cmd.Process.Pid }

func (d *daemon) stop() {
	_ = d.cmd.Process.Signal(syscall.SIGTERM)
	_ = d.cmd.Wait()
	d.stopServers()
}

// metric reads one number of /metrics; -1 when it is not there.
func (d *daemon) metric(name string) int64 {
	resp, err := http.Get("http://" + d.addr + "/metrics")
	if err != nil {
		return -1
	}
	defer func() { _ = resp.Body.Close() }()
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() {
		if value, ok := strings.CutPrefix(lines.Text(), name+" "); ok {
			n, _ := strconv.ParseFloat(value, 64)
			return int64(n)
		}
	}
	return -1
}

// userHZ is the unit of times in /proc, the same on every Linux.
const userHZ = 100

// cpu is the processor time that a process has used.
func cpu(pid int) time.Duration { return ticks(servers.Stat(pid), 11, 12) }

// cpuWithChildren is that of a process and of its children, those that have ended
// included.
func cpuWithChildren(pid int) time.Duration {
	all := ticks(servers.Stat(pid), 11, 12, 13, 14)
	for _, child := range servers.Children(pid) {
		all += ticks(servers.Stat(child), 11, 12)
	}
	return all
}

func ticks(fields []string, which ...int) time.Duration {
	var sum int64
	for _, i := range which {
		if i < len(fields) {
			n, _ := strconv.ParseInt(fields[i], 10, 64)
			sum += n
		}
	}
	return time.Duration(sum) * time.Second / userHZ
}

// idleCPU is the time that all cores together have been idle or waited for a
// disk.
func idleCPU() time.Duration {
	b, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0
	}
	f := strings.Fields(string(b))
	if len(f) < 6 {
		return 0
	}
	idle, _ := strconv.ParseInt(f[4], 10, 64)
	waiting, _ := strconv.ParseInt(f[5], 10, 64)
	return time.Duration(idle+waiting) * time.Second / userHZ
}

// resident is the memory that a process holds, in bytes.
func resident(pid int) int64 {
	fields := servers.Stat(pid)
	if len(fields) < 22 {
		return 0
	}
	pages, _ := strconv.ParseInt(fields[21], 10, 64)
	return pages * int64(os.Getpagesize())
}

// memory is the most memory that a process has held, in bytes.
func memory(pid int) int64 {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(b)) {
		if value, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kb, _ := strconv.ParseInt(strings.Fields(value)[0], 10, 64)
			return kb << 10
		}
	}
	return 0
}

// machine describes where the run took place.
func machine() string {
	model := "unknown processor"
	if b, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for line := range strings.Lines(string(b)) {
			if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
				model = strings.TrimSpace(value)
				break
			}
		}
	}
	return fmt.Sprintf("%d cores, %s, %s/%s, %s", runtime.NumCPU(), model, runtime.GOOS, runtime.GOARCH, runtime.Version())
}

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
