package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/penstock/penstock/deploy/servers"
)

// telegrafVersion is the Telegraf that frames are measured beside, and telegrafTags
// are the plugins that it is built with.
const (
	telegrafVersion  = "v1.37.2"
	telegrafTags     = "custom,inputs.http_listener_v2,parsers.json_v2,outputs.influxdb"
	telegrafPatience = 10 * time.Minute
)

// telegraf is a Telegraf that takes the same frames and writes the same values to
// the InfluxDB of a gateway, into a database of its own.
type telegraf struct {
	addr   string
	proc   *exec.Cmd
	beside *daemon
}

// telegrafProgram builds Telegraf once, as its own custom builder does.
func telegrafProgram(ctx context.Context) (string, error) {
	dir, err := filepath.Abs(filepath.Join(".tools", "telegraf-"+telegrafVersion))
	if err != nil {
		return "", err
	}
	program := filepath.Join(dir, "telegraf")
	if _, err := os.Stat(program); err == nil {
		return program, nil
	}
	ctx, cancel := context.WithTimeout(ctx, telegrafPatience)
	defer cancel()
	cmd := exec.CommandContext(ctx, "go", "install", "-tags", telegrafTags, "github.com/influxdata/telegraf/cmd/telegraf@"+telegrafVersion)
	cmd.Env = append(os.Environ(), "GOBIN="+dir, "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s", err, out[max(0, len(out)-300):])
	}
	return program, nil
}

// telegraf starts one beside the InfluxDB of a gateway. It stores the readings and
// further fields of the body.
func (p *peers) telegraf(ctx context.Context, beside *daemon, fields string) (*telegraf, error) {
	program, err := telegrafProgram(ctx)
	if err != nil {
		return nil, err
	}
	t := &telegraf{addr: servers.FreeAddr(), beside: beside}
	config := filepath.Join(beside.dir, "telegraf.conf")
	if err := os.WriteFile(config, fmt.Appendf(nil, telegrafConfig, t.addr, fields, beside.influx()), 0o600); err != nil {
		return nil, err
	}
	if t.proc, err = p.Start(ctx, "telegraf", nil, program, "--config", config); err != nil {
		return nil, err
	}
	return t, servers.Explain(t.proc, servers.Reachable(ctx, t.addr))
}

// telegrafConfig stores what a gateway stores of a frame: two readings, and the radio
// data if it has their fields. It writes as many points at once as a gateway, and has room
// for all that a round leaves behind: what does not fit Telegraf forgets.
const telegrafConfig = `
[agent]
  omit_hostname = true
  precision = "1ns"
  flush_interval = "1s"
  metric_batch_size = 5000
  metric_buffer_limit = 2000000
[[inputs.http_listener_v2]]
  service_address = "tcp://%s"
  paths = ["/webhooks/lorawan"]
  methods = ["POST"]
  data_format = "json_v2"
  [[inputs.http_listener_v2.json_v2]]
    measurement_name = "uplink"
    timestamp_path = "time"
    timestamp_format = "2006-01-02T15:04:05.999999999Z07:00"
    [[inputs.http_listener_v2.json_v2.tag]]
      path = "deviceInfo.devEui"
    [[inputs.http_listener_v2.json_v2.field]]
      path = "object.temperature_1"
      type = "float"
    [[inputs.http_listener_v2.json_v2.field]]
      path = "object.relative_humidity_2"
      type = "float"
%s[[outputs.influxdb]]
  urls = ["%s"]
  database = "telegraf"
`

// telegrafRadio are the fields of the radio data that a gateway stores.
const telegrafRadio = `    [[inputs.http_listener_v2.json_v2.field]]
      path = "deviceInfo.deviceName"
    [[inputs.http_listener_v2.json_v2.field]]
      path = "fCnt"
      type = "float"
    [[inputs.http_listener_v2.json_v2.field]]
      path = "fPort"
      type = "float"
    [[inputs.http_listener_v2.json_v2.field]]
      path = "rxInfo.#"
      rename = "gateways"
      type = "float"
    [[inputs.http_listener_v2.json_v2.field]]
      path = "rxInfo.0.rssi"
      type = "float"
    [[inputs.http_listener_v2.json_v2.field]]
      path = "rxInfo.0.snr"
      type = "float"
`

// round loads Telegraf as a gateway is, and waits for the last frame to be stored.
func (t *telegraf) round(ctx context.Context, s settings, first int64) (f frameRound, err error) {
	base, err := t.beside.pointsWritten(ctx)
	if err != nil {
		return f, err
	}
	start, before, beside := time.Now(), cpu(t.proc.Process.Pid), t.beside.used()
	l := newLoad(t.addr, t.beside.token, s)
	l.first = first
	if err := l.run(ctx, s.seconds); err != nil {
		return f, err
	}
	f.outcome = l.result()
	if err := t.stored(ctx, base+f.count); err != nil {
		return f, err
	}
	f.storedIn = time.Since(start)
	f.cpu, f.beside = cpu(t.proc.Process.Pid)-before, t.beside.used().since(beside)
	return f, nil
}

// stored waits until the InfluxDB has been written so many points.
func (t *telegraf) stored(ctx context.Context, n int64) error {
	return servers.UntilEvery(ctx, metricsEvery, 2*time.Minute, "every frame of Telegraf stored", func() bool {
		written, err := t.beside.pointsWritten(ctx)
		return err == nil && written >= n
	})
}

// pointsWritten is how many points the InfluxDB was written since its start.
func (d *daemon) pointsWritten(ctx context.Context) (int64, error) {
	var vars map[string]json.RawMessage
	if err := getJSON(ctx, d.influx()+"/debug/vars", &vars); err != nil {
		return 0, err
	}
	for name, text := range vars {
		if !strings.HasPrefix(name, "httpd") {
			continue
		}
		var httpd struct {
			Values struct{ PointsWrittenOK int64 }
		}
		err := json.Unmarshal(text, &httpd)
		return httpd.Values.PointsWrittenOK, err
	}
	return 0, errors.New("influxd does not count what it is written")
}

// count returns the number of frames in the InfluxDB.
func (t *telegraf) count(ctx context.Context) (int64, error) {
	return t.beside.count(ctx, url.Values{"db": {"telegraf"}, "q": {`SELECT count(temperature_1) FROM uplink`}})
}

// oneLine is a text without line feeds.
func oneLine(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }
