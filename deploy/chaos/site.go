package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/penstock/penstock/deploy/servers"
)

// The tokens, the credit and the SIMs of a run.
const (
	adminToken    = "chaos-admin-0123456789"
	token         = "chaos-account-0123456789"
	openingCredit = 1_000_000_000 // of the account
	simCount      = 400
)

// site is a set of gateways with their back ends, an SMSC and an endpoint.
type site struct {
	run           servers.Run
	kind          backendKind
	settings      settings
	ledger        *ledger
	sink          *sink
	smsc          *smsc
	smscProxy     *proxy   // in front of the SMSC
	proxies       []*proxy // in front of back ends
	influx        *influxProxy
	backendFaults []fault
	gateways      []*gateway
	redis         string // address of the proxy in front of the shared Redis; empty with Sentinel, a Cluster or SQLite
	client        *http.Client
	turn          int          // number of calls of gateway
	probes        atomic.Int64 // number of probes sent
	ledgerToken   string       // the token that sendClaim claims
	base          time.Time    // of the first readings
	resent        int          // number of messages
	replayed      int          // number of events
	busy          sync.Map     // ICCIDs of SIMs that have a job, or may have one

	pausing  sync.RWMutex // read-locked by call; pause locks it to let the load stand still
	direct   sync.RWMutex // read-locked by each item of a direct kind
	restores int          // number of restores so far

	mu    sync.Mutex
	notes []string      // events that fail the run
	done  chan struct{} // closed when the load ends
}

// newSite starts a site. The caller must stop the site even if newSite returns an error.
func newSite(ctx context.Context, kind backendKind, dir string, o settings) (*site, error) {
	s := &site{
		run: servers.Run{Dir: dir}, kind: kind, settings: o, done: make(chan struct{}),
		client: &http.Client{Timeout: 15 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: 256}},
		base:   time.Now().UTC().Add(-12 * time.Hour).Truncate(time.Second),
	}
	s.ledger = newLedger()
	if err := s.startOutside(); err != nil {
		return s, err
	}
	env, err := s.startBackends(ctx)
	if err != nil {
		return s, err
	}
	config, inventory := filepath.Join(dir, "penstock.yaml"), filepath.Join(dir, "inventory.yaml")
	if err := os.WriteFile(config, fmt.Appendf(nil, configText, s.smscProxy.addr, s.smsc.addr), 0o600); err != nil {
		return s, err
	}
	if err := os.WriteFile(inventory, s.inventory(), 0o600); err != nil {
		return s, err
	}
	for n := range kind.gateways {
		g := &gateway{name: fmt.Sprintf("gateway%d-", n+1), addr: servers.FreeAddr(), run: &s.run, binary: o.binary, config: config, note: s.note}
		s.setDir(ctx, g)
		s.gateways = append(s.gateways, g)
		redis, err := s.ownRedis(n)
		if err != nil {
			return s, err
		}
		g.env = slices.Concat([]string{
			"PENSTOCK_LISTEN=" + g.addr, "PENSTOCK_INTERNAL_URL=http://" + g.addr, "PENSTOCK_DATA_DIR=" + g.dir, "PENSTOCK_INVENTORY=" + inventory,
			"PENSTOCK_ADMIN_TOKEN=" + adminToken, "PENSTOCK_PUBLIC_URL=http://" + s.gateways[0].addr,
			"PENSTOCK_EGRESS_ALLOW=127.0.0.1/32", "PENSTOCK_EGRESS_ALLOW_HTTP_CALLBACK=true",
			"PENSTOCK_LEDGER_MASTER_KEY=Y2hhb3MtY2hhb3MtY2hhb3MtY2hhb3MtY2hhb3MtMTI=",
		}, env, redis)
		if err := s.startGateway(ctx, g); err != nil {
			return s, err
		}
	}
	return s, s.createToken(ctx)
}

// setDir sets the data directory of a gateway, on a disk of its own if newDisk succeeds.
func (s *site) setDir(ctx context.Context, g *gateway) {
	g.dir = filepath.Join(s.run.Dir, strings.TrimSuffix(g.name, "-"))
	d, err := newDisk(ctx, g.dir+"-disk")
	if err != nil {
		fmt.Printf("no disk is filled in this run: %v\n", err)
		return
	}
	g.disk, g.dir = d, filepath.Join(d.dir, "data")
}

func (s *site) startGateway(ctx context.Context, g *gateway) error {
	if err := g.launch(ctx); err != nil {
		return err
	}
	return g.ready(ctx)
}

// startOutside starts the sink, the SMSC and its proxy.
func (s *site) startOutside() (err error) {
	if s.sink, err = newSink(); err != nil {
		return err
	}
	if s.smsc, err = newSMSC(); err != nil {
		return err
	}
	s.smscProxy, err = newProxy(s.smsc.addr)
	return err
}

// configText is the configuration of the gateways. Failed deliveries are attempted again soon and
// often, parts wait for the missing ones for the whole run, and a dead link to the SMSC is
// noticed within seconds. One bind to the SMSC goes through the proxy, so that the other bind
// takes over when the proxy fails.
const configText = `
carriers:
  - {type: smpp, name: far, system_id: chaos, password: secret, binds: [{addr: %q}, {addr: %q}], window: 50, enquire_link: 2s, answer_timeout: 5s}
delivery:
  schedule: [1s, 1s, 2s, 2s, 3s, 5s, 5s, 5s, 5s, 5s, 10s, 10s, 10s, 10s, 10s, 10s, 10s, 10s, 10s, 10s, 30s, 30s, 30s, 30s, 30s, 30s, 30s, 30s, 30s, 30s]
inbound: {join_wait: 12h}
`

// inventory returns the inventory with the account of the run.
func (s *site) inventory() []byte {
	var sims []string
	for n := range simCount {
		sims = append(sims, fmt.Sprintf("{iccid: %q, current_state: active}", iccid(n)))
	}
	return fmt.Appendf(nil, inventoryText, openingCredit, token, s.sink.addr, s.sink.addr, strings.Join(sims, ", "))
}

const inventoryText = `
sensor_types: [{id: count, name: Count}]
accounts:
  - name: chaos
    credit: %d
    tokens: [{token: %s, scopes: [messaging, cellular, iot, ledger, webhook, carrier]}]
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

// note records an event that fails the run.
func (s *site) note(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.notes = append(s.notes, text)
}

// stop ends the gateways with SIGTERM, then all other processes and servers.
func (s *site) stop() {
	for _, g := range s.gateways {
		g.end(syscall.SIGTERM)
	}
	s.run.Stop()
	for _, g := range s.gateways {
		if g.disk != nil {
			g.disk.remove()
		}
	}
	for _, p := range append(s.proxies, s.smscProxy) {
		if p != nil {
			_ = p.listener.Close()
		}
	}
	if s.sink != nil {
		s.sink.kill()
	}
	if s.smsc != nil {
		s.smsc.kill()
	}
}
