package app

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
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
)

// databaseFile contains the witness, in the data directory.
const databaseFile = "database"

// witness is the state that the database has acknowledged to this gateway. A database in an
// earlier state was replaced or restored. Processing must stop then, because entries that were
// processed in the meantime would be lost.
type witness struct {
	Node     string    `json:"node,omitempty"` // name of the gateway
	Database string    `json:"database"`       // id of the database
	Beats    uint64    `json:"beats"`          // number of heartbeats
	At       time.Time `json:"at"`             // time of the acknowledgement
	// Restored means that `penstock restore` has restored an earlier database.
	Restored bool `json:"restored,omitempty"`
}

// membership registers the gateway, checks that its settings and database match those of the
// other gateways, and closes the gate if the database was replaced or restored.
type membership struct {
	store   *registry.Store
	dir     string // the data directory
	self    registry.Gateway
	keys    registry.Keys // sign requests between gateways
	cache   *cache.DB
	primary *primaryGuard
	intakes map[event.Kind]*intake.Intake
	gate    *registry.Gate
	log     *slog.Logger
	// afterRestore prepares the records of a restored database, see recordStores.
	afterRestore func(context.Context, registry.Halt) (int, error)
	// forgetKeys discards the keys of sealed records, which a restored database may lack.
	forgetKeys func()
	// acceptLedgers accepts the current state of the ledgers of a restored database.
	acceptLedgers func(context.Context) ([]string, error)
	// lostWrites means that the embedded records had lost their writes between lostSince and
	// lostUntil at the start. catchUp sets it, and sets reverted to the number of entries that are
	// processed again.
	lostWrites bool
	lostSince  time.Time // zero for the beginning
	lostUntil  time.Time
	reverted   int

	watchFor time.Duration // time for which checkName watches the heartbeats of another gateway

	heartbeatMu sync.Mutex // locked by a heartbeat and by Recover; guards the next fields
	claimed     bool       // this process has registered
	endedAt     time.Time  // last heartbeat of an ended process with this name
	database    string     // id of the connected database; empty if it has no tables

	mu         sync.Mutex
	witness    witness
	conflicts  []string
	haltReason string // reason why processing has stopped; empty while it runs
	haltedAt   time.Time
	// haltedByOther means that processing has stopped because another gateway stopped.
	haltedByOther bool
	// acknowledgedCheckpoints has the checkpoints of the last heartbeats, oldest first; see reprocess.
	acknowledgedCheckpoints []map[event.Kind]uint64
	retired                 bool // stopped until the process ends: another process uses its name
}

// openMembership creates the membership; start registers the gateway.
func (g *Gateway) openMembership(ctx context.Context, stores backends, intakes map[event.Kind]*intake.Intake, ledgers *ledgerService) (m *membership, err error) {
	m = &membership{
		store: stores.records.Gateways, dir: g.cfg.DataDir, cache: stores.cache, primary: stores.primary, keys: stores.primary.keys,
		intakes: intakes, gate: g.gate, log: g.log, watchFor: registry.WatchFor,
		afterRestore: stores.records.afterRestore, forgetKeys: ledgers.vault.Forget, acceptLedgers: ledgers.AcceptHeads,
		self: registry.Gateway{
			Node: g.node, URL: g.cfg.InternalURL, Version: g.version, StartedAt: time.Now(), Facts: g.facts(ledgers.masterKey),
		},
	}
	m.self.Facts[registry.Incarnation] = rand.Text()
	if m.self.Facts[registry.Place], err = dataDirPlace(g.cfg.DataDir); err != nil {
		g.log.Warn("cannot distinguish this data directory from a copy; a start after a kill takes longer", "error", err)
	}
	g.addCheck(admin.Backend{Name: "gateways", Note: "node " + g.node, Check: m.check})
	if m.witness, err = loadWitness(m.dir); err != nil {
		return nil, err
	}
	if m.witness.Node != "" && m.witness.Node != g.node {
		return nil, fmt.Errorf("%s has the name of gateway %s, but %s was written by gateway %s: if the first file was lost or damaged, write %s to it",
			filepath.Join(m.dir, nodeFile), g.node, databaseFile, m.witness.Node, m.witness.Node)
	}
	if g.cfg.Database.URL == "" {
		if err := m.acceptEarlier(ctx, stores.records.DB); err != nil {
			return nil, err
		}
	}
	m.store.OnConnect(g.node, m.verifyConnection)
	// The next heartbeat verifies a database that is down now.
	if err := m.verify(ctx); err != nil && relay.KindOf(err) != relay.KindUnavailable {
		return nil, err
	}
	return m, nil
}

