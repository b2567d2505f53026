package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/penstock/penstock/deploy/servers"
)

// Kannel's programs, which deploy/test-deps.sh installs outside the PATH.
const (
	kannelBearerbox = "/usr/sbin/bearerbox"
	kannelSMSBox    = "/usr/sbin/smsbox"
	kannelFakeSMSC  = "/usr/lib/kannel/test/fakesmsc"
)

// kannel is a bearerbox with a spool on disk and a smsbox.
type kannel struct {
	bearerbox, smsbox *exec.Cmd
	sendSMS           string // the address for orders
}

func port(addr string) string {
	_, port, _ := net.SplitHostPort(addr)
	return port
}

// kannel starts both boxes; groups are further groups of their configuration.
func (b *bench) kannel(ctx context.Context, groups string) (*kannel, error) {
	if _, err := exec.LookPath(kannelFakeSMSC); err != nil { // of the package that is missing most often
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
	return k, servers.Explain(k.bearerbox, servers.Until(ctx, servers.StartTime, "the smsbox at the bearerbox", func() bool {
		return strings.Contains(servers.Said(k.bearerbox), "Client connected from <127.0.0.1>")
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

// kannelRelay takes messages from fakesmsc and makes a GET of each.
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

// kannelSend takes orders over HTTP and submits their messages to an SMSC.
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
