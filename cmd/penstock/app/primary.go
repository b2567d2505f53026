package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/penstock/penstock/config"
	"github.com/penstock/penstock/delivery/durable"
	"github.com/penstock/penstock/ingest/admin"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/db"
	registry "github.com/penstock/penstock/relay/gateway"
)

// primaryFile contains the PostgreSQL server that the gateways used last, and the addresses of the
// other gateways, which are needed while the server is down.
const primaryFile = "postgresql"

// exchangeEvery is the interval at which a gateway compares its server with those of the other
// gateways and connects to the hosts of database.url.
const exchangeEvery = 5 * time.Second

// exchangeTime is the longest time for which a gateway waits for the answers of other gateways.
const exchangeTime = 2 * time.Second

// primaryGuard refuses PostgreSQL servers except the newest server that a gateway has used and its
// successors.
type primaryGuard struct {
	path string // of primaryFile; empty if the records are not in PostgreSQL
	node string
	keys registry.Keys
	log  *slog.Logger

	mu     sync.Mutex
	stored storedPrimary
	// changed has an element while a new server has not been sent to the other gateways.
	changed chan struct{}
}

// storedPrimary is the content of primaryFile.
type storedPrimary struct {
	db.Server
	Peers []string `json:"peers"` // internal URLs of the other gateways
}

// openPrimary reads the server that was used last, and exchanges it with the other gateways.
func openPrimary(ctx context.Context, cfg config.Config, node string, log *slog.Logger) (*primaryGuard, error) {
	p := &primaryGuard{node: node, log: log, changed: make(chan struct{}, 1)}
	keys, err := masterKeys(cfg)
	if err != nil {
		return nil, err
	}
	if p.keys, err = registry.NewKeys(keys); err != nil || cfg.Database.URL == "" {
		return p, err
	}
	p.path = filepath.Join(cfg.DataDir, primaryFile)
	if err := readJSON(p.path, &p.stored, "if database.url does not name an old primary, remove the file"); err != nil {
		return nil, err
	}
	p.exchange(ctx)
	return p, nil
}

// admit refuses a server that is neither the newest known server nor its successor, and stores a
// successor.
func (p *primaryGuard) admit(server db.Server) error {
	if server.System == "" { // the server does not report its identity
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.stored.Refuse(server); err != nil {
		return err
	}
	server.Accepted = p.stored.Accepted
	p.setServer(p.stored.Newer(server))
	return nil
}

// mergeServer stores the server of another gateway if it is newer, and returns the newest server.
func (p *primaryGuard) mergeServer(peerServer db.Server) db.Server {
	p.mu.Lock()
	defer p.mu.Unlock()
	if peerServer.System != "" {
		p.setServer(p.stored.Newer(peerServer))
	}
	return p.stored.Server
}

// setServer stores the newest known server. The caller holds the lock.
func (p *primaryGuard) setServer(server db.Server) {
	if server == p.stored.Server {
		return
	}
	if p.stored.System != "" {
		p.log.Warn("another PostgreSQL server is used from now on", "host", server.Host, "timeline", server.Timeline, "system_identifier", server.System,
			"last_host", p.stored.Host, "last_timeline", p.stored.Timeline)
	}
	updated := p.stored
	updated.Server = server
	p.saveOrLog(updated)
	relay.Notify(p.changed)
}

// setPeers stores the addresses of the other gateways.
func (p *primaryGuard) setPeers(gateways []registry.Gateway) {
	var peers []string
	for i := range gateways {
		if gateways[i].Node != p.node {
			peers = append(peers, gateways[i].URL)
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if slices.Equal(peers, p.stored.Peers) {
		return
	}
	updated := p.stored
	updated.Peers = peers
	p.saveOrLog(updated)
}

// saveOrLog sets stored, and logs an error if the file cannot be written. The caller holds the
// lock.
func (p *primaryGuard) saveOrLog(updated storedPrimary) {
	if err := p.save(updated); err != nil {
		p.log.Error("cannot save the PostgreSQL server in use: after a restart an old primary may be used", "error", err)
	}
	p.stored = updated
}

func (p *primaryGuard) save(updated storedPrimary) error {
	if p.path == "" {
		return nil
	}
	text, err := json.Marshal(updated)
	if err != nil {
		return err
	}
	return durable.WriteFile(p.path, append(text, '\n'), 0o600)
}

// exchange sends the server to the other gateways, and stores a newer server from their answers.
func (p *primaryGuard) exchange(ctx context.Context) {
	p.mu.Lock()
	stored := p.stored
	p.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, exchangeTime)
	defer cancel()
	peers := admin.NewPeers(p.node, p.keys, nil, time.Now)
	var requests sync.WaitGroup
	for _, url := range stored.Peers {
		requests.Go(func() {
			peerServer, err := peers.ExchangeServer(ctx, url, stored.Server)
			if err != nil {
				p.log.DebugContext(ctx, "another gateway did not return its PostgreSQL server", "url", url, "error", err)
				return
			}
			p.mergeServer(peerServer)
		})
	}
	requests.Wait()
}

// watch runs exchange and connects to the hosts of database.url until ctx ends.
func (p *primaryGuard) watch(ctx context.Context, db *db.DB) {
	logged := fmt.Sprint(db.HostErrors())
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
			return
		case <-p.changed:
		case <-time.After(exchangeEvery):
		}
		p.exchange(ctx)
		if !db.HasSeveralHosts() {
			continue
		}
		db.Probe(ctx)
		err := db.HostErrors()
		if reason := fmt.Sprint(err); reason != logged && ctx.Err() == nil {
			logged = reason
			logHosts(p.log, err)
		}
	}
}

// logHosts logs the state of the hosts of database.url.
func logHosts(log *slog.Logger, err error) {
	if err == nil {
		log.Info("every host of database.url answers")
		return
	}
	log.Error("hosts of database.url cannot be used", "error", err)
}

// accept accepts the refused server and returns a description of it; empty if no server was
// refused. It returns a Conflict error if another host can be used.
func (p *primaryGuard) accept(ctx context.Context, database *db.DB) (server string, err error) {
	database.Probe(ctx)
	refusal, ok := errors.AsType[*db.ServerRefused](database.HostErrors())
	if !ok {
		return "", nil
	}
	if _, err := db.Value[int64](ctx, database, "database", "SELECT 1"); err == nil {
		return "", relay.Errorf(relay.KindConflict, "accept_server: %s is not accepted, because another host of database.url can be used; leave that host out of database.url to use the refused one", refusal.Found.Host)
	}
	return p.acceptRefused(refusal)
}

// acceptRefused accepts a refused server and returns a description of it.
func (p *primaryGuard) acceptRefused(refusal *db.ServerRefused) (server string, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	updated := p.stored
	updated.Server = refusal.Found
	updated.Accepted = p.stored.Accepted + 1
	if err := p.save(updated); err != nil {
		return "", fmt.Errorf("the PostgreSQL server %s is not accepted: %w", refusal.Found.Host, err)
	}
	p.setServer(updated.Server)
	return fmt.Sprintf("%s (system identifier %s, timeline %d)", refusal.Found.Host, refusal.Found.System, refusal.Found.Timeline), nil
}