// facts returns the settings that must be the same at all gateways.
func (g *Gateway) facts(masterKey string) registry.Facts {
	readings := registry.Embedded + g.node
	if g.cfg.Influx.URL != "" {
		readings = "influxdb " + config.Config{Influx: g.cfg.Influx}.Redacted().Influx.URL + " " + g.cfg.Influx.Bucket
	}
	return registry.Facts{
		registry.Readings: readings, registry.LedgerKey: fingerprint(masterKey), registry.PublicURL: g.cfg.PublicURL,
		// The admin token may be guessable: without the key, its fingerprint would confirm a guess.
		registry.AdminToken: fingerprint(masterKey + " " + g.cfg.AdminToken),
	}
}

// fingerprint identifies a secret that cannot be guessed, without revealing it.
func fingerprint(secret string) string {
	sum := sha256.Sum256([]byte("penstock fingerprint " + secret))
	return hex.EncodeToString(sum[:8])
}

// loadWitness reads the witness of a data directory. It returns the zero witness if the
// directory has none.
func loadWitness(dir string) (w witness, err error) {
	err = readJSON(filepath.Join(dir, databaseFile), &w, "if this gateway used the same database last, remove the file")
	return w, err
}

func (w witness) save(dir string) error {
	b, err := json.Marshal(w)
	if err != nil {
		return err
	}
	return durable.WriteFile(filepath.Join(dir, databaseFile), append(b, '\n'), 0o600)
}

// outdateWitness invalidates the witness of a restored data directory, so that the database counts as
// restored and the journal is processed again.
func outdateWitness(dataDir string) error {
	w, err := loadWitness(dataDir)
	if err != nil || w.Database == "" {
		return err
	}
	w.Beats++
	w.Restored = true
	return w.save(dataDir)
}

// compare closes the gate if the database is not the database of the witness w, or is in an earlier
// state. It does nothing if this gateway has recovered since w was read. The id of an empty database
// is empty.
func (m *membership) compare(w witness, id string, beats uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch recovered := m.witness.Database != w.Database || m.witness.Beats < w.Beats; {
	case w.Database == "" || recovered:
	case id == "":
		m.haltLocked("the database is empty")
	case id != w.Database:
		m.haltLocked("the journal was processed into another database than this one")
	case beats < w.Beats:
		m.haltLocked("the database is in an earlier state than this gateway has seen: it was restored from a backup")
	}
}

func (m *membership) lastWitness() witness {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.witness
}

// verifyConnection compares the database of a new connection with the witness, so that no record
// of a restored database is leased before the next heartbeat.
func (m *membership) verifyConnection(ctx context.Context, read func(context.Context) (string, uint64, error)) error {
	w := m.lastWitness()
	id, beats, err := read(ctx)
	if err == nil {
		m.compare(w, id, beats)
	}
	return err
}

