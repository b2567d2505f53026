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
)

// databaseFile is the file of the witness.
const databaseFile = "database"

// witness is the state that the database has acknowledged to this gateway. A database with
// less is another one, or was restored to an earlier state: processing must stop, or the
// entries that were processed into the later state would be lost.
type witness struct {
	Node     string    `json:"node,omitempty"` // the gateway's
	Database string    `json:"database"`
	Beats    uint64    `json:"beats"`
	At       time.Time `json:"at"` // when it was acknowledged
	// Restored means that `penstock restore` has put back an earlier database.
	Restored bool `json:"restored,omitempty"`
}

// membership registers the gateway, checks that it is consistent with the others, and
// closes the gate if the database was replaced or restored.
type membership struct {
	store   *registry.Store
	dir     string
	self    registry.Gateway
	keys    registry.Keys // of requests between gateways
	cache   *cache.DB
	primary *primary
	intakes map[event.Kind]*intake.Intake
	gate    *registry.Gate
	log     *slog.Logger
	// afterRestore prepares the records of a restored database, see recordStores.
	afterRestore func(context.Context, registry.Halt) (int, error)
	// forgetKeys has the keys of sealed records read again: those of another database may
	// not be in this one.
	forgetKeys func()
	// accept accepts the ledgers of a restored database as they are.
	accept func(context.Context) ([]string, error)
	// lostWrites means that the embedded records had lost writes at the start, and reverted
	// is the number of entries that are processed again for that; see catchUp.
	lostWrites bool
	lostSince  time.Time // of the oldest lost write; zero: the beginning
	lostUntil  time.Time
	reverted   int

	watchFor time.Duration // how long a registered gateway is watched

	beating  sync.Mutex // guards what follows, and the database against two that examine it
	claimed  bool       // this process has registered
	endedAt  time.Time  // last heartbeat of a process of this name that has ended
	database string     // the one that answers now; "" if it is empty

	mu        sync.Mutex
	seen      witness
	conflicts []string
	halted    string // why processing stopped; empty: it goes on
	haltedAt  time.Time
	// haltedByOther means that it stopped because another gateway did.
	haltedByOther bool
	// acknowledged has the checkpoints of the last heartbeats, oldest first; see reprocess.
	acknowledged []map[event.Kind]uint64
	gone         bool // it stopped for good: another process has its name
}

// openMembership creates the membership; start registers the gateway.
func (g *Gateway) openMembership(ctx context.Context, stores backends, intakes map[event.Kind]*intake.Intake, ledgers *ledgerService) (m *membership, err error) {
	m = &membership{
		store: stores.records.Gateways, dir: g.cfg.DataDir, cache: stores.cache, primary: stores.primary, keys: stores.primary.keys, intakes: intakes, gate: g.gate, log: g.log, watchFor: registry.WatchFor,
		afterRestore: stores.records.afterRestore, forgetKeys: ledgers.vault.Forget, accept: ledgers.Accept,
		self: registry.Gateway{Node: g.node, URL: g.cfg.InternalURL, Version: g.version, StartedAt: time.Now(), Facts: g.facts(ledgers.masterKey)},
	}
	m.self.Facts[registry.Incarnation] = rand.Text()
	if m.self.Facts[registry.Place], err = placeOf(g.cfg.DataDir); err != nil {
		g.log.Warn("cannot distinguish this data directory from a copy; a start after a kill takes longer", "error", err)
	}
	g.check(admin.Backend{Name: "gateways", Note: "node " + g.node, Check: m.check})
	if err := m.load(); err != nil {
		return nil, err
	}
	if g.cfg.Database.URL == "" {
		if err := m.acceptEarlier(ctx, stores.records.DB); err != nil {
			return nil, err
		}
	}
	m.store.OnConnect(g.node, m.verifyConnection)
	// A database that is down now is checked by the next heartbeat.
	if err := m.verify(ctx); err != nil && relay.KindOf(err) != relay.KindUnavailable {
		return nil, err
	}
	return m, nil
}

