package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/penstock/penstock/deploy/servers"
)

// How Telegraf is built.
const (
	telegrafVersion  = "v1.37.2"
	telegrafTags     = "custom,inputs.http_listener_v2,parsers.json_v2,outputs.influxdb" // its plugins
	telegrafPatience = 10 * time.Minute                                                  // for the build
)

// telegraf is a Telegraf that receives the same frames as a gateway and writes the same values
// to the gateway's InfluxDB, into a database of its own.
type telegraf struct {
	subject
	target
	proc     *exec.Cmd
	influx   *servers.Server
	database string
}

// telegrafProgram returns the path of the Telegraf in .tools. If the file is missing, it builds
// Telegraf with the tags that Telegraf's custom builder uses.
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
	if text, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s", err, text[max(0, len(text)-300):])
	}
	return program, nil
}

// telegrafs starts a Telegraf with its buffer in memory and one with its buffer on disk. If
// Telegraf cannot be built, it prints the reason and returns no Telegrafs.
func (b *bench) telegrafs(ctx context.Context, g *gateway) (telegrafs []*telegraf, err error) {
	program, err := telegrafProgram(ctx)
	if err != nil {
		fmt.Fprintf(b.w, "without Telegraf: the build failed: %v\n", err)
		return nil, nil
	}
	for _, strategy := range []string{"memory", "disk_write_through"} {
		t := &telegraf{subject: subject{name: "Telegraf, " + strategy}, influx: g.influx, database: "telegraf_" + strategy}
		t.addr, t.base = servers.FreeAddr(), g.base
		t.cpu = func() usage {
			return usage{cpuProgram: cpu(t.proc.Process.Pid), cpuInflux: cpu(t.influx.Cmd.Process.Pid)}
		}
		t.round = func(ctx context.Context) (outcome, error) {
			base, err := t.pointsWritten(ctx)
			if err != nil {
				return outcome{}, err
			}
			o, err := b.sender(&t.target).run(ctx, b.seconds)
			return o, errors.Join(err, servers.UntilEvery(ctx, metricsEvery, storedPatience, "every frame of Telegraf to be stored", func() bool {
				written, err := t.pointsWritten(ctx)
				return err == nil && written >= base+o.count
			}))
		}
		config, buffer := filepath.Join(g.dir, t.database+".conf"), filepath.Join(g.dir, t.database)
		text := fmt.Appendf(nil, telegrafConfig, strategy, buffer, t.addr, g.influx.Addr, t.database)
		if err := os.WriteFile(config, text, 0o600); err != nil {
			return nil, err
		}
		if t.proc, err = b.Start(ctx, "telegraf", nil, program, "--config", config); err != nil {
			return nil, err
		}
		if err := servers.Explain(t.proc, servers.Reachable(ctx, t.addr)); err != nil {
			return nil, err
		}
		telegrafs = append(telegrafs, t)
	}
	return telegrafs, nil
}

// telegrafConfig stores the same values of a frame as a gateway: two readings and the radio
// data. Its batches are as large as a gateway's. Its buffer has room for all frames of a
// round because Telegraf drops points that do not fit.
const telegrafConfig = `
[agent]
  omit_hostname = true
  precision = "1ns"
  flush_interval = "1s"
  metric_batch_size = 5000
  metric_buffer_limit = 2000000
  buffer_strategy = "%s"
  buffer_directory = "%s"
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
    [[inputs.http_listener_v2.json_v2.field]]
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
[[outputs.influxdb]]
  urls = ["http://%s"]
  database = "%s"
`

// pointsWritten returns the number of points written to InfluxDB since its start.
func (t *telegraf) pointsWritten(ctx context.Context) (int64, error) {
	var vars map[string]json.RawMessage
	if err := call(ctx, http.DefaultClient, http.MethodGet, "http://"+t.influx.Addr+"/debug/vars", "", "", &vars); err != nil {
		return 0, err
	}
	for name, text := range vars {
		if strings.HasPrefix(name, "httpd") {
			var httpd struct {
				Values struct{ PointsWrittenOK int64 }
			}
			err := json.Unmarshal(text, &httpd)
			return httpd.Values.PointsWrittenOK, err
		}
	}
	return 0, errors.New("InfluxDB does not report the number of points written")
}

// Kannel's programs, which deploy/test-deps.sh installs outside the PATH.
const (
	kannelBearerbox = "/usr/sbin/bearerbox"
	kannelSMSBox    = "/usr/sbin/smsbox"
	kannelFakeSMSC  = "/usr/lib/kannel/test/fakesmsc"
)

// kannel is a bearerbox with a spool on disk and a smsbox.
type kannel struct {
	bearerbox, smsbox *exec.Cmd
	sendSMS           string // host:port for orders
}

func port(addr string) string {
	_, port, _ := net.SplitHostPort(addr)
	return port
}

// kannel starts both boxes. groups is appended to their configuration.
func (b *bench) kannel(ctx context.Context, groups string) (*kannel, error) {
	if _, err := exec.LookPath(kannelFakeSMSC); err != nil { // of the package that is most often missing
		return nil, err
	}
	k := &kannel{sendSMS: servers.FreeAddr()}
	boxes, spool, config := servers.FreeAddr(), filepath.Join(b.Dir, "spool"), filepath.Join(b.Dir, "kannel.conf")
	if err := os.Mkdir(spool, 0o700); err != nil {
		return nil, err
	}
	text := fmt.Sprintf(kannelConfig, port(servers.FreeAddr()), port(boxes), spool, port(k.sendSMS)) + groups
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		return nil, err
	}
	var err error
	if k.bearerbox, err = b.Start(ctx, "bearerbox", nil, kannelBearerbox, config); err != nil {
		return nil, err
	}
	if err := servers.Explain(k.bearerbox, servers.Reachable(ctx, boxes)); err != nil {
		return nil, err
	}
	if k.smsbox, err = b.Start(ctx, "smsbox", nil, kannelSMSBox, config); err != nil {
		return nil, err
	}
	return k, servers.Explain(k.bearerbox, servers.Until(ctx, servers.StartTime, "the smsbox to connect to the bearerbox", func() bool {
		return strings.Contains(servers.OutputTail(k.bearerbox), "Client connected from <127.0.0.1>")
	}))
}

func (k *kannel) cpu() usage {
	return usage{cpuProgram: cpu(k.bearerbox.Process.Pid, k.smsbox.Process.Pid)}
}

const kannelConfig = `group = core
admin-port = %s
admin-password = secret
smsbox-port = %s
store-type = spool
store-location = %q
log-level = 1

group = smsbox
bearerbox-host = 127.0.0.1
sendsms-port = %s
log-level = 3

`

// kannelRelay receives messages from fakesmsc and makes a GET for each.
const kannelRelay = `group = smsc
smsc = fake
smsc-id = fake
port = %s
connect-allow-ip = 127.0.0.1

group = sms-service
keyword = default
get-url = "http://%s/sms?m=%%a&o=%%p&d=%%P"
max-messages = 0
`

// kannelSend receives orders over HTTP and submits their messages to an SMSC.
const kannelSend = `group = smsc
smsc = smpp
smsc-id = far
host = 127.0.0.1
port = %s
smsc-username = bench
smsc-password = secret
system-type = ""
transceiver-mode = true
max-pending-submits = %d

group = sendsms-user
username = bench
password = secret
max-messages = 10
`
