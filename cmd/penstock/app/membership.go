package app

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/penstock/penstock/config"
	"github.com/penstock/penstock/delivery/durable"
	"github.com/penstock/penstock/ingest/admin"
	"github.com/penstock/penstock/ingest/intake"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/cache"
	"github.com/penstock/penstock/relay/event"
	registry "github.com/penstock/penstock/relay/gateway"
	"github.com/penstock/penstock/relay/sqlstore/gateways"
)

// databaseFile is the file of the witness.
const databaseFile = "database"

// witness is the state that the database has acknowledged to this gateway. A database
// that knows less is another one, or was restored to an earlier state: processing
// must stop, or the entries that were processed into the later state would be lost.
type witness struct {
	Node     string `json:"node,omitempty"` // the gateway's
	Database string `json:"database"`
	Beats    uint64 `json:"beats"`
	// Restored means that `penstock restore` has put back an earlier database.
	Restored bool `json:"restored,omitempty"`
}

// membership registers the gateway, checks that it is consistent with the others, and
// stops processing if the database was replaced or restored.
type membership struct {
	store   *gateways.Store
	dir     string
	self    registry.Gateway
	token   string // authenticates requests between gateways
	cache   *cache.DB
	intakes map[event.Kind]*intake.Intake
	// accept accepts the ledgers of a restored database as they are.
	accept func(context.Context) ([]string, error)
	// lostWrites means that the embedded records had lost writes at the start, and reverted
	// is the number of entries that are processed again for that; see catchUp.
	lostWrites bool
	reverted   int

	beating  sync.Mutex // guards what follows, and the database against two that look at it
	seen     witness
	database string // the one that answers now

	mu        sync.Mutex
	conflicts []string
	halted    string // why processing stopped; empty: it goes on
	resume    chan struct{}
	stop      context.CancelFunc // of what is being processed
}

// openMembership creates the membership; start registers the gateway.
func (d *Gateway) openMembership(ctx context.Context, back backends, intakes map[event.Kind]*intake.Intake, ledgers *ledgerService) (m *membership, err error) {
	m = &membership{
		store: back.records.Gateways, dir: d.cfg.DataDir, cache: back.cache, intakes: intakes, accept: ledgers.Accept, resume: make(chan struct{}), stop: func() {},
		self: registry.Gateway{Node: d.node, URL: d.cfg.InternalURL, Version: d.version, StartedAt: time.Now(), Facts: d.facts(ledgers.masterKey)},
	}
	if m.token, err = m.store.Setting(ctx, "gateway_token", rand.Text); err != nil {
		return nil, err
	}
	d.check(admin.Backend{Name: "gateways", Note: "node " + d.node, Check: m.check})
	if err := m.load(); err != nil {
		return nil, err
	}
	if d.cfg.Database.URL == "" {
		if err := m.acceptEarlier(ctx, back.records.DB); err != nil {
			return nil, err
		}
	}
	// A database that is down now is checked by the next heartbeat.
	if err := m.verify(ctx); err != nil && relay.KindOf(err) != relay.KindUnavailable {
		return nil, err
	}
	return m, nil
}

// facts are the settings that must be the same at all gateways.
func (d *Gateway) facts(masterKey string) registry.Facts {
	readings := registry.Embedded + d.node
	if d.cfg.Influx.URL != "" {
		readings = "influxdb " + config.Config{Influx: d.cfg.Influx}.Redacted().Influx.URL + " " + d.cfg.Influx.Bucket
	}
	return registry.Facts{registry.Readings: readings, registry.LedgerKey: fingerprint(masterKey), registry.AdminToken: fingerprint(d.cfg.AdminToken), registry.PublicURL: d.cfg.PublicURL}
}

// fingerprint identifies a secret without revealing it.
func fingerprint(secret string) string {
	sum := sha256.Sum256([]byte("penstock fingerprint " + secret))
	return hex.EncodeToString(sum[:8])
}

// load reads the witness.
func (m *membership) load() error {
	b, err := os.ReadFile(filepath.Join(m.dir, databaseFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = json.Unmarshal(b, &m.seen)
	}
	if err != nil {
		return fmt.Errorf("%s is damaged: if the database is the one that this gateway used last, remove the file: %w", filepath.Join(m.dir, databaseFile), err)
	}
	if node := m.self.Node; node != "" && m.seen.Node != "" && node != m.seen.Node {
		return fmt.Errorf("%s says that this is the gateway %s, but %s was written by the gateway %s: if the file was lost or damaged, write %s to it",
			filepath.Join(m.dir, nodeFile), node, databaseFile, m.seen.Node, m.seen.Node)
	}
	return nil
}

// outdate invalidates the witness of a restored data directory: the database counts as
// restored, so that the journal is processed again.
func outdate(dataDir string) error {
	m := membership{dir: dataDir}
	if err := m.load(); err != nil || m.seen.Database == "" {
		return err
	}
	m.seen.Beats++
	m.seen.Restored = true
	return m.save(m.seen)
}

// save writes the witness.
func (m *membership) save(seen witness) error {
	b, err := json.Marshal(seen)
	if err != nil {
		return err
	}
	return durable.WriteFile(filepath.Join(m.dir, databaseFile), append(b, '\n'), 0o600)
}

// verify compares the database with the witness and stops processing if it knows less.
func (m *membership) verify(ctx context.Context) error {
	found, err := m.look(ctx)
	if err != nil {
		return err
	}
	m.database = found.Database
	switch {
	case m.seen.Database == "":
		m.seen = found
	case m.seen.Database != found.Database:
		m.halt("this is another database than the one that the journal was processed into")
	case found.Beats < m.seen.Beats:
		m.halt("the database is in an earlier state than this gateway has seen: it was restored from a backup")
	}
	return nil
}

// look reads the state of the database.
func (m *membership) look(ctx context.Context) (found witness, err error) {
	found.Node = m.self.Node
	if found.Database, err = m.store.Setting(ctx, "database", func() string { return strings.ToLower(rand.Text()) }); err != nil {
		return found, err
	}
	found.Beats, err = m.store.Checkpoint(ctx, m.self.Node, "")
	return found, err
}

// halt stops processing, once.
func (m *membership) halt(reason string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.halted != "" {
		return
	}
	m.halted = reason + ". Processing has stopped; what arrives is kept in the journal. " +
		"`penstock recover` processes the journal again from what the database knows, and goes on"
	m.stop()
}

// Halted returns why processing stopped; empty if it is running.
func (m *membership) Halted() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.halted
}