// facts are the settings that must be the same at all gateways.
func (g *Gateway) facts(masterKey string) registry.Facts {
	readings := registry.Embedded + g.node
	if g.cfg.Influx.URL != "" {
		readings = "influxdb " + config.Config{Influx: g.cfg.Influx}.Redacted().Influx.URL + " " + g.cfg.Influx.Bucket
	}
	return registry.Facts{registry.Readings: readings, registry.LedgerKey: fingerprint(masterKey), registry.AdminToken: fingerprint(masterKey + " " + g.cfg.AdminToken), registry.PublicURL: g.cfg.PublicURL}
}

// fingerprint identifies a secret without revealing it, if it cannot be guessed. An admin
// token may be guessable, so that its fingerprint is made with the master key.
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
		return fmt.Errorf("%s is damaged: if this gateway used the same database last, remove the file: %w", filepath.Join(m.dir, databaseFile), err)
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

// compare closes the gate if the database has less than a witness. An empty id is that of an
// empty database.
func (m *membership) compare(seen witness, id string, beats uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch recovered := m.seen.Database != seen.Database || m.seen.Beats < seen.Beats; {
	case seen.Database == "" || recovered: // there is nothing to compare with any more
	case id == "":
		m.haltLocked("the database is empty")
	case id != seen.Database:
		m.haltLocked("this is another database than the one that the journal was processed into")
	case beats < seen.Beats:
		m.haltLocked("the database is in an earlier state than this gateway has seen: it was restored from a backup")
	}
}

func (m *membership) witness() witness {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.seen
}

// verifyConnection compares a new connection's database with the witness, so that nothing is
// leased from a restored database before the next heartbeat.
func (m *membership) verifyConnection(ctx context.Context, read func(context.Context) (string, uint64, error)) error {
	seen := m.witness()
	id, beats, err := read(ctx)
	if err == nil {
		m.compare(seen, id, beats)
	}
	return err
}

// verify compares the database with the witness, closes the gate if it has less, and opens it
// otherwise. The gateways on a database that was restored stop together: the first that finds
// it saves a halt.
func (m *membership) verify(ctx context.Context) error {
	seen := m.witness()
	if seen.Database == "" {
		found, err := m.look(ctx)
		if err != nil {
			return err
		}
		m.mu.Lock()
		m.seen, seen = found, found
		m.mu.Unlock()
	}
	id, beats, err := m.store.Database(ctx, m.self.Node)
	if err != nil {
		return err
	}
	m.database = id
	m.compare(seen, id, beats)
	halt, err := m.store.Halt(ctx)
	if err != nil {
		return err
	}
	restored := id == seen.Database && beats < seen.Beats
	if restored && !halt.Holds() && !halt.RecoveredAt.After(seen.At) {
		m.mu.Lock()
		halt = registry.Halt{Node: m.self.Node, Since: m.haltedAt}
		m.mu.Unlock()
		if halt.LastWrite, err = m.store.LastWrite(ctx); err != nil {
			return err
		}
		if err := m.store.SaveHalt(ctx, halt); err != nil {
			return err
		}
	}
	if m.resumesAfterOther(halt) {
		if _, err := m.reprocess(ctx); err != nil {
			m.log.WarnContext(ctx, "the journal cannot be processed again; processing stays stopped", "error", err)
			return nil // heartbeats go on
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.halted == "" && halt.Holds():
		m.haltLocked(fmt.Sprintf("gateway %s has found the database in an earlier state than it has seen: it was restored from a backup", halt.Node))
		m.haltedByOther = true
	case m.haltedByOther && !halt.Holds():
		m.resumeLocked()
	case m.halted == "":
		m.gate.Open()
	}
	return nil
}

// resumesAfterOther reports whether this gateway stopped because another one did, which
// has recovered since.
func (m *membership) resumesAfterOther(halt registry.Halt) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.haltedByOther && !halt.Holds()
}