// verify compares the database with the witness, and closes or opens the gate. All gateways on a
// restored database stop: the first gateway that finds the database restored saves a halt.
func (m *membership) verify(ctx context.Context) error {
	w := m.lastWitness()
	if w.Database == "" {
		current, err := m.readState(ctx)
		if err != nil {
			return err
		}
		m.mu.Lock()
		m.witness, w = current, current
		m.mu.Unlock()
	}
	id, beats, err := m.store.Database(ctx, m.self.Node)
	if err != nil {
		return err
	}
	m.database = id
	m.compare(w, id, beats)
	halt, err := m.store.Halt(ctx)
	if err != nil {
		return err
	}
	restored := id == w.Database && beats < w.Beats
	if restored && !halt.IsActive() && !halt.RecoveredAt.After(w.At) {
		m.mu.Lock()
		halt = registry.Halt{Node: m.self.Node, Since: m.haltedAt}
		m.mu.Unlock()
		if halt.LastWrite, err = m.store.LastHeartbeat(ctx); err != nil {
			return err
		}
		if err := m.store.SaveHalt(ctx, halt); err != nil {
			return err
		}
	}
	m.mu.Lock()
	otherRecovered := m.haltedByOther && !halt.IsActive()
	m.mu.Unlock()
	if otherRecovered {
		if _, err := m.reprocess(ctx); err != nil {
			m.log.WarnContext(ctx, "the journal cannot be processed again; processing stays stopped", "error", err)
			return nil // the heartbeat continues
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.haltReason == "" && halt.IsActive():
		m.haltLocked(fmt.Sprintf("gateway %s has found that the database is in an earlier state than before: it was restored from a backup", halt.Node))
		m.haltedByOther = true
	case m.haltedByOther && !halt.IsActive():
		m.resumeLocked()
	case m.haltReason == "":
		m.gate.Open()
	}
	return nil
}

// reprocess processes the journal entries again that a restored database has lost, and returns
// their number. It begins at the checkpoints in the database. If another gateway has detected the
// restore, an earlier heartbeat of this gateway may have overwritten its checkpoints: reprocess
// then begins at the checkpoints of the oldest heartbeat in acknowledgedCheckpoints.
func (m *membership) reprocess(ctx context.Context) (count int, err error) {
	var oldestCheckpoints map[event.Kind]uint64
	m.mu.Lock()
	if m.haltedByOther && len(m.acknowledgedCheckpoints) > 0 {
		oldestCheckpoints = m.acknowledgedCheckpoints[0]
	}
	m.mu.Unlock()
	for kind, intake := range m.intakes {
		fromSeq, err := m.store.Checkpoint(ctx, m.self.Node, string(kind))
		if err != nil {
			return count, err
		}
		if oldestCheckpoints != nil {
			fromSeq = min(fromSeq, oldestCheckpoints[kind])
		}
		n, err := intake.Reprocess(ctx, fromSeq+1)
		count += n
		if err != nil {
			return count, fmt.Errorf("recover: %s: %w", kind, err)
		}
	}
	return count, nil
}

// readState reads the state of the database. It creates the id of a new database.
func (m *membership) readState(ctx context.Context) (current witness, err error) {
	current = witness{Node: m.self.Node, At: time.Now()}
	if current.Database, err = m.store.Setting(ctx, "database", func() string { return strings.ToLower(rand.Text()) }); err != nil {
		return current, err
	}
	_, current.Beats, err = m.store.Database(ctx, m.self.Node)
	return current, err
}

// haltLocked stops processing unless processing has already stopped. The caller holds m.mu.
func (m *membership) haltLocked(reason string) {
	if m.haltReason != "" {
		return
	}
	m.gate.Close()
	m.forgetKeys()
	m.haltedAt = time.Now()
	m.haltReason = reason + ". Processing has stopped; the journal stores new entries. " +
		"`penstock recover` processes the journal again from the state of the database, and continues"
	m.log.Error("processing has stopped", "error", m.haltReason)
}

func (m *membership) resumeLocked() {
	m.haltReason, m.haltedByOther = "", false
	m.gate.Open()
	m.log.Info("processing continues")
}

// HaltReason returns the reason why processing has stopped; empty while it runs.
func (m *membership) HaltReason() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.haltReason
}

func (m *membership) isRetired() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.retired
}

// run sends heartbeats until ctx is done, the first one after HeartbeatEvery.
func (m *membership) run(ctx context.Context) {
	for relay.Sleep(ctx, registry.HeartbeatEvery) {
		m.beatOrWarn(ctx)
	}
}

func (m *membership) beatOrWarn(ctx context.Context) {
	if err := m.beat(ctx); err != nil && ctx.Err() == nil {
		m.log.WarnContext(ctx, "heartbeat not sent", "error", err)
	}
}

// beat verifies the database, sends a heartbeat and compares the settings of all gateways.
func (m *membership) beat(ctx context.Context) error {
	m.heartbeatMu.Lock()
	defer m.heartbeatMu.Unlock()
	if m.isRetired() {
		return nil
	}
	if err := m.verify(ctx); err != nil {
		return err
	}
	if m.database == "" {
		return nil // the database is being restored, and must not be written to
	}
	if taken, err := m.checkName(ctx); err != nil || taken {
		return err
	}
	conflicts := m.checkRedis(ctx)
	if err := m.store.Heartbeat(ctx, m.self); err != nil {
		return err
	}
	m.claimed = true
	gateways, err := m.store.Gateways(ctx)
	if err != nil {
		return err
	}
	m.primary.setPeers(gateways)
	conflicts = append(conflicts, registry.Conflicts(&m.self, gateways, time.Now())...)
	m.mu.Lock()
	m.conflicts = conflicts
	halted := m.haltReason != ""
	m.mu.Unlock()
	if halted {
		return nil // the database must not get checkpoints beyond its own data
	}
	return m.acknowledge(ctx)
}

// redisCheckTime is the longest time that a heartbeat waits for Redis.
const redisCheckTime = time.Second

// checkRedis registers this database in Redis, and returns a conflict if gateways on another
// database use the same Redis. Another check reports errors of Redis. A Redis server that hangs
// must not delay the heartbeat: without a heartbeat, other gateways consider this gateway away.
func (m *membership) checkRedis(ctx context.Context) (conflicts []string) {
	ctx, cancel := context.WithTimeout(ctx, redisCheckTime)
	defer cancel()
	if id, err := m.cache.ID(ctx); err == nil {
		m.self.Facts[registry.Redis] = id
	}
	otherDatabases, err := m.cache.RegisterDatabase(ctx, m.database, time.Now(), registry.AwayAfter)
	if err == nil && len(otherDatabases) > 0 {
		conflicts = []string{"gateways on another database use the same Redis: give all of them the same database.url, or redis.url a Redis of its own"}
	}
	return conflicts
}

