package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/penstock/penstock/deploy/servers"
)

// The tokens of a run.
const (
	adminToken = "chaos-admin-0123456789"
	token      = "chaos-account-0123456789"
	opening    = 1_000_000_000 // the account's credit
	simCount   = 400
)

// backend is a server that the gateways reach through a proxy.
type backend struct {
	name    string
	server  *servers.Server
	proxy   *proxy
	emptied bool // it forgets its data when it is killed
}

// site is gateways, their back ends and the parties outside.
type site struct {
	run      servers.Run
	name     string
	settings settings
	ledger   *ledger
	sink     *sink
	smsc     *smsc
	far      *proxy // before the SMSC
	backends []*backend
	gateways []*gateway
	client   *http.Client
	next     int // of the gateways, for the next request
	devices  []string
	claims   string // the ledger token that is claimed
	base     time.Time
	resent   int
	busy     sync.Map // ICCIDs that have a job, or may have one

	mu    sync.Mutex
	notes []string // what should not have happened
	done  chan struct{}
}

// newSite starts everything: on SQLite one gateway with embedded back ends, on
// PostgreSQL two with PostgreSQL, Redis and InfluxDB.
func newSite(ctx context.Context, name, dir string, o settings) (*site, error) {
	s := &site{
		run: servers.Run{Dir: dir}, name: name, settings: o, ledger: newLedger(), done: make(chan struct{}),
		client: &http.Client{Timeout: 15 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: 256}},
		base:   time.Now().UTC().Add(-12 * time.Hour).Truncate(time.Second),
	}
	if err := s.outside(); err != nil {
		return s, err
	}
	count, env := 1, []string(nil)
	if name == onPostgres {
		count = 2
		if err := s.startBackends(ctx); err != nil {
			return s, err
		}
		env = []string{
			"PENSTOCK_DATABASE_URL=" + servers.PostgresURL(s.backends[0].proxy.addr), "PENSTOCK_REDIS_URL=redis://" + s.backends[1].proxy.addr,
			"PENSTOCK_INFLUX_URL=http://" + s.backends[2].proxy.addr, "PENSTOCK_INFLUX_BUCKET=chaos",
		}
	}
	config, inventory := filepath.Join(dir, "penstock.yaml"), filepath.Join(dir, "inventory.yaml")
	if err := os.WriteFile(config, fmt.Appendf(nil, configText, s.far.addr), 0o600); err != nil {
		return s, err
	}
	if err := os.WriteFile(inventory, s.inventory(), 0o600); err != nil {
		return s, err
	}
	for n := range count {
		g := &gateway{name: fmt.Sprintf("gateway%d-", n+1), addr: servers.FreeAddr(), run: &s.run, binary: o.binary, config: config, note: s.note}
		g.dir = filepath.Join(dir, strings.TrimSuffix(g.name, "-"))
		s.gateways = append(s.gateways, g)
		g.env = append([]string{
			"PENSTOCK_LISTEN=" + g.addr, "PENSTOCK_DATA_DIR=" + g.dir, "PENSTOCK_INVENTORY=" + inventory, "PENSTOCK_ADMIN_TOKEN=" + adminToken,
			"PENSTOCK_PUBLIC_URL=http://" + s.gateways[0].addr, "PENSTOCK_EGRESS_ALLOW=127.0.0.1/32", "PENSTOCK_EGRESS_ALLOW_HTTP_CALLBACK=true",
			"PENSTOCK_LEDGER_MASTER_KEY=Y2hhb3MtY2hhb3MtY2hhb3MtY2hhb3MtY2hhb3MtMTI=",
		}, env...)
		if err := s.startGateway(ctx, g); err != nil {
			return s, err
		}
	}
	return s, s.prepare(ctx)
}

func (s *site) startGateway(ctx context.Context, g *gateway) error {
	if err := g.launch(ctx); err != nil {
		return err
	}
	return g.ready(ctx)
}

