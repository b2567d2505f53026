package main

import (
	"bufio"
	"bytes"
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
	cmd := exec.CommandContext(ctx, command, args...)
	cmd.Env = append(os.Environ(), env...)
	return cmd, p.launch(name, cmd)
}

func (p *peers) launch(name string, cmd *exec.Cmd) error {
	out, err := os.Create(filepath.Join(p.dir, name+strconv.Itoa(len(p.procs))+".log"))
	if err != nil {
		return err
	}
	defer func() { _ = out.Close() }()
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	p.procs = append(p.procs, cmd)
	return nil
}

func (p *peers) kill(cmd *exec.Cmd) {
	_ = cmd.Cancel()
	_ = cmd.Wait()
}

func (p *peers) stop() {
	for _, cmd := range p.procs {
		if cmd.ProcessState == nil {
			p.kill(cmd)
		}
	}
}

// startTime bounds how long a process may take to answer.
const startTime = time.Minute

// daemon is a gateway under load.
type daemon struct {
	peers       *peers
	cmd         *exec.Cmd
	dir         string // its data directory
	env         []string
	servers     servers
	addr, token string
	influx      string // its URL
	redis       string // its address
	postgres    string // its address
}

// daemon starts a gateway with fresh back ends and an inventory for the bench.
func (p *peers) daemon(ctx context.Context, s settings) (*daemon, error) {
	p.runs++
	d := &daemon{peers: p, addr: freeAddr(), token: "bench-token-0123456"}
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
		more, err := d.startServers(ctx, dir)
		if err != nil {
			return nil, err
		}
		env = append(env, more...)
	}
	d.dir, d.env = dir, env
	return d, d.run(ctx, s)
}

// run starts the gateway and waits until it is ready.
func (d *daemon) run(ctx context.Context, s settings) (err error) {
	if d.cmd, err = d.peers.start(ctx, "penstock", d.env, s.binary, "serve", "--config", d.peers.config); err != nil {
		return err
	}
	return d.peers.explain(d.cmd, until(ctx, startTime, "the gateway ready", func() bool {
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
	return fmt.Errorf("%s: %w; it said:\n%s", filepath.Base(cmd.Path), err, text[max(0, len(text)-2000):])
}

const inventoryText = `
sensor_types: [{id: temperature, name: Temperature, metric_units: "°C"}]
accounts:
  - name: bench
    credit: 1000000000
    tokens: [{token: bench-token-0123456, scopes: [webhook, carrier, iot, cellular, messaging]}]
    locations: [{id: imported, name: Imported, imported: true}]
    decoders: [{id: bench, name: Bench, type: lorawan, codec: cayenne_lpp, sensors: [{sensor_type_id: temperature, key: temperature_1}]}]
    relays: {geo: [{id: g1, prefix: "4478000", action: http_get, parameters: ["http://%s/sms?m=%%m&o=%%o&d=%%d"]}%s]}
  - name: quiet
    tokens: [{token: quiet-token-0123456, scopes: [webhook]}]
    locations: [{id: imported, name: Imported, imported: true}]
    decoders: [{id: bench, name: Bench, type: lorawan, codec: cayenne_lpp, sensors: [{sensor_type_id: temperature, key: temperature_1}]}]
  - {name: small, tokens: [{token: small-token-0123456, scopes: [cellular]}]}
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
	return until(ctx, startTime, addr+" reachable", func() bool {
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
	return untilEvery(ctx, 20*time.Millisecond, atMost, what, cond)
}

// untilEvery waits for a condition that is looked at as often as every says.
func untilEvery(ctx context.Context, every, atMost time.Duration, what string, cond func() bool) error {
	ctx, cancel := context.WithTimeout(ctx, atMost)
	defer cancel()
	tick := time.NewTicker(every)
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
func cpu(pid int) time.Duration { return ticks(procStat(fmt.Sprintf("/proc/%d/stat", pid)), 11, 12) }

// cpuWithChildren is that of a process and of its children, those that have ended
// included.
func cpuWithChildren(pid int) time.Duration {
	all := ticks(procStat(fmt.Sprintf("/proc/%d/stat", pid)), 11, 12, 13, 14)
	names, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, name := range names {
		if f := procStat(name); len(f) > 1 && f[1] == strconv.Itoa(pid) {
			all += ticks(f, 11, 12)
		}
	}
	return all
}

// procStat is the fields of a process behind its name, none if it has ended.
func procStat(name string) []string {
	b, err := os.ReadFile(name)
	if err != nil {
		return nil
	}
	return strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
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