// acknowledgedBeats is the number of heartbeats whose checkpoints are kept. Gateways
// detect a restored database within this number of heartbeats.
const acknowledgedBeats = 5

// acknowledge saves the checkpoints of the journals in the database, and then the new state of
// the database in the witness.
func (m *membership) acknowledge(ctx context.Context) error {
	checkpoints := make(map[event.Kind]uint64)
	for kind, intake := range m.intakes {
		checkpoints[kind] = intake.Committed()
		if err := m.store.SetCheckpoint(ctx, m.self.Node, string(kind), checkpoints[kind]); err != nil {
			return err
		}
	}
	nextWitness := m.lastWitness()
	nextWitness.Node, nextWitness.Beats, nextWitness.At = m.self.Node, nextWitness.Beats+1, time.Now()
	if err := m.store.SetCheckpoint(ctx, m.self.Node, "", nextWitness.Beats); err != nil {
		return err
	}
	if err := nextWitness.save(m.dir); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.witness = nextWitness
	m.acknowledgedCheckpoints = append(m.acknowledgedCheckpoints, checkpoints)
	m.acknowledgedCheckpoints = m.acknowledgedCheckpoints[max(0, len(m.acknowledgedCheckpoints)-acknowledgedBeats):]
	return nil
}

// check returns the reason why this gateway is halted, or its conflicts with other gateways.
func (m *membership) check(context.Context) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.haltReason != "" {
		return admin.Reason(m.haltReason)
	}
	if len(m.conflicts) > 0 {
		return admin.Reason(strings.Join(m.conflicts, "; "))
	}
	return nil
}

// missingRecords returns the time range of the writes that the database may lack. The range begins at the
// last write of a restored database, and has no beginning for another database.
func (m *membership) missingRecords(halt registry.Halt) *admin.MissingRecords {
	m.mu.Lock()
	defer m.mu.Unlock()
	since := time.Time{}
	if m.database == m.witness.Database {
		since = halt.LastWrite
	}
	if m.lostWrites && m.lostSince.Before(since) {
		since = m.lostSince
	}
	return admin.MissingBetween(since, m.haltedAt)
}

// Recover resumes processing after the database was restored. It sets the messages that were due
// in the meantime to the state unknown, empties all caches, processes the journal entries again
// that the database has lost, and accepts the current state of the ledgers.
func (m *membership) Recover(ctx context.Context) (result admin.RecoveryResult, err error) {
	m.heartbeatMu.Lock()
	defer m.heartbeatMu.Unlock()
	if err := m.verify(ctx); err != nil {
		return result, err
	}
	if m.HaltReason() == "" && m.lostWrites { // catchUp did everything except accepting the ledgers
		result.Count, result.Missing = m.reverted, admin.MissingBetween(m.lostSince, m.lostUntil)
		if result.Ledgers, err = m.acceptLedgers(ctx); err == nil {
			m.lostWrites = false
		}
		return result, err
	}
	if m.HaltReason() == "" {
		return result, relay.Errorf(relay.KindConflict, "processing has not stopped: there is nothing to recover")
	}
	if m.isRetired() {
		return result, relay.Errorf(relay.KindConflict, "%s", m.HaltReason())
	}
	// 1. Prepare the records, for all gateways.
	halt, err := m.store.Halt(ctx)
	if err != nil {
		return result, err
	}
	result.Missing = m.missingRecords(halt)
	if result.Unknown, err = m.afterRestore(ctx, halt); err != nil {
		return result, err
	}
	// 2. Process the journal of this gateway again.
	if result.Count, err = m.reprocess(ctx); err != nil {
		return result, err
	}
	if result.Ledgers, err = m.acceptLedgers(ctx); err != nil {
		return result, err
	}
	// 3. Resume processing at all gateways.
	if halt.IsActive() {
		halt.RecoveredAt = time.Now()
		if err := m.store.SaveHalt(ctx, halt); err != nil {
			return result, err
		}
	}
	current, err := m.readState(ctx)
	if err != nil {
		return result, err
	}
	result.Count += m.reverted
	m.mu.Lock()
	defer m.mu.Unlock()
	m.witness, m.lostWrites = current, false
	m.resumeLocked()
	return result, nil
}