// outside starts the sink and the SMSC.
func (s *site) outside() (err error) {
	if s.sink, err = newSink(); err != nil {
		return err
	}
	if s.smsc, err = newSMSC(); err != nil {
		return err
	}
	s.far, err = newProxy(s.smsc.addr)
	return err
}

// startBackends starts the servers and a proxy before each.
func (s *site) startBackends(ctx context.Context) error {
	for _, one := range []struct {
		name    string
		start   func(dir string) (*servers.Server, error)
		emptied bool
	}{
		{"PostgreSQL", func(string) (*servers.Server, error) { return s.run.Postgres(ctx) }, false},
		{"Redis", func(dir string) (*servers.Server, error) { return s.run.Redis(ctx, dir, "--appendonly", "no") }, true},
		{"InfluxDB", func(dir string) (*servers.Server, error) { return s.run.Influx(ctx, dir) }, false},
	} {
		dir := filepath.Join(s.run.Dir, strings.ToLower(one.name)+"-data")
		if err := os.Mkdir(dir, 0o700); err != nil {
			return err
		}
		server, err := one.start(dir)
		if err != nil {
			return err
		}
		p, err := newProxy(server.Addr)
		if err != nil {
			return err
		}
		s.backends = append(s.backends, &backend{name: one.name, server: server, proxy: p, emptied: one.emptied})
	}
	return nil
}

// configText is the configuration: failed deliveries are attempted again soon and
// for long, parts are never given up, and a link that is dead is noticed soon.
const configText = `
carriers:
  - {type: smpp, name: far, addr: %q, system_id: chaos, password: secret, window: 50, enquire_link: 2s, answer_timeout: 5s}
delivery:
  schedule: [1s, 1s, 2s, 2s, 3s, 5s, 5s, 5s, 5s, 5s, 10s, 10s, 10s, 10s, 10s, 10s, 10s, 10s, 10s, 10s, 30s, 30s, 30s, 30s, 30s, 30s, 30s, 30s, 30s, 30s]
inbound: {join_wait: 12h}
`

// inventory declares the account.
func (s *site) inventory() []byte {
	var sims []string
	for n := range simCount {
		sims = append(sims, fmt.Sprintf("{iccid: %q, current_state: active}", iccid(n)))
	}
	return fmt.Appendf(nil, inventoryText, opening, token, s.sink.addr, s.sink.addr, strings.Join(sims, ", "))
}

const inventoryText = `
sensor_types: [{id: count, name: Count}]
accounts:
  - name: chaos
    credit: %d
    tokens: [{token: %s, scopes: [messaging, cellular, iot, ledger, webhook, carrier]}]
    soap: {username: chaos, password: secret}
    webhook_secret: whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw
    callback_url: http://%s/events
    locations: [{id: yard, name: Yard, imported: true}]
    relays:
      geo: [{id: all, prefix: "44", action: http_get, parameters: ["http://%s/sms?m=%%m&i=%%i"]}]
    decoders:
      - {id: counter, name: Counter, type: lorawan, codec: cayenne_lpp, sensors: [{sensor_type_id: count, key: generic_1}]}
      - {id: sent, name: Decoded by the sender, type: other, codec: json, sensors: [{sensor_type_id: count, key: count}]}
    sims: [%s]
    ledgers: [{id: assets, name: Assets, description: where they are, claims: 10000000, expiry: 8760h}]
`

func iccid(n int) string { return fmt.Sprintf("89446000000%08d", n%simCount) }

// note remembers what should not have happened.
func (s *site) note(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.notes = append(s.notes, text)
}

// stop ends everything: the gateways as an operator would, and the rest.
func (s *site) stop() {
	for _, g := range s.gateways {
		g.end(syscall.SIGTERM)
	}
	s.run.Stop()
	for _, b := range s.backends {
		_ = b.proxy.listener.Close()
	}
	if s.far != nil {
		_ = s.far.listener.Close()
	}
	if s.sink != nil {
		s.sink.kill()
	}
	if s.smsc != nil {
		s.smsc.kill()
	}
}