// reprocess processes again the journal entries that a restored database has lost, and
// returns their number. It begins at the checkpoints in the database. If another gateway
// found that the database was restored, this one may have overwritten them before; it
// then begins at those of the oldest heartbeat in acknowledged.
func (m *membership) reprocess(ctx context.Context) (count int, err error) {
	var earlier map[event.Kind]uint64
	m.mu.Lock()
	if m.haltedByOther && len(m.acknowledged) > 0 {
		earlier = m.acknowledged[0]
	}
	m.mu.Unlock()
	for kind, intake := range m.intakes {
		fromSeq, err := m.store.Checkpoint(ctx, m.self.Node, string(kind))
		if err != nil {
			return count, err
		}
		if earlier != nil {
			fromSeq = min(fromSeq, earlier[kind])
		}
		n, err := intake.Reprocess(ctx, fromSeq+1)
		count += n
		if err != nil {
			return count, fmt.Errorf("recover: %s: %w", kind, err)
		}
	}
	return count, nil
}

// look reads the state of the database, and gives it an id if it has none.
func (m *membership) look(ctx context.Context) (found witness, err error) {
	found = witness{Node: m.self.Node, At: time.Now()}
	if found.Database, err = m.store.Setting(ctx, "database", func() string { return strings.ToLower(rand.Text()) }); err != nil {
		return found, err
	}
	_, found.Beats, err = m.store.Database(ctx, m.self.Node)
	return found, err
}

// haltLocked stops processing, once.
func (m *membership) haltLocked(reason string) {
	if m.halted != "" {
		return
	}
	m.gate.Close()
	m.forgetKeys()
	m.haltedAt = time.Now()
	m.halted = reason + ". Processing has stopped; what arrives is kept in the journal. " +
		"`penstock recover` processes the journal again from the state of the database, and continues"
	m.log.Error("processing has stopped", "error", m.halted)
}

func (m *membership) resumeLocked() {
	m.halted, m.haltedByOther = "", false
	m.gate.Open()
	m.log.Info("processing goes on")
}

// Halted returns why processing stopped; empty if it is running.
func (m *membership) Halted() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.halted
}

func (m *membership) hasLeft() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.gone
}

