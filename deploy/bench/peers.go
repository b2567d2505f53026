package main

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// peers are the processes of a run.
type peers struct {
	dir   string
	procs []*exec.Cmd
	runs  int
	sink  string // where the relay sends
	// config is a configuration file of the next gateway; empty: none.
	config string
	// relays are further ones, each with a comma in front.
	relays string
}

// start starts a process whose output goes to a file of the run.
func (p *peers) start(ctx context.Context, name string, env []string, command string, args ...string) (*exec.Cmd, error) {
	out, err := os.Create(filepath.Join(p.dir, name+strconv.Itoa(len(p.procs))+".log"))
	if err != nil {
		return nil, err
	}
	defer func() { _ = out.Close() }()
	cmd := exec.CommandContext(ctx, command, args...)
	cmd.Env = append(os.Environ(), env...)
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	p.procs = append(p.procs, cmd)
	return cmd, nil
}

func (p *peers) kill(cmd *exec.Cmd) {
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
}

func (p *peers) stop() {
	for _, cmd := range p.procs {
		if cmd.ProcessState == nil {
			p.kill(cmd)
		}
	}
}

// daemon is a gateway under load.
type daemon struct {
	peers       *peers
	cmd         *exec.Cmd
	others      []*exec.Cmd // Redis and InfluxDB
	addr, token string
	influx      string
	redis       string // its address
}

// daemon starts a gateway with fresh back ends and an inventory for the bench.
func (p *peers) daemon(ctx context.Context, s settings) (*daemon, error) {
	p.runs++
	d := &daemon{peers: p, addr: freeAddr(), token: "bench-token"}
	dir := filepath.Join(p.dir, "run"+strconv.Itoa(p.runs))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	inventory := filepath.Join(dir, "inventory.yaml")
	if err := os.WriteFile(inventory, []byte(fmt.Sprintf(inventoryText, p.sink, p.relays)), 0o600); err != nil {
		return nil, err
	}
	env := []string{
		"PENSTOCK_LISTEN=" + d.addr, "PENSTOCK_DATA_DIR=" + dir, "PENSTOCK_INVENTORY=" + inventory,
		"PENSTOCK_EGRESS_ALLOW=127.0.0.1/32",
	}
	if !s.embedded {
		more, err := d.servers(ctx, dir)
		if err != nil {
			return nil, err
		}
		env = append(env, more...)
	}
	cmd, err := p.start(ctx, "penstock", env, s.binary, "serve", "--config", p.config)
	if err != nil {
		return nil, err
	}
	d.cmd = cmd
	return d, p.explain(cmd, until(ctx, 20*time.Second, "the gateway ready", func() bool {
		resp, err := http.Get("http://" + d.addr + "/readyz")
		if err != nil {
			return false
		}
		_ = resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	}))
}

// explain adds the end of what a process said to an error about it.
func (p *peers) explain(cmd *exec.Cmd, err error) error {
	if err == nil {
		return nil
	}
	f, ok := cmd.Stdout.(*os.File)
	if !ok {
		return err
	}
	text, _ := os.ReadFile(f.Name())
	return fmt.Errorf("%w; it said:\n%s", err, text[max(0, len(text)-2000):])
}

const inventoryText = `
sensor_types: [{id: temperature, name: Temperature, metric_units: "°C"}]
accounts:
  - name: bench
    credit: 1000000000
    tokens: [{token: bench-token, scopes: [webhook, carrier, iot, cellular, messaging]}]
    locations: [{id: imported, name: Imported, imported: true}]
    decoders: [{id: bench, name: Bench, type: lorawan, codec: cayenne_lpp, sensors: [{sensor_type_id: temperature, key: temperature_1}]}]
    relays: {geo: [{id: g1, prefix: "4478000", action: http_get, parameters: ["http://%s/sms?m=%%m&o=%%o&d=%%d"]}%s]}
  - {name: small, tokens: [{token: small-token, scopes: [cellular]}]}
`

// servers starts a Redis that syncs every second, as it comes, and an influxd.
func (d *daemon) servers(ctx context.Context, dir string) ([]string, error) {
	redis, influx := freeAddr(), freeAddr()
	_, port, _ := net.SplitHostPort(redis)
	r, err := d.peers.start(ctx, "redis", nil, "redis-server", "--port", port, "--bind", "127.0.0.1", "--dir", dir,
		"--appendonly", "yes", "--maxmemory-policy", "noeviction", "--save", "")
	if err != nil {
		return nil, err
	}
	conf := filepath.Join(dir, "influxd.conf")
	text := fmt.Sprintf(influxText, freeAddr(), dir, dir, dir, influx)
	if err := os.WriteFile(conf, []byte(text), 0o600); err != nil {
		return nil, err
	}
	i, err := d.peers.start(ctx, "influxd", nil, "influxd", "-config", conf)
	if err != nil {
		return nil, err
	}
	d.others = append(d.others, r, i)
	d.influx, d.redis = "http://"+influx, redis
	if err := reachable(ctx, redis); err != nil {
		return nil, err
	}
	return []string{"PENSTOCK_REDIS_URL=redis://" + redis, "PENSTOCK_INFLUX_URL=" + d.influx, "PENSTOCK_INFLUX_BUCKET=bench"}, reachable(ctx, influx)
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

func (d *daemon) pid() int { return d.cmd.Process.Pid }

// redisCPU is the processor time of Redis, 0 without one.
func (d *daemon) redisCPU() time.Duration {
	if len(d.others) == 0 {
		return 0
	}
	return cpu(d.others[0].Process.Pid)
}

// influxCPU is the processor time of InfluxDB, 0 without one.
func (d *daemon) influxCPU() time.Duration {
	if len(d.others) == 0 {
		return 0
	}
	return cpu(d.others[1].Process.Pid)
}

func (d *daemon) stop() {
	_ = d.cmd.Process.Signal(syscall.SIGTERM)
	_ = d.cmd.Wait()
	for _, o := range d.others {
		d.peers.kill(o)
	}
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

func executable() (string, error) { return os.Executable() }

// freeAddr is a loopback address that nobody uses now.
func freeAddr() string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "127.0.0.1:0"
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}

func reachable(ctx context.Context, addr string) error {
	return until(ctx, 20*time.Second, addr+" reachable", func() bool {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			return false
		}
		_ = c.Close()
		return true
	})
}

// until waits for a condition.
func until(ctx context.Context, atMost time.Duration, what string, cond func() bool) error {
	ctx, cancel := context.WithTimeout(ctx, atMost)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !cond() {
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s: %w", what, ctx.Err())
		case <-tick.C:
		}
	}
	return nil
}

// userHZ is the unit of times in /proc, the same on every Linux.
const userHZ = 100

// cpu is the processor time that a process has used.
func cpu(pid int) time.Duration {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(b), ") ")
	f := strings.Fields(rest)
	if len(f) < 13 {
		return 0
	}
	user, _ := strconv.ParseInt(f[11], 10, 64)
	system, _ := strconv.ParseInt(f[12], 10, 64)
	return time.Duration(user+system) * time.Second / userHZ
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