// process processes one kind of traffic until ctx is done, except while halted.
func (m *membership) process(ctx context.Context, run func(context.Context) error) error {
	for ctx.Err() == nil {
		m.mu.Lock()
		halted, resume := m.halted != "", m.resume
		var running context.Context
		if !halted {
			var cancel context.CancelFunc
			running, cancel = context.WithCancel(ctx)
			before := m.stop
			m.stop = func() { before(); cancel() }
		}
		m.mu.Unlock()
		if !halted {
			if err := run(running); err != nil || ctx.Err() != nil {
				return err
			}
			continue
		}
		select {
		case <-resume:
		case <-ctx.Done():
		}
	}
	return nil
}

// run sends heartbeats until ctx is done, the first one after HeartbeatEvery.
func (m *membership) run(ctx context.Context, log *slog.Logger) {
	for pause(ctx, registry.HeartbeatEvery) {
		m.beatOrWarn(ctx, log)
	}
}

func (m *membership) beatOrWarn(ctx context.Context, log *slog.Logger) {
	if err := m.beat(ctx); err != nil && ctx.Err() == nil {
		log.WarnContext(ctx, "heartbeat not sent", "error", err)
	}
}

// beat checks the database, registers the gateway and checks the others.
func (m *membership) beat(ctx context.Context) error {
	m.beating.Lock()
	defer m.beating.Unlock()
	if err := m.verify(ctx); err != nil {
		return err
	}
	conflict := m.checkRedis(ctx)
	if err := m.store.Heartbeat(ctx, m.self); err != nil {
		return err
	}
	all, err := m.store.Gateways(ctx)
	if err != nil {
		return err
	}
	conflicts := append(conflict, registry.Conflicts(&m.self, all, time.Now())...)
	m.mu.Lock()
	m.conflicts = conflicts
	halted := m.halted != ""
	m.mu.Unlock()
	if halted {
		return nil // the database must not be told of what it does not have
	}
	return m.acknowledge(ctx)
}

// checkRedis registers this database in Redis and reports gateways on another
// database that use the same Redis. Errors of Redis are reported elsewhere.
func (m *membership) checkRedis(ctx context.Context) (conflicts []string) {
	if id, err := m.cache.ID(ctx); err == nil {
		m.self.Facts[registry.Redis] = id
	}
	others, err := m.cache.Databases(ctx, m.database, time.Now(), registry.AwayAfter)
	if err == nil && len(others) > 0 {
		conflicts = []string{"gateways on another database use the same Redis: give all of them the same database.url, or redis.url a Redis of its own"}
	}
	return conflicts
}

// acknowledge saves the checkpoints of the journals in the database, and then the
// database's acknowledgement in the witness.
func (m *membership) acknowledge(ctx context.Context) error {
	for kind, in := range m.intakes {
		if err := m.store.SetCheckpoint(ctx, m.self.Node, string(kind), in.Committed()); err != nil {
			return err
		}
	}
	next := m.seen
	next.Beats++
	next.Node = m.self.Node
	if err := m.store.SetCheckpoint(ctx, m.self.Node, "", next.Beats); err != nil {
		return err
	}
	if err := m.save(next); err != nil {
		return err
	}
	m.seen = next
	return nil
}

// check reports why this gateway is halted or inconsistent with the others.
func (m *membership) check(context.Context) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.halted != "" {
		return admin.Reason(m.halted)
	}
	if len(m.conflicts) > 0 {
		return admin.Reason(strings.Join(m.conflicts, "; "))
	}
	return nil
}

// Recover resumes after the database was restored: it processes again the journal
// entries that the database has lost and accepts the ledgers as they are. It returns
// the number of events, and the ledgers.
func (m *membership) Recover(ctx context.Context) (done admin.Recovered, err error) {
	m.beating.Lock()
	defer m.beating.Unlock()
	if err := m.verify(ctx); err != nil {
		return done, err
	}
	if m.Halted() == "" && m.lostWrites { // the ledgers are left to accept
		done.Count = m.reverted
		if done.Ledgers, err = m.accept(ctx); err == nil {
			m.lostWrites = false
		}
		return done, err
	}
	if m.Halted() == "" {
		return done, relay.Errorf(relay.KindConflict, "recover: processing has not stopped")
	}
	for kind, in := range m.intakes {
		from, err := m.store.Checkpoint(ctx, m.self.Node, string(kind))
		if err != nil {
			return done, err
		}
		n, err := in.Reprocess(ctx, from+1)
		done.Count += n
		if err != nil {
			return done, fmt.Errorf("recover: %s: %w", kind, err)
		}
	}
	if done.Ledgers, err = m.accept(ctx); err != nil {
		return done, err
	}
	found, err := m.look(ctx)
	if err != nil {
		return done, err
	}
	done.Count += m.reverted
	m.mu.Lock()
	defer m.mu.Unlock()
	m.seen, m.lostWrites = found, false
	m.halted, m.stop = "", func() {}
	close(m.resume)
	m.resume = make(chan struct{})
	return done, nil
}