// run sends heartbeats until ctx is done, the first one after HeartbeatEvery.
func (m *membership) run(ctx context.Context, log *slog.Logger) {
	for relay.Sleep(ctx, registry.HeartbeatEvery) {
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
	if m.hasLeft() {
		return nil
	}
	if err := m.verify(ctx); err != nil {
		return err
	}
	if m.database == "" {
		return nil // it is being restored, and must not be written to
	}
	if taken, err := m.checkName(ctx); err != nil || taken {
		return err
	}
	conflict := m.checkRedis(ctx)
	if err := m.store.Heartbeat(ctx, m.self); err != nil {
		return err
	}
	m.claimed = true
	gateways, err := m.store.Gateways(ctx)
	if err != nil {
		return err
	}
	m.primary.setPeers(gateways)
	conflicts := append(conflict, registry.Conflicts(&m.self, gateways, time.Now())...)
	m.mu.Lock()
	m.conflicts = conflicts
	halted := m.halted != ""
	m.mu.Unlock()
	if halted {
		return nil // the database must not get positions of data that it does not have
	}
	return m.acknowledge(ctx)
}

// redisCheckTime bounds the check of Redis in a heartbeat.
const redisCheckTime = time.Second

// checkRedis registers this database in Redis and reports gateways on another database that
// use the same Redis. Errors of Redis are reported elsewhere; a Redis that hangs must not
// delay the heartbeat, which shows others that this gateway lives.
func (m *membership) checkRedis(ctx context.Context) (conflicts []string) {
	ctx, cancel := context.WithTimeout(ctx, redisCheckTime)
	defer cancel()
	if id, err := m.cache.ID(ctx); err == nil {
		m.self.Facts[registry.Redis] = id
	}
	otherDatabases, err := m.cache.Databases(ctx, m.database, time.Now(), registry.AwayAfter)
	if err == nil && len(otherDatabases) > 0 {
		conflicts = []string{"gateways on another database use the same Redis: give all of them the same database.url, or redis.url a Redis of its own"}
	}
	return conflicts
}

// acknowledgedBeats is the number of acknowledged heartbeats that are kept: a restored
// database is found within so many.
const acknowledgedBeats = 5

// acknowledge saves the checkpoints of the journals in the database, and then the
// database's acknowledgement in the witness.
func (m *membership) acknowledge(ctx context.Context) error {
	checkpoints := make(map[event.Kind]uint64)
	for kind, intake := range m.intakes {
		checkpoints[kind] = intake.Committed()
		if err := m.store.SetCheckpoint(ctx, m.self.Node, string(kind), checkpoints[kind]); err != nil {
			return err
		}
	}
	nextWitness := m.witness()
	nextWitness.Node, nextWitness.Beats, nextWitness.At = m.self.Node, nextWitness.Beats+1, time.Now()
	if err := m.store.SetCheckpoint(ctx, m.self.Node, "", nextWitness.Beats); err != nil {
		return err
	}
	if err := m.save(nextWitness); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.seen = nextWitness
	m.acknowledged = append(m.acknowledged, checkpoints)
	m.acknowledged = m.acknowledged[max(0, len(m.acknowledged)-acknowledgedBeats):]
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

// missing returns when records were written that the database may lack. The last write of
// a database that was restored is known; another database has none of them.
func (m *membership) missing(halt registry.Halt) *admin.MissingRecords {
	m.mu.Lock()
	defer m.mu.Unlock()
	since := time.Time{}
	if m.database == m.seen.Database {
		since = halt.LastWrite
	}
	if m.lostWrites && m.lostSince.Before(since) {
		since = m.lostSince
	}
	return admin.MissingBetween(since, m.haltedAt)
}

// Recover resumes after the database was restored: it gives the messages that were due
// meanwhile the state unknown, empties all caches, processes again the journal entries
// that the database has lost and accepts the ledgers as they are.
func (m *membership) Recover(ctx context.Context) (done admin.Recovered, err error) {
	m.beating.Lock()
	defer m.beating.Unlock()
	if err := m.verify(ctx); err != nil {
		return done, err
	}
	if m.Halted() == "" && m.lostWrites { // the ledgers are left to accept
		done.Count, done.Missing = m.reverted, admin.MissingBetween(m.lostSince, m.lostUntil)
		if done.Ledgers, err = m.accept(ctx); err == nil {
			m.lostWrites = false
		}
		return done, err
	}
	if m.Halted() == "" {
		return done, relay.Errorf(relay.KindConflict, "processing has not stopped: there is nothing to recover")
	}
	if m.hasLeft() {
		return done, relay.Errorf(relay.KindConflict, "%s", m.Halted())
	}
	// 1. The records, for all gateways.
	halt, err := m.store.Halt(ctx)
	if err != nil {
		return done, err
	}
	done.Missing = m.missing(halt)
	if done.Unknown, err = m.afterRestore(ctx, halt); err != nil {
		return done, err
	}
	// 2. The journal of this gateway.
	if done.Count, err = m.reprocess(ctx); err != nil {
		return done, err
	}
	if done.Ledgers, err = m.accept(ctx); err != nil {
		return done, err
	}
	// 3. Processing goes on.
	if halt.Holds() {
		halt.RecoveredAt = time.Now()
		if err := m.store.SaveHalt(ctx, halt); err != nil {
			return done, err
		}
	}
	found, err := m.look(ctx)
	if err != nil {
		return done, err
	}
	done.Count += m.reverted
	m.mu.Lock()
	defer m.mu.Unlock()
	m.seen, m.lostWrites = found, false
	m.resumeLocked()
	return done, nil
}
